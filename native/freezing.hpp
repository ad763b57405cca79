// Boxes on a maze that can never be pushed again.
#pragma once

#include "field.hpp"

namespace maskoban {

class Freezing {
public:
    explicit Freezing(const Maze& maze) : maze_(maze), held_(maze.cells + 1, 0) {}

    // Whether the box on c can never move again.
    bool fixed(const Field& field, Cell c) {
        off_goal_ = false;
        const bool fixed = holds(field, c);
        for (Cell suspect : suspects_) held_[suspect] = 0;
        suspects_.clear();
        return fixed;
    }

    // Whether it is so, and it or a box that holds it is off goal for ever.
    bool dead(const Field& field, Cell c) { return fixed(field, c) && off_goal_; }

private:
    // Boxes that are looked at are suspects, and count as walls while their neighbours are looked at.
    bool holds(const Field& field, Cell c) {
        const std::size_t before = suspects_.size();
        const bool off_goal = off_goal_;
        held_[c] = 1;
        suspects_.push_back(c);
        if (holds_along(field, c, UP) && holds_along(field, c, LEFT)) {
            off_goal_ |= !maze_.goal[c];
            return true;
        }
        // This box can move, so what was concluded from its standing still does not hold.
        for (; suspects_.size() > before; suspects_.pop_back()) held_[suspects_.back()] = 0;
        off_goal_ = off_goal;
        return false;
    }

    bool holds_along(const Field& field, Cell c, Direction d) {
        const Cell one = maze_.next[c][d], other = maze_.next[c][opposite(d)];
        if (one == maze_.wall() || other == maze_.wall() || held_[one] || held_[other]) return true;
        if (!maze_.live[one] && !maze_.live[other]) return true;
        return (field.has(one) && holds(field, one)) || (field.has(other) && holds(field, other));
    }

    const Maze& maze_;
    std::vector<std::uint8_t> held_;
    std::vector<Cell> suspects_;
    bool off_goal_ = false;
};

}  // namespace maskoban
