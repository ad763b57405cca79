// Boxes on a maze: where the player can walk, and where a single box can be pushed or pulled while the others stay.
#pragma once

#include <algorithm>
#include <vector>

#include "cuts.hpp"

namespace maskoban {

// A box on a cell, and the sides of it the player can get to (a bit a direction).
struct Stop {
    Cell cell;
    std::uint8_t sides;
    std::uint8_t along;   // the direction it was moved in last
    std::int32_t before;  // the stop it came from; -1 at the first
    std::int32_t steps;
};

class Field {
public:
    explicit Field(const Maze& maze)
        : maze_(maze), box_(maze.cells + 1, 0), seen_(maze.cells + 1, 0), been_(maze.cells + 1, 0), queue_(maze.cells + 1),
          cuts_(maze) {
        box_[maze.wall()] = 1;
    }

    const Maze& maze() const { return maze_; }
    bool has(Cell c) const { return box_[c]; }  // a box or a wall
    bool free(Cell c) const { return !box_[c]; }
    void put(Cell c) { box_[c] = 1; }
    void take(Cell c) { box_[c] = 0; }
    void clear() {
        std::fill(box_.begin(), box_.end() - 1, std::uint8_t{0});
    }
    template <class Cells>
    void set(const Cells& boxes) {
        clear();
        for (Cell c : boxes) put(c);
    }

    // Floods the free cells around `from`; reached() then tells them. Returns the lowest.
    Cell flood(Cell from) {
        const std::uint32_t stamp = ++stamp_;
        return flood(from, stamp);
    }
    bool reached(Cell c) const { return seen_[c] == stamp_; }
    int size() const { return size_; }  // cells of the last flood
    const Cell* cells() const { return queue_.data(); }

    // Floods the free cells around `from`, and returns how many parts all free cells fall into.
    int flood_parts(Cell from) {
        const std::uint32_t others = ++stamp_, stamp = ++stamp_;
        flood(from, stamp);
        const int size = size_;
        int n = 1;
        for (int c = 0; c < maze_.cells; ++c)
            if (!box_[c] && seen_[c] < others) flood(static_cast<Cell>(c), others), ++n;
        size_ = size;
        return n;
    }

    // Sides of a cell the flooded player stands on.
    std::uint8_t sides(Cell c) const {
        const auto& next = maze_.next[c];
        return static_cast<std::uint8_t>(reached(next[0]) | reached(next[1]) << 1 | reached(next[2]) << 2 |
                                         reached(next[3]) << 3);
    }

    // Everywhere the box can be moved to by pushes alone (or pulls alone), the player starting on these sides of it.
    // In a game played backwards pushes and pulls change places.
    // visit(stop, number) is called for every new stop but the first, until it returns false. Stops are kept in stops().
    template <bool PULL, class Visit>
    void walk_box(Cell box, std::uint8_t sides, Visit visit) {
        const bool pull = PULL != maze_.backward;
        const std::uint32_t stamp = ++walk_;
        if (stamp >= 1u << 16) {
            std::fill(been_.begin(), been_.end(), 0u);
            walk_ = 1;
            return walk_box<PULL>(box, sides, visit);
        }
        take(box);
        cuts_found_ = false;
        stops_.clear();
        stops_.push_back({box, sides, 0, -1, 0});
        been_[box] = stamp << 16 | 1u << sides;
        for (std::size_t i = 0; i < stops_.size(); ++i) {
            const Stop at = stops_[i];
            for (int d = 0; d < 4; ++d) {
                const int stand = pull ? d : d ^ 1;  // the side the player needs
                if (!(at.sides >> stand & 1)) continue;
                const Cell to = maze_.next[at.cell][d];
                if (box_[to] || !(PULL || maze_.live[to])) continue;
                const Cell player = pull ? maze_.next[to][d] : at.cell;
                if (box_[player]) continue;
                const std::uint8_t mask = sides_from(to, player);
                std::uint32_t& been = been_[to];
                if (been >> 16 != stamp) been = stamp << 16;
                if (been >> mask & 1) continue;
                been |= 1u << mask;
                stops_.push_back({to, mask, static_cast<std::uint8_t>(d), static_cast<std::int32_t>(i), at.steps + 1});
                if (!visit(stops_.back(), static_cast<int>(stops_.size()) - 1)) return put(box);
            }
        }
        put(box);
    }
    const std::vector<Stop>& stops() const { return stops_; }

    // What the floor falls into when one more cell is taken.
    const Cuts& cuts() {
        if (!cuts_found_) cuts_.find(box_);
        cuts_found_ = true;
        return cuts_;
    }

private:
    // Which sides of a box about to stand on `cell` the player can get to from `player`, beside it.
    std::uint8_t sides_from(Cell cell, Cell player) {
        const int open = open_around(cell);
        if (!CUTS[open])
            return static_cast<std::uint8_t>((open & 1) | (open >> 4 & 1) << 1 | (open >> 6 & 1) << 2 | (open >> 2 & 1) << 3);
        const Pieces pieces = cuts().without(cell);
        const int piece = pieces.of(cuts_.number(player));
        int sides = 0;
        for (int d = 0; d < 4; ++d) {
            const Cell there = maze_.next[cell][d];
            sides |= (!box_[there] && pieces.of(cuts_.number(there)) == piece) << d;
        }
        return static_cast<std::uint8_t>(sides);
    }

    int open_around(Cell cell) const {
        int open = 0;
        for (int i = 0; i < 8; ++i) open |= !box_[maze_.ring[cell][i]] << i;
        return open;
    }

    Cell flood(Cell from, std::uint32_t stamp) {
        Cell* const queue = queue_.data();
        int tail = 1;
        queue[0] = from;
        seen_[from] = stamp;
        Cell lowest = from;
        for (int head = 0; head < tail; ++head) {
            const auto& next = maze_.next[queue[head]];
            for (int d = 0; d < 4; ++d) {
                const Cell there = next[d];
                if (box_[there] || seen_[there] == stamp) continue;
                seen_[there] = stamp;
                lowest = std::min(lowest, there);
                queue[tail++] = there;
            }
        }
        size_ = tail;
        return lowest;
    }

    const Maze& maze_;
    std::vector<std::uint8_t> box_;
    std::vector<std::uint32_t> seen_, been_;
    std::vector<Cell> queue_;
    std::vector<Stop> stops_;
    Cuts cuts_;
    bool cuts_found_ = false;  // of the walk under way
    std::uint32_t stamp_ = 0, walk_ = 0;
    int size_ = 0;
};

}  // namespace maskoban
