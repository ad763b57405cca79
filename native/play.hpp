// Games in play: one step by the rules on each of many boards of one size, side by side.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

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
    const int down = DR[action], right = DC[action], offset = down * width + right;
    const int row = game.row + down, column = game.column + right;
    ++game.steps;
    if (Grid{tokens, height, width}.wall(row, column)) return A_STEP;
    double reward = A_STEP;
    std::uint8_t* const there = tokens + row * width + column;
    if (is_box(*there)) {
        const bool blocked = Grid{tokens, height, width}.wall(row + down, column + right);
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

inline void bind_play(nanobind::module_& m) {
    namespace nb = nanobind;
    using Boards = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
    using BoardsInPlay = nb::ndarray<std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
    using Games = nb::ndarray<std::int32_t, nb::shape<-1, GAME>, nb::c_contig, nb::device::cpu>;
    using Actions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Rewards = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using GivenFlags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

    m.def(
        "unplayable",
        [](const Boards& boards) {
            const int height = static_cast<int>(boards.shape(1)), width = static_cast<int>(boards.shape(2));
            nb::list reasons;
            for (std::size_t i = 0; i < boards.shape(0); ++i)
                reasons.append(unplayable({boards.data() + i * height * width, height, width}));
            return reasons;
        },
        nb::arg("boards"));
    m.def(
        "begin_games",
        [](const Boards& boards, const Games& games) {
            const int height = static_cast<int>(boards.shape(1)), width = static_cast<int>(boards.shape(2));
            if (games.shape(0) != boards.shape(0)) throw std::invalid_argument("as many games as boards are needed");
            Game* const game = reinterpret_cast<Game*>(games.data());
            const nb::gil_scoped_release no_gil;
            for (std::size_t i = 0; i < boards.shape(0); ++i)
                game[i] = begin_game({boards.data() + i * height * width, height, width});
        },
        nb::arg("boards"), nb::arg("games").noconvert());
    m.def(
        "step_games",
        [](const BoardsInPlay& boards, const Games& games, const Actions& actions, const GivenFlags& idle,
           std::int32_t limit, const Rewards& rewards, const Flags& terminated, const Flags& truncated) {
            const std::size_t n = boards.shape(0);
            const int height = static_cast<int>(boards.shape(1)), width = static_cast<int>(boards.shape(2));
            for (const std::size_t size : {games.shape(0), actions.shape(0), idle.shape(0), rewards.shape(0),
                                           terminated.shape(0), truncated.shape(0)})
                if (size != n) throw std::invalid_argument("every array must be as long as there are boards");
            const nb::gil_scoped_release no_gil;
            // All are looked at before any board changes.
            for (std::size_t i = 0; i < n; ++i)
                if (actions.data()[i] < 0 || actions.data()[i] >= ACTIONS)
                    throw std::invalid_argument("an action is 0 (up), 1 (down), 2 (left) or 3 (right), not " +
                                                std::to_string(actions.data()[i]));
            for (std::size_t i = 0; i < n; ++i) {
                if (idle.data()[i]) {
                    rewards.data()[i] = 0;
                    terminated.data()[i] = truncated.data()[i] = false;
                    continue;
                }
                Game& game = reinterpret_cast<Game*>(games.data())[i];
                rewards.data()[i] = step_game(boards.data() + i * height * width, height, width, game,
                                              static_cast<int>(actions.data()[i]));
                terminated.data()[i] = game.on_goals == game.boxes;
                truncated.data()[i] = game.steps >= limit;
            }
        },
        nb::arg("boards").noconvert(), nb::arg("games").noconvert(), nb::arg("actions").noconvert(),
        nb::arg("idle").noconvert(), nb::arg("limit"), nb::arg("rewards").noconvert(),
        nb::arg("terminated").noconvert(), nb::arg("truncated").noconvert());
}

}  // namespace maskoban
