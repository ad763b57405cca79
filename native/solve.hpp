// One board from tokens to verdict: refuse what is malformed, pick the narrowest word, run the mode's search.
#pragma once

#include "any.hpp"
#include "decomposition.hpp"
#include "effort.hpp"
#include "grid.hpp"
#include "memory.hpp"
#include "outcome.hpp"
#include "pushes.hpp"

namespace maskoban {

// What a thread keeps from board to board.
struct Worker {
    explicit Worker(const Limits& limits) : memory(limits.megabytes << 20) {}
    Memory memory;
    Room room;
};

template <int N>
void solve_room(const Grid& grid, Mode mode, Worker& worker, Budget& budget, Outcome& outcome) {
    const auto start = Clock::now();
    Board<N> board;
    set_board(board, grid, worker.room);
    outcome.setup = since(start);
    try {
        switch (mode) {
            case Mode::ANY: search_any(board, worker.memory, budget, outcome); break;
            case Mode::PUSHES: search_pushes(board, worker.memory, budget, outcome); break;
            case Mode::EFFORT: search_effort(board, worker.memory, budget, outcome); break;
            case Mode::DECOMPOSED: search_decomposed(board, worker.memory, budget, outcome); break;
        }
    } catch (const OutOfTime&) {
        budget.out_of_time(outcome);
    }
    worker.memory.release();
}

inline Outcome solve(const Grid& grid, Mode mode, const Limits& limits, Worker& worker, const Poll& poll) {
    const auto start = Clock::now();
    Outcome outcome;
    outcome.reason = malformed(grid);
    if (!outcome.reason.empty()) {
        outcome.verdict = MALFORMED;
    } else {
        find_room(grid, worker.room);
        const int width = worker.room.width, cells = worker.room.height * width;
        Budget budget(limits, start, cells, poll);
        if (cells <= 64 && width < 64) solve_room<1>(grid, mode, worker, budget, outcome);
        else if (cells <= 128) solve_room<2>(grid, mode, worker, budget, outcome);
        else if (cells <= 256) solve_room<4>(grid, mode, worker, budget, outcome);
        else if (cells <= 1024) solve_room<16>(grid, mode, worker, budget, outcome);
        else solve_room<64>(grid, mode, worker, budget, outcome);
    }
    outcome.seconds = since(start);
    return outcome;
}

}  // namespace maskoban
