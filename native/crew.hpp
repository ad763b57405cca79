// Threads that stay: they share one kind of work again and again. Between two runs they sleep.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
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
    // Every run has so many pieces. There are never more threads than pieces.
    Crew(std::size_t threads, std::size_t pieces)
        : pieces_(pieces), shares_(std::clamp<std::size_t>(threads, 1, pieces)) {
        for (std::size_t k = 0; k < shares_.size(); ++k) {
            shares_[k].end = pieces * (k + 1) / shares_.size();
            shares_[k].next = shares_[k].end;
        }
    }
    Crew(const Crew&) = delete;
    ~Crew() {
        if (!started_here()) {
            forget();
            return;
        }
        leaving_ = true;
        announce();
        for (std::thread& thread : others_) thread.join();
    }

    std::size_t threads() const { return shares_.size(); }
    std::size_t pieces() const { return pieces_; }

    // Calls work(0) to work(pieces - 1) and returns when all are done; the work must not throw. A thread does its own
    // share first, where its cache holds the data, and then what the others have not begun: a thread that wakes late
    // holds up nobody.
    template <class Work>
    void run(const Work& work) {
        if (!started_here()) start();
        work_ = [&work](std::size_t piece) { work(piece); };
        done_.store(0, std::memory_order_relaxed);
        for (std::size_t k = 0; k < shares_.size(); ++k)
            shares_[k].next.store(k == 0 ? 0 : shares_[k - 1].end, std::memory_order_release);
        announce();
        help(0);
        for (std::uint32_t done; (done = done_.load(std::memory_order_acquire)) != pieces_;)
            wait_while(done_, done);
    }

private:
    // The pieces that a thread does first, as long as `next` is below `end`.
    struct alignas(64) Share {
        std::atomic<std::size_t> next{0};
        std::size_t end = 0;
    };

    static constexpr int AWAKE = 500;  // looks before a thread sleeps: some ten microseconds

    static void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
        for (int looks = 0; looks < AWAKE; ++looks) {
            if (value.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__) || defined(_M_X64)
            _mm_pause();
#endif
        }
        value.wait(old, std::memory_order_acquire);
    }

    static long process() {
#if defined(_WIN32)
        return 1;
#else
        return getpid();
#endif
    }

    bool started_here() const { return process_ == process(); }

    // After a fork the threads are gone, and must not be joined.
    void forget() {
        for (std::thread& thread : others_) new (&thread) std::thread;
        others_.clear();
    }

    void start() {
        forget();
        process_ = process();
        for (std::size_t k = 1; k < shares_.size(); ++k)
            others_.emplace_back([this, k, turn = turn_.load()] { serve(k, turn); });
    }

    void announce() {
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_all();
    }

    void serve(std::size_t k, std::uint32_t seen) {
        for (;;) {
            wait_while(turn_, seen);
            seen = turn_.load(std::memory_order_acquire);
            if (leaving_) return;
            help(k);
        }
    }

    void help(std::size_t first) {
        for (std::size_t k = first; k < first + shares_.size(); ++k) {
            Share& share = shares_[k % shares_.size()];
            for (std::size_t piece; (piece = share.next.fetch_add(1, std::memory_order_acq_rel)) < share.end;) {
                work_(piece);
                if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces_) done_.notify_one();
            }
        }
    }

    std::size_t pieces_;
    std::vector<Share> shares_;
    std::vector<std::thread> others_;
    std::function<void(std::size_t)> work_;
    std::atomic<std::uint32_t> turn_{0}, done_{0};
    std::atomic<bool> leaving_{false};
    long process_ = 0;
};

}  // namespace maskoban::environment
