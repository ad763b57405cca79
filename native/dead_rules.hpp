// Which of the rules of the search for large levels call a position dead. For tests: a rule must never do so wrongly.
#pragma once

#include "assignment.hpp"
#include "corrals.hpp"

namespace maskoban {

enum DeadRule : std::uint8_t { FREEZING = 1, CORRAL = 2, RELAXED = 4, ASSIGNED = 8 };

// The rules as bits; none where the board cannot be judged or some box is out of the player's reach.
inline std::uint8_t dead_by_rules(const Grid& grid) {
    if (!malformed(grid).empty()) return 0;
    Room room;
    find_room(grid, room);
    Board<MAX_CELLS / 64> board;
    set_board(board, grid, room);
    const Maze maze = make_maze(board);
    if (maze.start.size() != maze.goals.size()) return 0;
    Memory memory(std::size_t{1} << 30);
    Field field(maze);
    field.set(maze.start);
    Freezing freezing(maze);
    std::uint8_t dead = 0;
    for (Cell c : maze.start)
        if (freezing.dead(field, c)) dead |= FREEZING;
    // The others are asked only about positions that are not dead at sight.
    const bool live = std::all_of(maze.start.begin(), maze.start.end(), [&](Cell c) { return maze.live[c]; });
    if (dead || !live) return dead;
    if (Corrals(maze, memory).dead(maze.start, maze.player)) dead |= CORRAL;
    if (RelaxedGame(maze).lost(maze.start, maze.player, 10'000)) dead |= RELAXED;
    if (Assignment(maze, memory).dead(maze.start)) dead |= ASSIGNED;
    return dead;
}

}  // namespace maskoban
