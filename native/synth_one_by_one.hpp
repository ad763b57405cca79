// Whether the boxes of a board can be delivered one after the other, each in one go while the others stand still.
#pragma once

#include <unordered_set>

#include "field.hpp"
#include "synth_room.hpp"

namespace maskoban::synth {

// Where the boxes are, and a cell of the player's region.
struct Position {
    std::vector<Cell> boxes;
    Cell player;
};

// A depth-first search that gives up early and then says no: a board on which it does is no easy one.
class OneByOne {
public:
    // The field must be empty, and is left so.
    OneByOne(const Maze& maze, Field& field) : maze_(maze), field_(field) {}

    bool solves(const Position& start) {
        walks_left_ = 40 * static_cast<int>(start.boxes.size());
        return deliver(start);
    }

private:
    struct End {
        std::size_t box;
        Cell goal, player;
    };

    // A delivered box leaves the position but stays in the field, where it is a wall.
    bool deliver(const Position& at) {
        if (at.boxes.empty()) return true;
        for (const End& end : find_ends(at)) {
            Position next = at;
            next.boxes.erase(next.boxes.begin() + static_cast<std::ptrdiff_t>(end.box));
            next.player = end.player;
            field_.put(end.goal);
            const bool solved = deliver(next);
            field_.take(end.goal);
            if (solved) return true;
            if (walks_left_ <= 0) return false;
        }
        return false;
    }

    // Which boxes can be delivered now, and where to. None where the position was seen before.
    std::vector<End> find_ends(const Position& at) {
        std::vector<End> ends;
        for (Cell box : at.boxes) field_.put(box);
        std::uint64_t identity = Random(2, field_.flood(at.player)).next();
        for (Cell box : at.boxes) identity += Random(1, box).next();
        for (Cell goal : maze_.goals) identity += field_.has(goal) ? Random(3, goal).next() : 0;
        const bool fresh = seen_.insert(identity).second;
        for (std::size_t i = 0; fresh && i < at.boxes.size() && walks_left_ > 0; ++i) {
            field_.flood(at.player);
            const std::uint8_t sides = field_.sides(at.boxes[i]);
            if (sides == 0) continue;
            --walks_left_;
            field_.walk_box<false>(at.boxes[i], sides, [&](const Stop& stop, int) {
                if (maze_.goal[stop.cell]) ends.push_back({i, stop.cell, maze_.next[stop.cell][stop.along ^ 1]});
                return true;
            });
        }
        for (Cell box : at.boxes) field_.take(box);
        return ends;
    }

    const Maze& maze_;
    Field& field_;
    int walks_left_ = 0;
    std::unordered_set<std::uint64_t> seen_;
};

}  // namespace maskoban::synth
