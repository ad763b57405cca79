// A board as it comes in: the tokens, what is wrong with it, and the part of it the player can ever matter to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace maskoban {

// The same numbers as maskoban/boards/tiles.py.
enum Tile : std::uint8_t { WALL, FLOOR, PLAYER, BOX, GOAL, BOX_ON_GOAL, PLAYER_ON_GOAL, MASK };

inline constexpr int MAX_SIDE = 64;
inline constexpr int MAX_CELLS = MAX_SIDE * MAX_SIDE;

inline bool is_box(std::uint8_t t) { return t == BOX || t == BOX_ON_GOAL; }
inline bool is_goal(std::uint8_t t) { return t == GOAL || t == BOX_ON_GOAL || t == PLAYER_ON_GOAL; }
inline bool is_player(std::uint8_t t) { return t == PLAYER || t == PLAYER_ON_GOAL; }

struct Grid {
    const std::uint8_t* tokens;
    int height, width;

    std::uint8_t at(int row, int column) const { return tokens[row * width + column]; }
    // One comparison does for both ends: below zero is far above any size.
    bool has(int row, int column) const {
        return static_cast<unsigned>(row) < static_cast<unsigned>(height) &&
               static_cast<unsigned>(column) < static_cast<unsigned>(width);
    }
    // The edge of the grid acts as a wall.
    bool wall(int row, int column) const { return !has(row, column) || at(row, column) == WALL; }
};

// One sentence that says why the board cannot be judged, or "" when it can.
inline std::string malformed(const Grid& grid) {
    if (grid.height < 1 || grid.width < 1) return "empty board";
    if (grid.height > MAX_SIDE || grid.width > MAX_SIDE)
        return "board of " + std::to_string(grid.height) + " x " + std::to_string(grid.width) +
               " cells is larger than 64 x 64";
    int count[256] = {};
    for (int c = 0; c < grid.height * grid.width; ++c) ++count[grid.tokens[c]];
    for (int t = MASK + 1; t < 256; ++t)
        if (count[t] != 0) return "unknown tile number " + std::to_string(t);
    if (count[MASK] != 0) return "masked cells left";
    const int players = count[PLAYER] + count[PLAYER_ON_GOAL];
    if (players == 0) return "no player";
    if (players > 1) return std::to_string(players) + " players";
    const int boxes = count[BOX] + count[BOX_ON_GOAL];
    const int goals = count[GOAL] + count[BOX_ON_GOAL] + count[PLAYER_ON_GOAL];
    if (boxes == 0) return "no boxes";
    if (boxes != goals)
        return std::to_string(boxes) + (boxes == 1 ? " box but " : " boxes but ") + std::to_string(goals) +
               (goals == 1 ? " goal" : " goals");
    return "";
}

// Cells no box can ever be pushed to a goal from, looking at walls only: whatever cannot be reached by
// pulling a box backwards from some goal. Walls count as dead. Row by row, one byte a cell.
inline std::vector<std::uint8_t> dead_cells(const Grid& grid) {
    constexpr int DR[4] = {-1, 1, 0, 0}, DC[4] = {0, 0, -1, 1};
    std::vector<std::uint8_t> dead(static_cast<std::size_t>(grid.height) * grid.width, 1);
    std::vector<int> todo;
    for (int c = 0; c < grid.height * grid.width; ++c)
        if (is_goal(grid.tokens[c])) {
            dead[c] = 0;
            todo.push_back(c);
        }
    while (!todo.empty()) {
        const int c = todo.back(), row = c / grid.width, column = c % grid.width;
        todo.pop_back();
        for (int d = 0; d < 4; ++d) {
            const int r1 = row + DR[d], c1 = column + DC[d];
            if (grid.wall(r1, c1) || grid.wall(r1 + DR[d], c1 + DC[d]) || !dead[r1 * grid.width + c1]) continue;
            dead[r1 * grid.width + c1] = 0;
            todo.push_back(r1 * grid.width + c1);
        }
    }
    return dead;
}

// The player's room: what it could walk to if there were no boxes, cropped to its bounding box. Nothing
// outside it can ever change, so only two facts about the outside matter.
struct Room {
    int top = 0, left = 0, height = 0, width = 0;
    std::uint8_t inside[MAX_CELLS];  // one byte a cell of the whole grid
    bool stray_box = false;          // a box outside stands off goal: the board can never be solved
    bool stray_box_dead = false;     // and stands on a dead cell
};

inline void find_room(const Grid& grid, Room& room) {
    std::uint16_t todo[MAX_CELLS];
    const int cells = grid.height * grid.width;
    std::fill(room.inside, room.inside + cells, std::uint8_t{0});
    int player = 0, tail = 1, seen_boxes = 0, all_boxes = 0;
    for (int c = 0; c < cells; ++c) {
        if (is_player(grid.tokens[c])) player = c;
        all_boxes += is_box(grid.tokens[c]);
    }
    int top = grid.height, left = grid.width, bottom = -1, right = -1;
    todo[0] = static_cast<std::uint16_t>(player);
    room.inside[player] = 1;
    for (int head = 0; head < tail; ++head) {
        const int c = todo[head], row = c / grid.width, column = c % grid.width;
        top = std::min(top, row), bottom = std::max(bottom, row);
        left = std::min(left, column), right = std::max(right, column);
        seen_boxes += is_box(grid.tokens[c]);
        const auto visit = [&](bool wall, int next) {
            if (wall || room.inside[next]) return;
            room.inside[next] = 1;
            todo[tail++] = static_cast<std::uint16_t>(next);
        };
        visit(grid.wall(row - 1, column), c - grid.width);
        visit(grid.wall(row + 1, column), c + grid.width);
        visit(grid.wall(row, column - 1), c - 1);
        visit(grid.wall(row, column + 1), c + 1);
    }
    room.top = top, room.left = left, room.height = bottom - top + 1, room.width = right - left + 1;
    room.stray_box = room.stray_box_dead = false;
    if (seen_boxes == all_boxes) return;
    const std::vector<std::uint8_t> dead = dead_cells(grid);
    for (int c = 0; c < cells; ++c)
        if (grid.tokens[c] == BOX && !room.inside[c]) {
            room.stray_box = true;
            room.stray_box_dead |= dead[c] != 0;
        }
}

}  // namespace maskoban
