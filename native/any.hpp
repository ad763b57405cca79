// Mode any: some solution, as fast as possible. Searches take turns: one over single pushes, which is fast where there are
// few boxes, and three that plan, for large levels: two with a packing plan each, and one that is played backwards.
#pragma once

#include "best_first.hpp"
#include "feature_search.hpp"

namespace maskoban {

template <int N>
void search_any(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    constexpr std::int64_t FIRST = 5'000;                   // states for the best-first search, before anything else is set up
    constexpr std::int64_t PUSHES = 10'000, PLANNED = 500;  // states a turn, which take about as long

    const auto start = Clock::now();
    Guide<N> guide(board, memory, budget);
    if (guide.settled(outcome)) return;
    BestFirst<N> best_first(board, guide, memory, memory.limit() / 2, budget);
    outcome.setup += since(start);

    Standing pushing = Standing::FULL;
    if (budget.uses(BEST_FIRST)) pushing = best_first.run(FIRST, outcome);
    if (pushing == Standing::RUNNING || pushing == Standing::FULL) {
        const Maze maze = make_maze(board), backward = backwards(maze);
        struct Planned {
            FeatureSearch search;
            Standing standing = Standing::RUNNING;
        };
        std::deque<Planned> planned;
        if (budget.uses(PLAN_FROM_OUTSIDE)) planned.push_back({{maze, Plan::FROM_OUTSIDE, memory, budget}});
        if (budget.uses(PLAN_FROM_STARTS)) planned.push_back({{maze, Plan::FROM_STARTS, memory, budget}});
        if (budget.uses(BACKWARDS)) planned.push_back({{backward, Plan::FROM_STARTS, memory, budget}});
        for (bool going = true; going;) {
            going = false;
            for (auto& [search, standing] : planned) {
                if (standing != Standing::RUNNING) continue;
                standing = search.run(PLANNED, outcome);
                if (standing == Standing::SOLVED) return write_solution(board, search.solution(), outcome);
                if (standing == Standing::SPENT) return;
                if (standing == Standing::EXHAUSTED) return void(outcome.verdict = UNSOLVABLE);
                going |= standing == Standing::RUNNING;
            }
            if (pushing == Standing::RUNNING) pushing = best_first.run(PUSHES, outcome);
            if (pushing == Standing::SOLVED || pushing == Standing::EXHAUSTED || pushing == Standing::SPENT) break;
            going |= pushing == Standing::RUNNING;
        }
        if (pushing == Standing::FULL) return budget.out_of_memory(outcome);
    }
    if (pushing == Standing::EXHAUSTED) outcome.verdict = UNSOLVABLE;
}

}  // namespace maskoban
