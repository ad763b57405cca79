// The player's room as a graph: floor cells numbered one after the other, each with its neighbours. What the search for
// large levels works on: nothing in it depends on the size of the grid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "board.hpp"

namespace maskoban {

using Cell = std::uint16_t;

// A wall, or the edge of the grid, is one more cell with the highest number; it counts as occupied for ever.
struct Maze {
    int cells = 0;                              // floor cells; also the number of the wall
    std::vector<std::array<Cell, 4>> next;      // by direction
    std::vector<std::array<Cell, 8>> ring;      // the eight neighbours, clockwise from the one above
    std::vector<std::uint8_t> goal, live;       // live: a box on it could be pushed to some goal, if it were alone
    std::vector<Cell> goals, start;             // goal cells; where the boxes are
    std::vector<Cell> place;                    // the cell's number on the board it comes from
    std::vector<std::int16_t> tunnel;           // number of the tunnel a cell lies in, or -1
    int tunnels = 0;
    Cell player = 0;
    bool backward = false;                      // the game played backwards: boxes are pulled from the goals to the starts

    Cell wall() const { return static_cast<Cell>(cells); }
};

// Gives the cells of maze.place their neighbours. `number` has the number of every cell of the grid, walls the wall's.
inline void link_cells(Maze& maze, const std::vector<Cell>& number, int height, int width) {
    maze.cells = static_cast<int>(maze.place.size());
    maze.next.assign(maze.cells + 1, {maze.wall(), maze.wall(), maze.wall(), maze.wall()});
    maze.ring.resize(maze.cells + 1);
    for (auto& ring : maze.ring) ring.fill(maze.wall());
    constexpr int ROW[8] = {-1, -1, 0, 1, 1, 1, 0, -1}, COLUMN[8] = {0, 1, 1, 1, 0, -1, -1, -1};
    for (int cell = 0; cell < maze.cells; ++cell) {
        const int c = maze.place[cell], row = c / width, column = c % width;
        for (int i = 0; i < 8; ++i) {
            const int r1 = row + ROW[i], c1 = column + COLUMN[i];
            if (r1 >= 0 && r1 < height && c1 >= 0 && c1 < width) maze.ring[cell][i] = number[r1 * width + c1];
        }
        maze.next[cell] = {maze.ring[cell][0], maze.ring[cell][4], maze.ring[cell][6], maze.ring[cell][2]};
    }
}

template <int N>
Maze make_maze(const Board<N>& board) {
    Maze maze;
    std::vector<Cell> number(static_cast<std::size_t>(board.height) * board.width + 1);
    each(board.floor, [&](int) { ++maze.cells; });
    std::fill(number.begin(), number.end(), maze.wall());
    each(board.floor, [&](int c) {
        number[c] = static_cast<Cell>(maze.place.size());
        maze.place.push_back(static_cast<Cell>(c));
    });
    link_cells(maze, number, board.height, board.width);
    maze.goal.assign(maze.cells + 1, 0);
    maze.live.assign(maze.cells + 1, 0);
    for (int cell = 0; cell < maze.cells; ++cell) {
        const int c = maze.place[cell];
        maze.goal[cell] = board.goals.has(c);
        maze.live[cell] = board.live.has(c);
        if (maze.goal[cell]) maze.goals.push_back(static_cast<Cell>(cell));
        if (board.start.has(c)) maze.start.push_back(static_cast<Cell>(cell));
    }
    maze.player = number[board.player];
    // Tunnel cells have walls on both sides; those beside each other are one tunnel.
    maze.tunnel.assign(maze.cells + 1, -1);
    const auto narrow = [&](int c) {
        const auto& next = maze.next[c];
        return c != maze.cells && ((next[UP] == maze.wall() && next[DOWN] == maze.wall()) ||
                                   (next[LEFT] == maze.wall() && next[RIGHT] == maze.wall()));
    };
    for (int c = 0; c < maze.cells; ++c) {
        if (!narrow(c) || maze.tunnel[c] >= 0) continue;
        std::vector<Cell> todo{static_cast<Cell>(c)};
        maze.tunnel[c] = static_cast<std::int16_t>(maze.tunnels);
        while (!todo.empty()) {
            const Cell at = todo.back();
            todo.pop_back();
            for (Cell there : maze.next[at])
                if (narrow(there) && maze.tunnel[there] < 0) {
                    maze.tunnel[there] = maze.tunnel[at];
                    todo.push_back(there);
                }
        }
        ++maze.tunnels;
    }
    return maze;
}

// The same level played backwards: boxes are pulled from where they end to where they start.
inline Maze backwards(Maze maze) {
    maze.backward = true;
    std::swap(maze.goals, maze.start);
    std::fill(maze.goal.begin(), maze.goal.end(), std::uint8_t{0});
    std::fill(maze.live.begin(), maze.live.end(), std::uint8_t{0});
    for (Cell c : maze.goals) maze.goal[c] = maze.live[c] = 1;
    std::vector<Cell> todo = maze.goals;
    while (!todo.empty()) {
        const Cell at = todo.back();
        todo.pop_back();
        for (Direction d : DIRECTIONS) {
            const Cell to = maze.next[at][d];
            if (to == maze.wall() || maze.next[at][opposite(d)] == maze.wall() || maze.live[to]) continue;
            maze.live[to] = 1;
            todo.push_back(to);
        }
    }
    return maze;
}

}  // namespace maskoban
