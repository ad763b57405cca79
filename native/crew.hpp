// Threads that stay: they run short pieces of work again and again, and wait awake for a moment between two of them.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace maskoban::environment {

class Crew {
public:
    explicit Crew(std::size_t size) : size_(size) {}
    Crew(const Crew&) = delete;
    ~Crew() {
        if (!started_here()) {  // after a fork the threads are gone, and must not be joined
            for (std::thread& thread : threads_) new (&thread) std::thread;
            return;
        }
        leaving_ = true;
        announce();
        for (std::thread& thread : threads_) thread.join();
    }

    std::size_t size() const { return size_; }

    // Calls work(0) to work(size - 1), each on its own thread, work(0) on this one; returns when all are done.
    // What work(0) to work(size - 1) throw is lost, so they must not throw.
    template <class Work>
    void run(const Work& work) {
        if (!started_here()) start();
        work_ = [&work](std::size_t k) { work(k); };
        left_.store(size_ - 1, std::memory_order_relaxed);
        announce();
        work(0);
        for (int tries = 0; left_.load(std::memory_order_acquire) != 0; ++tries) {
            if (tries < AWAKE) pause();
            else std::this_thread::yield();
        }
    }

private:
    static constexpr int AWAKE = 4000;  // tries before a thread gives its core to others: some tens of microseconds

    static void pause() {
#if defined(__x86_64__) || defined(_M_X64)
        _mm_pause();
#endif
    }

    static long process() {
#if defined(_WIN32)
        return 1;
#else
        return getpid();
#endif
    }

    bool started_here() const { return process_ == process(); }

    void start() {
        for (std::thread& thread : threads_) new (&thread) std::thread;
        threads_.clear();
        process_ = process();
        const std::uint32_t turn = turn_.load();
        for (std::size_t k = 1; k < size_; ++k) threads_.emplace_back([this, k, turn] { serve(k, turn); });
    }

    void announce() {
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_all();
    }

    void serve(std::size_t k, std::uint32_t seen) {
        for (;;) {
            for (int tries = 0; tries < AWAKE && turn_.load(std::memory_order_acquire) == seen; ++tries) pause();
            turn_.wait(seen, std::memory_order_acquire);
            ++seen;
            if (leaving_) return;
            work_(k);
            left_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::size_t size_;
    std::vector<std::thread> threads_;
    std::function<void(std::size_t)> work_;
    std::atomic<std::uint32_t> turn_{0};
    std::atomic<std::size_t> left_{0};
    std::atomic<bool> leaving_{false};
    long process_ = 0;
};

}  // namespace maskoban::environment
