// Mode any: some solution, as fast as possible. Best-first search that trusts its bound far more than the path so far.
#pragma once

#include "buckets.hpp"
#include "guide.hpp"

namespace maskoban {

template <int N>
struct AnyState {
    Bits<N> boxes, reach;
    std::uint32_t parent, next;
    std::uint16_t pushed : 14, along : 2;
    std::uint16_t depth;  // pushes so far; stops counting at its largest value, since it only orders

    std::uint64_t hash() const { return boxes.hash(static_cast<std::uint64_t>(reach.lowest()) + 1); }
    bool same(const AnyState& other) const { return boxes == other.boxes && reach == other.reach; }
};

template <int N>
void search_any(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    using State = AnyState<N>;
    constexpr std::uint32_t NONE = States<State>::NONE;
    constexpr std::size_t BOUND_WEIGHT = 4;  // measured: 3 to 5 expand fewest states on Boxoban

    const auto start = Clock::now();
    Guide<N> guide(board, memory, budget);
    if (guide.settled(outcome)) return;
    States<State> states(memory);
    Buckets<State> open(states, memory);
    const auto first = states.add({board.start, board.start_reach(), NONE, NONE, 0, 0, 0});
    if (first.index == NONE) return budget.out_of_memory(outcome);
    open.push(first.index, 0);
    outcome.setup += since(start);

    outcome.verdict = UNSOLVABLE;
    for (std::uint32_t index; (index = open.pop()) != NONE;) {
        if (budget.spent(outcome)) return;
        ++outcome.expanded;
        const State state = states[index];
        const auto depth = static_cast<std::uint16_t>(std::min(state.depth + 1, 0xFFFF));
        const auto visit = [&](int box, Direction d, const Bits<N>& boxes, int bound) {
            const Bits<N> reach = board.reach_after(state.reach, boxes, box, box + board.step[d]);
            const auto found = states.add({boxes, reach, index, NONE, static_cast<std::uint16_t>(box),
                                           static_cast<std::uint16_t>(d), depth});
            if (found.index == NONE) return budget.out_of_memory(outcome), false;
            if (!found.fresh) return true;
            if (bound == 0) return rebuild(board, states, found.index, outcome), false;
            if (open.push(found.index, bound * BOUND_WEIGHT + depth)) return true;
            return budget.out_of_memory(outcome), false;
        };
        if (!guide.expand(state.boxes, state.reach, visit)) return;
    }
}

}  // namespace maskoban
