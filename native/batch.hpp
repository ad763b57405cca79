// Many boards on many threads: each takes the next board from one counter, so none waits for a slow one.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "solve.hpp"
#include "threads.hpp"

namespace maskoban {

struct Batch {
    std::vector<std::uint8_t> verdicts, limits_hit;
    std::vector<std::string> reasons, solutions;
    std::vector<std::int32_t> pushes, moves, boxes_at_once;
    std::vector<std::int64_t> expanded;
    std::vector<float> seconds, setup, rebuilding;

    explicit Batch(std::size_t n, bool keep_solutions)
        : verdicts(n), limits_hit(n), reasons(n), solutions(keep_solutions ? n : 0), pushes(n), moves(n),
          boxes_at_once(n), expanded(n), seconds(n), setup(n), rebuilding(n) {}

    void set(std::size_t i, Outcome&& o) {
        verdicts[i] = o.verdict, limits_hit[i] = o.limit_hit;
        reasons[i] = std::move(o.reason);
        if (!solutions.empty()) solutions[i] = std::move(o.solution);
        pushes[i] = o.pushes, moves[i] = o.moves, expanded[i] = o.expanded;
        boxes_at_once[i] = o.boxes_at_once;
        seconds[i] = static_cast<float>(o.seconds);
        setup[i] = static_cast<float>(o.setup);
        rebuilding[i] = static_cast<float>(o.rebuilding);
    }
};

// Judges n boards by judge(i, worker, poll). `attend(done)` is called on the calling thread about twenty times a second;
// what it throws ends the batch.
template <class Judge>
Batch run_batch(std::size_t n, const Limits& limits, std::size_t threads, bool keep_solutions,
                const std::function<void(std::size_t)>& attend, const Judge& judge) {
    Batch batch(n, keep_solutions);
    std::atomic<std::size_t> next{0}, done{0};
    const auto work = [&](const Poll& poll) {
        Worker worker(limits);
        for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
            poll();
            batch.set(i, judge(i, worker, poll));
            done.fetch_add(1, std::memory_order_relaxed);
        }
    };
    on_threads(std::min(threads, n), work, [&] { attend(done.load()); });
    return batch;
}

}  // namespace maskoban
