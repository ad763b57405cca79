// Which pieces the free floor falls into when one more cell is taken. One depth-first search answers it for all cells.
#pragma once

#include <algorithm>
#include <vector>

#include "maze.hpp"

namespace maskoban {

// The part of the floor around a cell that is taken, in pieces. Cells are named by their number in the depth-first search:
// a piece that is cut off holds the numbers from begin to end, and what is left of the part is one piece more.
struct Pieces {
    std::uint16_t begin[4], end[4];
    std::uint16_t part_begin, part_end;
    int cut_off = 0;

    int left() const {
        int left = part_end - part_begin - 1;
        for (int i = 0; i < cut_off; ++i) left -= end[i] - begin[i];
        return left;
    }
    int count() const { return cut_off + (left() > 0); }
    int size(int piece) const { return piece == cut_off ? left() : end[piece] - begin[piece]; }
    // The piece with this cell, or -1 where it lies in another part.
    int of(std::uint16_t number) const {
        if (number < part_begin || number >= part_end) return -1;
        for (int i = 0; i < cut_off; ++i)
            if (number >= begin[i] && number < end[i]) return i;
        return cut_off;
    }
};

class Cuts {
public:
    explicit Cuts(const Maze& maze)
        : maze_(maze), number_(maze.cells + 1), end_(maze.cells + 1), low_(maze.cells + 1), above_(maze.cells + 1),
          part_(maze.cells + 1) {}

    // Takes the floor that is not occupied.
    void find(const std::vector<std::uint8_t>& occupied) {
        std::fill(number_.begin(), number_.end(), NOT_SEEN);
        parts_.clear();
        int numbers = 0;
        for (int root = 0; root < maze_.cells; ++root) {
            if (occupied[root] || number_[root] != NOT_SEEN) continue;
            const auto part = static_cast<Cell>(parts_.size()), first = static_cast<Cell>(numbers);
            const auto enter = [&](Cell c, Cell from) {
                number_[c] = low_[c] = static_cast<Cell>(numbers++);
                above_[c] = from;
                part_[c] = part;
                path_.push_back({c, 0});
            };
            enter(static_cast<Cell>(root), maze_.wall());
            while (!path_.empty()) {
                Step& at = path_.back();
                const Cell c = at.cell;
                if (at.direction < 4) {
                    const Cell there = maze_.next[c][at.direction++];
                    if (occupied[there]) continue;
                    if (number_[there] == NOT_SEEN) enter(there, c);
                    else if (there != above_[c]) low_[c] = std::min(low_[c], number_[there]);
                } else {
                    end_[c] = static_cast<Cell>(numbers);
                    if (above_[c] != maze_.wall()) low_[above_[c]] = std::min(low_[above_[c]], low_[c]);
                    path_.pop_back();
                }
            }
            parts_.push_back({first, static_cast<Cell>(numbers)});
        }
    }

    int parts() const { return static_cast<int>(parts_.size()); }
    std::uint16_t number(Cell c) const { return number_[c]; }

    // The pieces when this free cell is taken.
    Pieces without(Cell c) const {
        Pieces pieces;
        pieces.part_begin = parts_[part_[c]].begin;
        pieces.part_end = parts_[part_[c]].end;
        for (const Cell there : maze_.next[c])
            if (number_[there] != NOT_SEEN && above_[there] == c && low_[there] >= number_[c]) {
                pieces.begin[pieces.cut_off] = number_[there];
                pieces.end[pieces.cut_off++] = end_[there];
            }
        return pieces;
    }

private:
    static constexpr Cell NOT_SEEN = 0xFFFF;
    struct Step {
        Cell cell;
        std::uint8_t direction;
    };
    struct Part {
        Cell begin, end;
    };

    const Maze& maze_;
    std::vector<Cell> number_, end_, low_, above_, part_;
    std::vector<Part> parts_;
    std::vector<Step> path_;
};

}  // namespace maskoban
