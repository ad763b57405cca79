// The tie-break of mode pushes: among all solutions with the fewest pushes, one with the fewest moves.
#pragma once

#include <algorithm>

#include "guide.hpp"

namespace maskoban {

// Here the exact cell of the player counts, not its region.
template <int N>
struct MoveState {
    Bits<N> boxes;
    std::uint32_t parent, moves;
    std::uint16_t player;
    std::uint16_t pushed : 14, along : 2;

    std::uint64_t hash() const { return boxes.hash(player + 1u); }
    bool same(const MoveState& other) const { return boxes == other.boxes && player == other.player; }
};

// So many states are affordable; past them the push-optimal solution at hand is kept as it is. The tie-break is to
// cost no more than a few times what finding that solution cost, or a blink, and the larger the room, the more a
// state costs.
template <int N>
std::uint32_t most_move_states(const Board<N>& board, std::int64_t expanded) {
    constexpr std::int64_t FACTOR = 4, BLINK = 6'400'000, MOST = 200'000;
    const std::int64_t cells = static_cast<std::int64_t>(board.height) * board.width;
    return static_cast<std::uint32_t>(std::min(MOST, FACTOR * expanded + BLINK / cells));
}

// Goes push by push through every position from which `fewest` pushes in all are still possible. A position met
// after k pushes is never met usefully after more, so layer k only makes or betters positions of layer k + 1.
// False when it takes too many states, or a limit stops it.
template <int N>
bool find_fewest_moves(const Board<N>& board, Guide<N>& guide, int fewest, Memory& memory, Budget& budget,
                       Outcome& outcome) {
    using State = MoveState<N>;
    constexpr std::uint32_t NONE = States<State>::NONE;
    const std::uint32_t most = most_move_states(board, outcome.expanded);
    States<State> states(memory);
    if (states.add({board.start, NONE, 0, static_cast<std::uint16_t>(board.player), 0, 0}).index == NONE) return false;
    std::uint32_t begin = 0;
    for (int pushes = 1; pushes <= fewest; ++pushes) {
        const std::uint32_t end = states.size();
        for (std::uint32_t index = begin; index < end; ++index) {
            if (states.size() > most || budget.spent(outcome)) return false;
            ++outcome.expanded;
            const State state = states[index];
            const Bits<N> free = board.floor - state.boxes;
            const Bits<N>* live = guide.look_at(state.boxes, board.flood(Bits<N>::cell(state.player), free));
            Bits<N> stand[4];  // where the player must be to push some box
            for (Direction d : DIRECTIONS)
                stand[d] = board.moved(state.boxes & board.moved(live[d] - state.boxes, opposite(d)), opposite(d));
            bool memory_left = true;
            Bits<N> seen = Bits<N>::cell(state.player), layer = seen;
            for (std::uint32_t walked = 0; layer.any(); ++walked) {
                for (Direction d : DIRECTIONS)
                    each(layer & stand[d], [&](int from) {
                        const auto visit = [&](int box, Direction, const Bits<N>& boxes, int bound) {
                            if (pushes + bound > fewest) return true;
                            const State next{boxes, index, state.moves + walked + 1, static_cast<std::uint16_t>(box),
                                             static_cast<std::uint16_t>(box), static_cast<std::uint16_t>(d)};
                            const auto found = states.add(next);
                            memory_left &= found.index != NONE;
                            if (found.index != NONE && found.index >= end && next.moves < states[found.index].moves)
                                states[found.index] = next;
                            return true;
                        };
                        guide.try_push(state.boxes, from + board.step[d], d, visit);
                    });
                Bits<N> next;
                for (Direction d : DIRECTIONS) next |= board.moved(layer, d);
                layer = (next & free) - seen;
                seen |= layer;
            }
            if (!memory_left) return false;
        }
        begin = end;
    }
    std::uint32_t best = begin;  // the last layer holds nothing but solved positions
    for (std::uint32_t i = begin; i < states.size(); ++i)
        if (states[i].moves < states[best].moves) best = i;
    rebuild(board, states, best, outcome);
    return true;
}

}  // namespace maskoban
