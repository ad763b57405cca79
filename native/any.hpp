// Mode any: some solution, as fast as possible. Two searches take turns: one over single pushes, which is fast where
// there are few boxes, and one that plans, for large levels.
#pragma once

#include "best_first.hpp"
#include "feature_search.hpp"

namespace maskoban {

template <int N>
void search_any(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    constexpr std::int64_t FIRST = 5'000;                   // states for the best-first search, before anything else is set up
    constexpr std::int64_t PUSHES = 20'000, PLANNED = 500;  // states a turn, which take about as long

    const auto start = Clock::now();
    Guide<N> guide(board, memory, budget);
    if (guide.settled(outcome)) return;
    BestFirst<N> best_first(board, guide, memory, memory.limit() / 2, budget);
    outcome.setup += since(start);

    Standing pushing = Standing::FULL, planning = Standing::FULL;
    if (budget.uses(BEST_FIRST)) pushing = best_first.run(FIRST, outcome);
    if (pushing == Standing::RUNNING || pushing == Standing::FULL) {
        if (budget.uses(FEATURE_SEARCH)) planning = Standing::RUNNING;
        const Maze maze = make_maze(board);
        FeatureSearch feature_search(maze, memory, budget);
        for (;;) {
            if (planning == Standing::RUNNING) planning = feature_search.run(PLANNED, outcome);
            if (planning == Standing::SOLVED) return write_solution(board, feature_search.solution(), outcome);
            if (planning == Standing::EXHAUSTED || planning == Standing::SPENT) break;
            if (pushing == Standing::RUNNING) pushing = best_first.run(PUSHES, outcome);
            if (pushing == Standing::SOLVED || pushing == Standing::EXHAUSTED || pushing == Standing::SPENT) break;
            if (pushing == Standing::FULL && planning == Standing::FULL) return budget.out_of_memory(outcome);
        }
    }
    if (pushing == Standing::EXHAUSTED || planning == Standing::EXHAUSTED) outcome.verdict = UNSOLVABLE;
}

}  // namespace maskoban
