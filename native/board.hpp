// The player's room as sets of cells, and the two things every search asks of it: who can step or be pushed
// where, and what the player can reach.
#pragma once

#include "bits.hpp"
#include "grid.hpp"

namespace maskoban {

// The order in which every search tries directions; effort depends on it.
enum Direction { UP, DOWN, LEFT, RIGHT };

inline constexpr Direction DIRECTIONS[4] = {UP, DOWN, LEFT, RIGHT};
inline constexpr Direction opposite(Direction d) { return static_cast<Direction>(d ^ 1); }

template <int N>
struct Board {
    int height = 0, width = 0;
    Bits<N> floor;               // cells of the room
    Bits<N> goals;               // goals in the room
    Bits<N> live;                // cells a box may stand on: not dead
    Bits<N> not_left, not_right; // all but the first and the last column
    Bits<N> start;               // where the boxes are
    int player = 0;
    bool stray_box = false, stray_box_dead = false;
    int step[4] = {};            // what a direction adds to a cell's number

    // Every cell of the set moved one step; cells that leave the room must be masked off by the caller.
    Bits<N> moved(const Bits<N>& set, Direction d) const {
        switch (d) {
            case UP: return set.lowered(width);
            case DOWN: return set.raised(width);
            case LEFT: return (set & not_left).lowered(1);
            default: return (set & not_right).raised(1);
        }
    }

    // What the player can walk to from the seed cells over free cells. Seeds must be free.
    Bits<N> flood(Bits<N> seeds, const Bits<N>& free) const {
        if constexpr (N <= 4) {
            const Bits<N> to_left = free & not_right, to_right = free & not_left;
            for (;;) {
                Bits<N> grown = seeds | (seeds.lowered(1) & to_left) | (seeds.raised(1) & to_right) |
                                ((seeds.lowered(width) | seeds.raised(width)) & free);
                if (grown == seeds) return seeds;
                seeds = grown;
            }
        } else {
            // On big boards walking a list of cells beats shifting dozens of words for every step.
            std::uint16_t todo[N * 64];
            int tail = 0;
            each(seeds, [&](int c) { todo[tail++] = static_cast<std::uint16_t>(c); });
            for (int head = 0; head < tail; ++head) {
                const int c = todo[head], column = c % width;
                const auto visit = [&](bool inside, int next) {
                    if (!inside || !free.has(next) || seeds.has(next)) return;
                    seeds.set(next);
                    todo[tail++] = static_cast<std::uint16_t>(next);
                };
                visit(c >= width, c - width);
                visit(c + width < N * 64, c + width);
                visit(column > 0, c - 1);
                visit(column < width - 1, c + 1);
            }
            return seeds;
        }
    }

    // The boxes that can be pushed in direction d without landing on a wall, a box or a dead cell.
    Bits<N> pushable(const Bits<N>& boxes, const Bits<N>& reach, Direction d) const {
        return boxes & moved(reach, d) & moved(live - boxes, opposite(d));
    }
};

template <int N>
void find_live(Board<N>& board) {
    Bits<N> live = board.goals;
    for (;;) {
        Bits<N> grown = live;
        for (Direction d : DIRECTIONS) {
            // A pull in direction d needs the box's new cell and the one beyond, where the player ends.
            const Bits<N> room_beyond = board.floor & board.moved(board.floor, opposite(d));
            grown |= board.moved(live, d) & room_beyond;
        }
        if (grown == live) break;
        live = grown;
    }
    board.live = live;
}

template <int N>
void set_board(Board<N>& board, const Grid& grid, const Room& room) {
    board = Board<N>{};
    board.height = room.height, board.width = room.width;
    board.stray_box = room.stray_box, board.stray_box_dead = room.stray_box_dead;
    for (int row = 0; row < room.height; ++row)
        for (int column = 0; column < room.width; ++column) {
            const int c = row * room.width + column;
            if (column > 0) board.not_left.set(c);
            if (column < room.width - 1) board.not_right.set(c);
            const int from = (row + room.top) * grid.width + column + room.left;
            if (!room.inside[from]) continue;
            const std::uint8_t t = grid.tokens[from];
            board.floor.set(c);
            if (is_goal(t)) board.goals.set(c);
            if (is_box(t)) board.start.set(c);
            if (is_player(t)) board.player = c;
        }
    board.step[UP] = -board.width, board.step[DOWN] = board.width, board.step[LEFT] = -1, board.step[RIGHT] = 1;
    find_live(board);
}

}  // namespace maskoban
