// The rules of the game: one step on one board, without branches, because random play defeats branch prediction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "grid.hpp"

namespace maskoban::environment {

inline constexpr double STEP_REWARD = -0.1, SOLVED_REWARD = 10;

enum Direction : std::uint8_t { UP, DOWN, LEFT, RIGHT, STAY, DIRECTIONS };

// What one step does to the player's cell, the cell before it and the cell beyond that one.
struct Move {
    std::int32_t goals, moved, pushed, steps;  // what it adds to the counts of a game; the first may be -1
    std::uint8_t here, there, beyond;          // the tiles afterwards
};

constexpr Move find_move(std::uint8_t here, std::uint8_t there, std::uint8_t beyond) {
    const bool box = there == BOX || there == BOX_ON_GOAL;
    const bool free = there == FLOOR || there == GOAL, room = beyond == FLOOR || beyond == GOAL;
    if (!free && !(box && room)) return {0, 0, 0, 1, here, there, beyond};
    const bool goal = there == GOAL || there == BOX_ON_GOAL;
    Move move{0, 1, box, 1, FLOOR, PLAYER, beyond};
    if (here == PLAYER_ON_GOAL) move.here = GOAL;
    if (goal) move.there = PLAYER_ON_GOAL;
    if (box) {
        move.beyond = static_cast<std::uint8_t>(beyond == GOAL ? BOX_ON_GOAL : BOX);
        move.goals = (beyond == GOAL) - goal;
    }
    return move;
}

// Every move by its three tiles: one bit says whether the player stands on a goal, three bits for each of the others.
inline constexpr auto MOVES = [] {
    std::array<Move, 128> moves{};
    for (std::uint8_t key = 0; key < 128; ++key)
        moves[key] = find_move(key & 64 ? PLAYER_ON_GOAL : PLAYER, key >> 3 & 7, key & 7);
    return moves;
}();
static_assert((PLAYER_ON_GOAL & 4) != 0 && (PLAYER & 4) == 0);

inline std::size_t move_key(std::uint8_t here, std::uint8_t there, std::uint8_t beyond) {
    return static_cast<std::size_t>((here & 4) << 4 | (there & 7) << 3 | (beyond & 7));
}

// The neighbour of every cell in every direction; beyond the edge it is the cell itself, where no move leads.
class Neighbours {
public:
    Neighbours(int height, int width) : cells_(height * width), table_(static_cast<std::size_t>(DIRECTIONS * cells_)) {
        constexpr int DR[DIRECTIONS] = {-1, 1, 0, 0, 0}, DC[DIRECTIONS] = {0, 0, -1, 1, 0};
        const Grid grid{nullptr, height, width};
        for (int d = 0; d < DIRECTIONS; ++d)
            for (int c = 0; c < cells_; ++c) {
                const int row = c / width + DR[d], column = c % width + DC[d];
                table_[static_cast<std::size_t>(d * cells_ + c)] =
                    static_cast<std::uint16_t>(grid.has(row, column) ? row * width + column : c);
            }
    }
    const std::uint16_t* operator[](int direction) const { return table_.data() + direction * cells_; }

private:
    int cells_;
    std::vector<std::uint16_t> table_;
};

// One sentence that says why the board cannot be played, or "" when it can.
inline std::string unplayable(const Grid& grid) {
    const std::string reason = malformed(grid);
    if (!reason.empty()) return reason;
    for (int c = 0; c < grid.height * grid.width; ++c)
        if (grid.tokens[c] == BOX) return "";
    return "every box stands on a goal already";
}

}  // namespace maskoban::environment
