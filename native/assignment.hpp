// Whether all boxes can have goals of their own. Boxes frozen on goals are walls; all others are out of each other's way.
#pragma once

#include <unordered_map>

#include "freezing.hpp"
#include "memory.hpp"

namespace maskoban {

class Assignment {
public:
    Assignment(const Maze& maze, Memory& memory)
        : maze_(maze), memory_(memory), field_(maze), alone_(maze), freezing_(maze), words_((maze.goals.size() + 63) / 64) {}

    // True when some box cannot have a goal however the goals are shared out.
    bool dead(const std::vector<Cell>& boxes) {
        field_.set(boxes);
        frozen_.clear();
        others_.clear();
        for (Cell c : boxes) (maze_.goal[c] && freezing_.fixed(field_, c) ? frozen_ : others_).push_back(c);
        const Goals* goals = reachable_goals();
        if (goals == nullptr) return false;
        owner_.assign(maze_.goals.size(), maze_.wall());
        return std::any_of(others_.begin(), others_.end(), [&](Cell c) {
            tried_.assign(words_, 0);
            return !give_goal(*goals, c);
        });
    }

private:
    using Goals = std::vector<std::uint64_t>;  // words_ for each cell: the goals a box there could be pushed to

    struct Hash {
        std::size_t operator()(const std::vector<Cell>& cells) const {
            std::uint64_t hash = 0;
            for (Cell c : cells) hash = (hash ^ c) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
            return hash;
        }
    };

    // Null where the memory limit forbids another table.
    const Goals* reachable_goals() {
        if (const auto known = tables_.find(frozen_); known != tables_.end()) return &known->second;
        const std::size_t bytes = (static_cast<std::size_t>(maze_.cells) * words_) * sizeof(std::uint64_t) + 128;
        if (claimed_ + bytes > MOST_BYTES) {
            tables_.clear();
            memory_.release(claimed_);
            claimed_ = 0;
        }
        if (!memory_.claim(bytes)) return nullptr;
        claimed_ += bytes;
        Goals& goals = tables_[frozen_];
        goals.assign(maze_.cells * words_, 0);
        alone_.set(frozen_);
        for (std::size_t g = 0; g < maze_.goals.size(); ++g) {
            const Cell goal = maze_.goals[g];
            if (alone_.has(goal)) continue;
            const auto note = [&](Cell c) { goals[c * words_ + g / 64] |= std::uint64_t{1} << (g % 64); };
            note(goal);
            std::uint8_t left = 15;  // sides the player may stand on
            for (int d = 0; d < 4; ++d) {
                const Cell player = maze_.next[goal][d];
                if (!(left >> d & 1) || alone_.has(player)) continue;
                alone_.put(goal);
                alone_.flood(player);
                const std::uint8_t sides = alone_.sides(goal);
                left &= ~sides;
                alone_.walk_box<true>(goal, sides, [&](const Stop& stop, int) { return note(stop.cell), true; });
                alone_.take(goal);
            }
        }
        return &goals;
    }

    bool give_goal(const Goals& goals, Cell c) {
        for (std::size_t w = 0; w < words_; ++w)
            while (const std::uint64_t rest = goals[c * words_ + w] & ~tried_[w]) {
                const std::size_t goal = w * 64 + std::countr_zero(rest);
                tried_[w] |= rest & -rest;
                if (owner_[goal] == maze_.wall() || give_goal(goals, owner_[goal])) return owner_[goal] = c, true;
            }
        return false;
    }

    static constexpr std::size_t MOST_BYTES = std::size_t{1} << 25;

    const Maze& maze_;
    Memory& memory_;
    Field field_, alone_;
    Freezing freezing_;
    std::size_t words_;
    std::vector<Cell> frozen_, others_, owner_;
    std::vector<std::uint64_t> tried_;
    std::unordered_map<std::vector<Cell>, Goals, Hash> tables_;
    std::size_t claimed_ = 0;
};

}  // namespace maskoban
