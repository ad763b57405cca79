// Mode effort: the plain breadth-first push search whose count of expanded states is a board's difficulty.
// Its order is defined in docs/solver.md and must never change; only its speed may.
#pragma once

#include "board.hpp"
#include "memory.hpp"
#include "outcome.hpp"
#include "solution.hpp"

namespace maskoban {

template <int N>
struct EffortState {
    Bits<N> boxes;
    std::uint16_t player;  // lowest cell the player can reach
    std::uint16_t pushed : 14, along : 2;
    std::uint32_t parent;

    std::uint64_t hash() const { return boxes.hash(player + 1u); }
    bool same(const EffortState& other) const { return boxes == other.boxes && player == other.player; }
};

template <int N>
void search_effort(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    using State = EffortState<N>;
    if (!board.stray_box && (board.start - board.goals).none()) return write_solution(board, {}, outcome);
    outcome.verdict = UNSOLVABLE;
    if (board.stray_box_dead || (board.start - board.live).any()) {
        outcome.reason = "a box stands on a dead cell";
        return;
    }

    States<State> states(memory);
    const auto player = static_cast<std::uint16_t>(board.start_reach().lowest());
    const auto first = states.add({board.start, player, 0, 0, States<State>::NONE});
    if (first.index == States<State>::NONE) return budget.out_of_memory(outcome);

    // The states themselves, in order of discovery, are the queue.
    for (std::uint32_t front = 0; front < states.size(); ++front) {
        if (budget.spent(outcome)) return;
        ++outcome.expanded;
        const State state = states[front];
        const Bits<N> reach = board.flood(Bits<N>::cell(state.player), board.floor - state.boxes);
        Bits<N> pushable[4], some;
        for (Direction d : DIRECTIONS) some |= pushable[d] = board.pushable(state.boxes, reach, board.live, d);
        for (int word = 0; word < N; ++word)
            for (std::uint64_t rest = some.w[word]; rest != 0; rest &= rest - 1) {
                const int box = word * 64 + std::countr_zero(rest);
                for (Direction d : DIRECTIONS) {
                    if (!pushable[d].has(box)) continue;
                    State next{state.boxes, 0, static_cast<std::uint16_t>(box), static_cast<std::uint16_t>(d), front};
                    next.boxes.clear(box);
                    next.boxes.set(box + board.step[d]);
                    const Bits<N> after = board.reach_after(reach, next.boxes, box, box + board.step[d]);
                    next.player = static_cast<std::uint16_t>(after.lowest());
                    const auto found = states.add(next);
                    if (found.index == States<State>::NONE) return budget.out_of_memory(outcome);
                    if (found.fresh && !board.stray_box && (next.boxes - board.goals).none())
                        return rebuild(board, states, found.index, outcome);
                }
            }
    }
}

}  // namespace maskoban
