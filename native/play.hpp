// Games in play: one step by the rules on each of many boards of one size, side by side.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "grid.hpp"

namespace maskoban {

// One row of the (n, 7) array in which maskoban/environment/games.py keeps its games; NumPy owns it.
struct Game {
    std::int32_t row, column;    // where the player stands
    std::int32_t boxes;          // all of them
    std::int32_t steps;          // actions taken, those that changed nothing too
    std::int32_t on_goals;       // boxes on goals
    std::int32_t moves, pushes;  // as players count them: every push is a move
};
inline constexpr std::size_t GAME = 7;
static_assert(sizeof(Game) == GAME * sizeof(std::int32_t));

inline constexpr double A_STEP = -0.1, ONTO_GOAL = 1, OFF_GOAL = -1, ALL_ON_GOALS = 10;

inline constexpr int ACTIONS = 4;  // up, down, left, right

// One sentence that says why the board cannot be played, or "" when it can.
inline std::string unplayable(const Grid& grid) {
    const std::string reason = malformed(grid);
    if (!reason.empty()) return reason;
    for (int c = 0; c < grid.height * grid.width; ++c)
        if (grid.tokens[c] == BOX) return "";
    return "every box stands on a goal already";
}

inline Game begin_game(const Grid& grid) {
    Game game{};
    for (int row = 0; row < grid.height; ++row)
        for (int column = 0; column < grid.width; ++column) {
            const std::uint8_t tile = grid.at(row, column);
            if (is_player(tile)) game.row = row, game.column = column;
            game.boxes += is_box(tile);
            game.on_goals += tile == BOX_ON_GOAL;
        }
    return game;
}

// One action: changes the board and the game, and returns the reward.
inline double step_game(std::uint8_t* tokens, int height, int width, Game& game, int action) {
    constexpr int DR[ACTIONS] = {-1, 1, 0, 0}, DC[ACTIONS] = {0, 0, -1, 1};
    const Grid grid{tokens, height, width};
    // NumPy owns the games, so anything may stand there.
    if (!grid.has(game.row, game.column)) throw std::invalid_argument("a player stands outside its board");
    const int down = DR[action], right = DC[action], offset = down * width + right;
    const int row = game.row + down, column = game.column + right;
    ++game.steps;
    if (grid.wall(row, column)) return A_STEP;
    double reward = A_STEP;
    std::uint8_t* const there = tokens + row * width + column;
    if (is_box(*there)) {
        const bool blocked = grid.wall(row + down, column + right);
        if (blocked || is_box(there[offset])) return A_STEP;
        const bool left_goal = *there == BOX_ON_GOAL, onto_goal = there[offset] == GOAL;
        there[offset] = onto_goal ? BOX_ON_GOAL : BOX;
        *there = left_goal ? GOAL : FLOOR;
        game.on_goals += onto_goal - left_goal;
        ++game.pushes;
        reward += onto_goal * ONTO_GOAL + left_goal * OFF_GOAL;
        if (game.on_goals == game.boxes) reward += ALL_ON_GOALS;
    }
    std::uint8_t* const here = there - offset;
    *here = *here == PLAYER_ON_GOAL ? GOAL : FLOOR;
    *there = *there == GOAL ? PLAYER_ON_GOAL : PLAYER;
    game.row = row, game.column = column;
    ++game.moves;
    return reward;
}

}  // namespace maskoban
