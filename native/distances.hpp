// How many pushes a lone box needs from a cell to a goal, depending on the side of it the player is on.
#pragma once

#include <vector>

#include "board.hpp"
#include "outcome.hpp"

namespace maskoban {

// No way at all. More than six boxes can need together on the largest board, and twice it fits 16 bits.
inline constexpr int NO_PATH = 0x7FFF;

// Which sides of a box the player can walk between when the box is alone: same[s][t] holds the cells where it
// can get from side s of a box there to side t. As long as a box is not pushed, the player stays on its side of it.
template <int N>
struct Sides {
    Bits<N> same[4][4];

    Sides(const Board<N>& board, const Bits<N>& floor, Budget& budget) {
        Bits<N> beside[4];  // cells whose neighbour on that side is floor
        for (Direction s : DIRECTIONS) beside[s] = floor & board.moved(floor, opposite(s));
        each(floor, [&](int c) {
            if (!board.may_cut(floor, c)) {
                for (Direction s : DIRECTIONS)
                    for (Direction t : DIRECTIONS)
                        if (beside[s].has(c) && beside[t].has(c)) same[s][t].set(c);
                return;
            }
            budget.look_at_clock();
            const Bits<N> free = floor - Bits<N>::cell(c);
            Bits<N> walked;
            for (Direction s : DIRECTIONS) {
                if (!beside[s].has(c) || walked.has(c + board.step[s])) continue;
                const Bits<N> part = board.flood(Bits<N>::cell(c + board.step[s]), free);
                walked |= part;
                for (Direction t : DIRECTIONS)
                    for (Direction u : DIRECTIONS)
                        if (beside[t].has(c) && beside[u].has(c) && part.has(c + board.step[t]) &&
                            part.has(c + board.step[u]))
                            same[t][u].set(c);
            }
        });
    }
};

inline constexpr int ANY_SIDE = 4;

// Found by pulling a box back from every goal, layer by layer. The row of a cell and side lies together, because a
// search asks how far it is from there to all goals. Boxes that are frozen for good are walls that keep their goals.
template <int N>
class Distances {
public:
    // Takes seconds for a large room full of goals, hence the budget.
    Distances(const Board<N>& board, const Bits<N>& frozen, Budget& budget)
        : frozen_(frozen), goals_(board.goals.count()),
          table_(bytes(board) / sizeof(std::uint16_t), static_cast<std::uint16_t>(NO_PATH)) {
        const Bits<N> floor = board.floor - frozen;
        const Sides<N> sides(board, floor, budget);
        Bits<N> beyond[4];
        for (Direction d : DIRECTIONS) beyond[d] = floor & board.moved(floor, opposite(d));
        int goal = 0;
        each(board.goals, [&](int cell) {
            budget.look_at_clock();
            find(board, sides, beyond, cell, goal++);
        });
    }

    static std::size_t bytes(const Board<N>& board) {
        return static_cast<std::size_t>(board.goals.count()) * board.height * board.width * 5 * sizeof(std::uint16_t);
    }

    int goals() const { return goals_; }
    const Bits<N>& frozen() const { return frozen_; }
    // Cells a box can be pushed to in this direction and still get to a goal.
    const Bits<N>* live() const { return live_; }
    // Distances from a cell to every goal with the player on that side, or on the best.
    const std::uint16_t* from(int cell, int side) const {
        return &table_[(static_cast<std::size_t>(cell) * 5 + side) * goals_];
    }

private:
    void find(const Board<N>& board, const Sides<N>& sides, const Bits<N>* beyond, int cell, int goal) {
        const auto note = [&](const Bits<N>& cells, int side, int depth) {
            each(cells, [&](int c) {
                table_[(static_cast<std::size_t>(c) * 5 + side) * goals_ + goal] = static_cast<std::uint16_t>(depth);
            });
        };
        const Bits<N> there = Bits<N>::cell(cell);
        Bits<N> layer[4] = {there, there, there, there}, seen[4] = {there, there, there, there}, seen_any = there;
        for (int side = 0; side <= ANY_SIDE; ++side) note(there, side, 0);
        if (!frozen_.has(cell))
            for (int depth = 1;; ++depth) {
                // A box on c with the player on side s was pushed there from the next cell on that side.
                Bits<N> pulled[4], next[4], all;
                for (Direction s : DIRECTIONS) pulled[s] = board.moved(layer[s], s) & beyond[s];
                for (Direction s : DIRECTIONS) {
                    for (Direction t : DIRECTIONS) next[s] |= pulled[t] & sides.same[t][s];
                    next[s] -= seen[s];
                }
                for (Direction s : DIRECTIONS) {
                    note(next[s], s, depth);
                    seen[s] |= next[s];
                    all |= layer[s] = next[s];
                }
                if (all.none()) break;
                note(all - seen_any, ANY_SIDE, depth);
                seen_any |= all;
            }
        for (Direction d : DIRECTIONS) live_[d] |= seen[opposite(d)];
    }

    Bits<N> frozen_, live_[4];
    int goals_;
    std::vector<std::uint16_t> table_;  // [cell][side][goal]
};

}  // namespace maskoban
