// One piece of work on many threads. The calling one works too, and attends to whoever waits for the work.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <system_error>
#include <vector>

#ifndef __wasm__  // the static site's build has no threads; see wasm.cpp
#include <condition_variable>
#include <mutex>
#include <thread>
#endif

namespace maskoban {

// What work calls wherever time may go by, many times a second; it throws Interrupted when the work is to end.
using Poll = std::function<void()>;
struct Interrupted {};

#ifndef __wasm__
// Calls work(poll) on so many threads at once; it must share itself out. `attend()` is called on the calling thread
// about twenty times a second. What it or the work throws ends the work on all threads, and is thrown from here.
inline void on_threads(std::size_t threads, const std::function<void(const Poll&)>& work,
                       const std::function<void()>& attend) {
    using std::chrono::steady_clock;
    constexpr std::chrono::milliseconds often{50};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t ended = 0;       // of the other threads
    std::exception_ptr trouble;  // the first thing that went wrong on any thread

    const auto guard = [&](const auto& run) {
        try {
            run();
        } catch (const Interrupted&) {
        } catch (...) {
            stop = true;
            const std::lock_guard lock(mutex);
            if (!trouble) trouble = std::current_exception();
        }
    };
    const auto go_on = [&] {
        if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
    };
    const auto help = [&] {
        guard([&] { work(go_on); });
        const std::lock_guard lock(mutex);
        ++ended;
        finished.notify_one();
    };

    std::vector<std::thread> others;
    guard([&] {
        try {
            while (others.size() + 1 < threads) others.emplace_back(help);
        } catch (const std::system_error&) {  // the system allows no more: those there are will do
        }
        auto last = steady_clock::now();
        work([&] {
            go_on();
            if (steady_clock::now() - last < often) return;
            attend();
            last = steady_clock::now();
        });
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, often, [&] { return ended == others.size(); })) {
            lock.unlock();
            attend();
            lock.lock();
        }
    });
    for (std::thread& other : others) other.join();
    if (trouble) std::rethrow_exception(trouble);
}
#endif

}  // namespace maskoban
