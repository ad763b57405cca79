// Mode pushes: a solution with provably fewest pushes, by A*. The bound never overestimates; a state found again by
// a shorter way is opened again, so nothing more is asked of it.
#pragma once

#include "buckets.hpp"
#include "fewest_moves.hpp"
#include "guide.hpp"

namespace maskoban {

template <int N>
struct PushState {
    Bits<N> boxes, reach;
    std::uint32_t parent, next, previous, depth, bound;
    std::uint16_t pushed : 14, along : 2;
    bool closed;

    std::uint64_t hash() const { return boxes.hash(static_cast<std::uint64_t>(reach.lowest()) + 1); }
    bool same(const PushState& other) const { return boxes == other.boxes && reach == other.reach; }
};

template <int N>
void search_pushes(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    using State = PushState<N>;
    constexpr std::uint32_t NONE = States<State>::NONE;

    const auto start = Clock::now();
    Guide<N> guide(board, memory, budget);
    if (guide.settled(outcome)) return;
    {
        States<State> states(memory);
        Buckets<State> open(states, memory);
        const auto first =
            states.add({board.start, board.start_reach(), NONE, NONE, NONE, 0, 0, 0, 0, false});
        if (first.index == NONE || !open.push(first.index, guide.bound())) return budget.out_of_memory(outcome);
        outcome.setup += since(start);

        outcome.verdict = UNSOLVABLE;
        for (;;) {
            const std::uint32_t index = open.pop();
            if (index == NONE) return;
            states[index].closed = true;
            const State state = states[index];
            if ((state.boxes - board.goals).none()) {
                rebuild(board, states, index, outcome);
                break;
            }
            if (budget.spent(outcome)) return;
            ++outcome.expanded;
            const std::uint32_t depth = state.depth + 1;
            const auto visit = [&](int box, Direction d, const Bits<N>& boxes, int bound) {
                const Bits<N> reach = board.reach_after(state.reach, boxes, box, box + board.step[d]);
                const State next{boxes, reach, index, NONE, NONE, depth, static_cast<std::uint32_t>(bound),
                                 static_cast<std::uint16_t>(box), static_cast<std::uint16_t>(d), false};
                const auto found = states.add(next);
                if (found.index == NONE) return budget.out_of_memory(outcome), false;
                if (!found.fresh) {
                    State& known = states[found.index];
                    if (known.depth <= depth) return true;
                    if (!known.closed) open.remove(found.index, known.depth + known.bound);
                    known = next;
                }
                if (open.push(found.index, depth + bound)) return true;
                return budget.out_of_memory(outcome), false;
            };
            if (!guide.expand(state.boxes, state.reach, visit)) return;
        }
    }
    Outcome shorter = outcome;
    bool proved = false;
    try {
        proved = find_fewest_moves(board, guide, outcome.pushes, memory, budget, shorter);
    } catch (const OutOfTime&) {
    }
    if (proved) {
        outcome = std::move(shorter);
    } else {
        outcome.expanded = shorter.expanded;
        outcome.reason = "fewest pushes, but fewest moves not proved";
    }
}

}  // namespace maskoban
