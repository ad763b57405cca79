// How many pushes a lone box needs from a cell to a goal, whatever side the player is on.
#pragma once

#include <vector>

#include "board.hpp"

namespace maskoban {

// No way at all. More than six boxes can need together on the largest board, and twice it fits 16 bits.
inline constexpr int FAR = 0x7FFF;

// Found by pulling a box back from every goal, layer by layer. Rows of a cell lie together, because a search
// asks how far one cell is from all goals.
template <int N>
class Distances {
public:
    void find(const Board<N>& board) {
        goals_ = board.goals.count();
        table_.assign(static_cast<std::size_t>(goals_) * board.height * board.width, FAR);
        Bits<N> beyond[4];
        for (Direction d : DIRECTIONS) beyond[d] = board.floor & board.moved(board.floor, opposite(d));
        int goal = 0;
        each(board.goals, [&](int cell) {
            Bits<N> seen = Bits<N>::cell(cell), layer = seen;
            for (std::uint16_t depth = 0; layer.any(); ++depth) {
                each(layer, [&](int c) { table_[static_cast<std::size_t>(c) * goals_ + goal] = depth; });
                Bits<N> next;
                for (Direction d : DIRECTIONS) next |= board.moved(layer, d) & beyond[d];
                layer = next - seen;
                seen |= layer;
            }
            ++goal;
        });
    }

    int goals() const { return goals_; }
    // Distances from a cell to every goal.
    const std::uint16_t* from(int cell) const { return &table_[static_cast<std::size_t>(cell) * goals_]; }

private:
    int goals_ = 0;
    std::vector<std::uint16_t> table_;  // [cell][goal]
};

}  // namespace maskoban
