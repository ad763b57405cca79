// How many pushes a lone box needs from a cell to a goal, whatever side the player is on.
#pragma once

#include <vector>

#include "board.hpp"

namespace maskoban {

// No way at all. More than six boxes can need together on the largest board, and twice it fits 16 bits.
inline constexpr int FAR = 0x7FFF;

// Found by pulling a box back from every goal, layer by layer. Rows of a cell lie together, because a search
// asks how far one cell is from all goals. Boxes that are frozen for good are walls that keep their goals.
template <int N>
class Distances {
public:
    Distances(const Board<N>& board, const Bits<N>& frozen)
        : frozen_(frozen), live_(frozen), goals_(board.goals.count()),
          table_(static_cast<std::size_t>(goals_) * board.height * board.width, FAR) {
        const Bits<N> floor = board.floor - frozen;
        Bits<N> beyond[4];
        for (Direction d : DIRECTIONS) beyond[d] = floor & board.moved(floor, opposite(d));
        int goal = 0;
        each(board.goals, [&](int cell) {
            Bits<N> seen = Bits<N>::cell(cell), layer = seen;
            const bool taken = frozen.has(cell);
            for (std::uint16_t depth = 0; layer.any(); ++depth) {
                each(layer, [&](int c) { table_[static_cast<std::size_t>(c) * goals_ + goal] = depth; });
                if (taken) break;
                Bits<N> next;
                for (Direction d : DIRECTIONS) next |= board.moved(layer, d) & beyond[d];
                layer = next - seen;
                seen |= layer;
            }
            live_ |= seen;
            ++goal;
        });
    }

    static std::size_t bytes(const Board<N>& board) {
        return static_cast<std::size_t>(board.goals.count()) * board.height * board.width * sizeof(std::uint16_t);
    }

    const Bits<N>& frozen() const { return frozen_; }
    // Cells from which some goal can still be reached.
    const Bits<N>& live() const { return live_; }
    int goals() const { return goals_; }
    // Distances from a cell to every goal.
    const std::uint16_t* from(int cell) const { return &table_[static_cast<std::size_t>(cell) * goals_]; }

private:
    Bits<N> frozen_, live_;
    int goals_;
    std::vector<std::uint16_t> table_;  // [cell][goal]
};

}  // namespace maskoban
