// How many pushes a lone box needs from a cell to a goal, whatever side the player is on.
#pragma once

#include <vector>

#include "board.hpp"

namespace maskoban {

inline constexpr std::uint16_t FAR = 0x3FFF;  // no way; small enough that sums of a few do not overflow int

// One row of distances a goal, found by pulling a box back from it layer by layer.
template <int N>
struct Distances {
    int goals = 0;
    std::vector<std::uint16_t> table;  // [goal][cell]

    void find(const Board<N>& board) {
        goals = board.goals.count();
        table.assign(static_cast<std::size_t>(goals) * N * 64, FAR);
        Bits<N> beyond[4];
        for (Direction d : DIRECTIONS) beyond[d] = board.floor & board.moved(board.floor, opposite(d));
        int goal = 0;
        each(board.goals, [&](int cell) {
            std::uint16_t* row = &table[static_cast<std::size_t>(goal++) * N * 64];
            Bits<N> seen = Bits<N>::cell(cell), layer = seen;
            for (std::uint16_t depth = 0; layer.any(); ++depth) {
                each(layer, [&](int c) { row[c] = depth; });
                Bits<N> next;
                for (Direction d : DIRECTIONS) next |= board.moved(layer, d) & beyond[d];
                layer = next - seen;
                seen |= layer;
            }
        });
    }

    std::uint16_t operator()(int goal, int cell) const {
        return table[static_cast<std::size_t>(goal) * N * 64 + cell];
    }
};

}  // namespace maskoban
