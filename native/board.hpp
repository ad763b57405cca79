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

// For the eight neighbours of a cell, clockwise from the one above: do those beside the cell (even places) lie in
// more than one run around it?
inline constexpr auto CUTS = [] {
    std::array<bool, 256> cuts{};
    for (int ring = 0; ring < 256; ++ring) {
        int runs = 0;
        for (int place = 0; place < 8; place += 2) {
            const auto has = [&](int p) { return ring >> ((p + 8) % 8) & 1; };
            // Counts every run at its last cell that lies beside.
            if (has(place) && !(has(place + 1) && has(place + 2))) ++runs;
        }
        cuts[ring] = runs > 1;
    }
    return cuts;
}();

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

    // What the player can walk to over free cells, when everything in `seen` is reached already and only the cells
    // of `edge`, a part of it, may have neighbours that are not.
    Bits<N> flood(Bits<N> seen, const Bits<N>& edge, const Bits<N>& free) const {
        if constexpr (N <= 4) {
            const Bits<N> to_left = free & not_right, to_right = free & not_left;
            for (;;) {
                const Bits<N> grown = seen | (seen.lowered(1) & to_left) | (seen.raised(1) & to_right) |
                                      ((seen.lowered(width) | seen.raised(width)) & free);
                if (grown == seen) return seen;
                seen = grown;
            }
        } else {
            // On big boards walking a list of cells beats shifting dozens of words for every step.
            std::uint16_t todo[N * 64];
            int tail = 0;
            each(edge, [&](int c) { todo[tail++] = static_cast<std::uint16_t>(c); });
            for (int head = 0; head < tail; ++head) {
                const int c = todo[head];
                const auto visit = [&](bool inside, int next) {
                    if (!inside || !free.has(next) || seen.has(next)) return;
                    seen.set(next);
                    todo[tail++] = static_cast<std::uint16_t>(next);
                };
                visit(c >= width, c - width);
                visit(c + width < height * width, c + width);
                visit(not_left.has(c), c - 1);
                visit(not_right.has(c), c + 1);
            }
            return seen;
        }
    }
    Bits<N> flood(const Bits<N>& seeds, const Bits<N>& free) const { return flood(seeds, seeds, free); }

    Bits<N> start_reach() const { return flood(Bits<N>::cell(player), floor - start); }

    // What the player can reach after pushing a box from `box` to `to`, knowing what it could reach before. Mostly
    // that is the same region with one cell more and one less, and no flood is needed.
    Bits<N> reach_after(Bits<N> reach, const Bits<N>& boxes_after, int box, int to) const {
        const Bits<N> free = floor - boxes_after, here = Bits<N>::cell(box);
        reach |= here;
        if (may_cut(reach, to)) return flood(here, free);
        reach.clear(to);
        if ((around(here) & free).within(reach)) return reach;
        return flood(reach, here, free);
    }

    Bits<N> around(const Bits<N>& set) const {
        return moved(set, UP) | moved(set, DOWN) | moved(set, LEFT) | moved(set, RIGHT);
    }

    // Whether taking the cell out of a connected region could fall it apart, judged by its eight neighbours.
    bool may_cut(const Bits<N>& region, int c) const {
        const bool up = c >= width, down = c + width < height * width, left = not_left.has(c), right = not_right.has(c);
        const auto bit = [&](bool inside, int next, int place) { return inside && region.has(next) ? 1 << place : 0; };
        const int ring = bit(up, c - width, 0) | bit(up && right, c - width + 1, 1) | bit(right, c + 1, 2) |
                         bit(down && right, c + width + 1, 3) | bit(down, c + width, 4) |
                         bit(down && left, c + width - 1, 5) | bit(left, c - 1, 6) | bit(up && left, c - width - 1, 7);
        return CUTS[ring];
    }

    // The boxes that can be pushed in direction d to a live cell that holds no box.
    Bits<N> pushable(const Bits<N>& boxes, const Bits<N>& reach, const Bits<N>& live, Direction d) const {
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
