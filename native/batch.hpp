// Many boards on many threads: each takes the next board from one counter, so none waits for a slow one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "solve.hpp"

namespace maskoban {

struct Batch {
    std::vector<std::uint8_t> verdicts;
    std::vector<std::string> reasons, solutions;
    std::vector<std::int32_t> pushes, moves;
    std::vector<std::int64_t> expanded;
    std::vector<float> seconds, setup, rebuilding;

    explicit Batch(std::size_t n, bool keep_solutions)
        : verdicts(n), reasons(n), solutions(keep_solutions ? n : 0), pushes(n), moves(n), expanded(n), seconds(n),
          setup(n), rebuilding(n) {}

    void set(std::size_t i, Outcome&& o) {
        verdicts[i] = o.verdict;
        reasons[i] = std::move(o.reason);
        if (!solutions.empty()) solutions[i] = std::move(o.solution);
        pushes[i] = o.pushes, moves[i] = o.moves, expanded[i] = o.expanded;
        seconds[i] = static_cast<float>(o.seconds);
        setup[i] = static_cast<float>(o.setup);
        rebuilding[i] = static_cast<float>(o.rebuilding);
    }
};

// `attend(done)` is called on the calling thread about twenty times a second; what it throws ends the batch.
inline Batch solve_batch(const std::uint8_t* tokens, std::size_t n, int height, int width, Mode mode,
                         const Limits& limits, std::size_t threads, bool keep_solutions,
                         const std::function<void(std::size_t)>& attend) {
    Batch batch(n, keep_solutions);
    std::atomic<std::size_t> next{0}, done{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr trouble;  // the first thing that went wrong on another thread

    const auto work = [&](auto& poll) {
        Worker worker(limits);
        const std::size_t cells = static_cast<std::size_t>(height) * width;
        for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
            poll();
            batch.set(i, solve(Grid{tokens + i * cells, height, width}, mode, limits, worker, poll));
            done.fetch_add(1, std::memory_order_relaxed);
        }
    };

    std::vector<std::thread> others;
    std::size_t busy = 0;
    const auto end = [&] {
        stop = true;
        for (std::thread& t : others) t.join();
    };
    const auto help = [&] {
        auto poll = [&] {
            if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
        };
        std::exception_ptr mine;
        try {
            work(poll);
        } catch (const Interrupted&) {
        } catch (...) {
            mine = std::current_exception();
            stop = true;
        }
        const std::lock_guard lock(mutex);
        if (mine && !trouble) trouble = mine;
        --busy;
        finished.notify_one();
    };
    try {
        for (std::size_t t = 1; t < std::min(threads, n); ++t) {
            {
                const std::lock_guard lock(mutex);
                ++busy;
            }
            try {
                others.emplace_back(help);
            } catch (const std::system_error&) {  // the system allows no more: those there are will do
                const std::lock_guard lock(mutex);
                --busy;
                break;
            }
        }
        auto last = Clock::now();
        auto poll = [&] {
            if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
            if (since(last) < 0.05) return;
            attend(done.load());
            last = Clock::now();
        };
        try {
            work(poll);
        } catch (const Interrupted&) {
        }
        std::unique_lock lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return busy == 0; })) {
            lock.unlock();
            attend(done.load());
            lock.lock();
        }
    } catch (...) {
        end();
        throw;
    }
    end();
    if (trouble) std::rethrow_exception(trouble);
    return batch;
}

}  // namespace maskoban
