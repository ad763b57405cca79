// Corrals: parts of the floor the player cannot reach. Where the boxes around one can never get home, even with most of
// the other boxes off the board, the position is dead.
#pragma once

#include <unordered_map>

#include "memory.hpp"
#include "relaxed.hpp"

namespace maskoban {

class Corrals {
public:
    Corrals(const Maze& maze, Memory& memory)
        : maze_(maze), memory_(memory), field_(maze), freezing_(maze), game_(maze), done_(maze.cells + 1) {}

    // True when the boxes around a corral are proved lost. What is learned about them is kept.
    bool dead(const std::vector<Cell>& boxes, Cell player) {
        field_.set(boxes);
        field_.flood(player);
        if (field_.size() + static_cast<int>(boxes.size()) == maze_.cells) return false;
        std::fill(done_.begin(), done_.end(), std::uint8_t{0});
        for (int i = 0; i < field_.size(); ++i) done_[field_.cells()[i]] = 1;
        fixed_.clear();
        for (Cell c : boxes)
            if (maze_.goal[c] && freezing_.fixed(field_, c)) fixed_.push_back(c);
        all_.clear();
        int corrals = 0;
        for (int c = 0; c < maze_.cells; ++c) {
            if (done_[c] || field_.has(static_cast<Cell>(c))) continue;
            field_.flood(static_cast<Cell>(c));
            around_.clear();
            for (int i = 0; i < field_.size(); ++i) {
                const Cell inside = field_.cells()[i];
                done_[inside] = 1;
                for (const Cell beside : maze_.next[inside])
                    if (beside != maze_.wall() && field_.has(beside)) around_.push_back(beside);
            }
            all_.insert(all_.end(), around_.begin(), around_.end());
            if (lost(around_, player)) return true;
            ++corrals;
        }
        return corrals > 1 && lost(all_, player);
    }

private:
    static constexpr std::size_t MOST_POSITIONS = 100;
    static constexpr std::size_t MOST_LEARNED = 50'000;

    struct Hash {
        std::size_t operator()(const std::vector<Cell>& cells) const {
            std::uint64_t hash = 0;
            for (Cell c : cells) hash = (hash ^ c) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
            return hash;
        }
    };

    // Whether these boxes are lost when all others but the frozen ones are off the board.
    bool lost(std::vector<Cell>& boxes, Cell player) {
        std::sort(boxes.begin(), boxes.end());
        boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
        std::erase_if(boxes, [&](Cell c) { return std::find(fixed_.begin(), fixed_.end(), c) != fixed_.end(); });
        if (std::all_of(boxes.begin(), boxes.end(), [&](Cell c) { return maze_.goal[c]; })) return false;
        key_ = boxes;
        key_.push_back(maze_.wall());
        key_.insert(key_.end(), fixed_.begin(), fixed_.end());
        alone_.set(boxes);
        for (Cell c : fixed_) alone_.put(c);
        key_.push_back(alone_.flood(player));
        if (const auto known = learned_.find(key_); known != learned_.end()) return known->second;
        const bool lost = game_.lost(boxes, fixed_, player, MOST_POSITIONS);
        if (learned_.size() == MOST_LEARNED) {
            learned_.clear();
            memory_.release(claimed_);
            claimed_ = 0;
        }
        const std::size_t bytes = sizeof(key_) + key_.size() * sizeof(Cell) + 64;
        if (memory_.claim(bytes)) claimed_ += bytes, learned_.emplace(key_, lost);
        return lost;
    }

    const Maze& maze_;
    Memory& memory_;
    Field field_, alone_{maze_};
    Freezing freezing_;
    RelaxedGame game_;
    std::vector<std::uint8_t> done_;
    std::vector<Cell> fixed_, around_, all_, key_;
    std::unordered_map<std::vector<Cell>, bool, Hash> learned_;
    std::size_t claimed_ = 0;
};

}  // namespace maskoban
