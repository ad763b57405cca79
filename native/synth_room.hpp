// Rooms for synthetic boards: which cells are floor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace maskoban::synth {

// SplitMix64. A board has a generator of its own, so it is the same whatever is made beside it.
class Random {
public:
    Random(std::uint64_t seed, std::uint64_t number) : state_(seed) {
        state_ = next() ^ number;
        state_ = next();
    }
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    Random fork() { return Random(next(), 0); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    int below(int n) { return static_cast<int>(uniform() * n); }
    int between(int low, int high) { return low + below(high - low + 1); }
    bool chance(double p) { return uniform() < p; }
    template <class T>
    const T& pick(const std::vector<T>& values) { return values[below(static_cast<int>(values.size()))]; }

private:
    std::uint64_t state_;
};

struct Recipe {
    int height, width, boxes;
    double walls;  // mean share of wall inside the border
};

// Row by row, one where there is floor. The border is wall.
using Floor = std::vector<std::uint8_t>;

// A connected room in one of four styles.
class Carver {
public:
    Carver(const Recipe& recipe, Random& random) : recipe_(recipe), random_(random), width_(recipe.width) {
        for (int row = 1; row + 1 < recipe.height; ++row)
            for (int column = 1; column + 1 < width_; ++column) interior_.push_back(row * width_ + column);
        steps_ = {-width_, width_, -1, 1};
    }

    // Rooms that leave much of the board unused are carved again.
    const Floor& carve() {
        constexpr int TRIES = 20;
        for (int tries = 0; tries < TRIES; ++tries) {
            carve_once();
            if (spans_board()) break;
        }
        return floor_;
    }

private:
    int cells() const { return recipe_.height * width_; }
    bool inside(int cell) const {
        const int row = cell / width_, column = cell % width_;
        return cell > 0 && row > 0 && row < recipe_.height - 1 && column > 0 && column < width_ - 1;
    }

    void carve_once() {
        floor_.assign(cells(), 0);
        const int all = static_cast<int>(interior_.size());
        const double share = 1 - recipe_.walls * (0.75 + 0.5 * random_.uniform());  // rooms vary in size
        target_ = std::clamp(static_cast<int>(all * share + 0.5), std::min(4 * recipe_.boxes + 4, all), all);
        count_ = 0;
        const double style = random_.uniform();
        // The larger the board, the more often it is divided: a large hall is no puzzle.
        const double divided = std::clamp((all - 36) / 160.0, 0.0, 0.6);
        if (random_.chance(divided)) {
            for (int cell : interior_) open(cell);
            divide(1, 1, recipe_.height - 2, width_ - 2);
            set_pillars();
        } else if (style < 0.6) {
            carve_walk();
        } else if (style < 0.8) {
            carve_chambers();
        } else {
            for (int cell : interior_) open(cell);
            set_pillars();
        }
        fill_dead_ends();
    }

    bool spans_board() const {
        int top = recipe_.height, bottom = 0, left = width_, right = 0;
        for (int cell : interior_) {
            if (!floor_[cell]) continue;
            top = std::min(top, cell / width_), bottom = std::max(bottom, cell / width_);
            left = std::min(left, cell % width_), right = std::max(right, cell % width_);
        }
        const auto enough = [](int used, int side) { return 4 * used >= 3 * side; };
        return enough(bottom - top + 1, recipe_.height - 2) && enough(right - left + 1, width_ - 2);
    }

    void open(int cell) {
        if (!inside(cell) || floor_[cell]) return;
        floor_[cell] = 1;
        ++count_;
    }

    // A walk that opens a small patch around every step.
    void carve_walk() {
        const std::vector<std::vector<int>> patches{
            {0}, {-1, 0, 1}, {-width_, 0, width_}, {0, 1, width_}, {0, -1, -width_}, {0, 1, width_, width_ + 1}};
        int cell = random_.pick(interior_), step = steps_[random_.below(4)];
        for (int taken = 0; count_ < target_ && taken < 50 * cells(); ++taken) {
            for (int offset : random_.pick(patches)) open(cell + offset);
            while (random_.chance(0.35) || !inside(cell + step)) step = steps_[random_.below(4)];
            cell += step;
        }
    }

    // Small chambers, each joined to the one before by a corridor.
    void carve_chambers() {
        int from = random_.pick(interior_);
        open(from);
        while (count_ < target_) {
            const int to = random_.pick(interior_);
            const int height = random_.between(1, 4), width = random_.between(2, 4);
            for (int row = 0; row < height; ++row)
                for (int column = 0; column < width; ++column)
                    if (to % width_ + column < width_) open_in_grid(to + row * width_ + column);
            bool upright = random_.chance(0.5);
            while (from != to) {  // an L: all rows first, or all columns first
                const int rows = to / width_ - from / width_, columns = to % width_ - from % width_;
                const bool by_row = upright ? rows != 0 : columns == 0;
                from += by_row ? (rows > 0 ? width_ : -width_) : (columns > 0 ? 1 : -1);
                open(from);
            }
        }
    }
    void open_in_grid(int cell) {
        if (cell < cells()) open(cell);
    }

    // Divides a rectangle by a wall with one or two doors, and so on until the chambers are small.
    void divide(int top, int left, int height, int width) {
        const bool upright = width > height || (width == height && random_.chance(0.5));
        const int length = upright ? width : height, across = upright ? height : width;
        if (length < 5 || (length <= 7 && random_.chance(0.4))) return;
        const int at = random_.between(2, length - 3);
        const int start = top * width_ + left + (upright ? at : at * width_), step = upright ? width_ : 1;
        for (int i = 0; i < across; ++i) close(start + i * step);
        for (int doors = random_.chance(0.35) ? 2 : 1; doors > 0; --doors) open(start + random_.below(across) * step);
        if (upright) {
            divide(top, left, height, at);
            divide(top, left + at + 1, height, width - at - 1);
        } else {
            divide(top, left, at, width);
            divide(top + at + 1, left, height - at - 1, width);
        }
    }
    void close(int cell) {
        count_ -= floor_[cell];
        floor_[cell] = 0;
    }

    // Sets pieces of wall into the room, as long as it stays connected, until it is as small as wanted.
    void set_pillars() {
        keep_largest_part();
        const std::vector<std::vector<int>> pieces{{0}, {0, 1}, {0, width_}, {0, 1, 2}, {0, width_, 2 * width_}, {0, 1, width_}};
        for (int tries = 0; count_ > target_ && tries < 5 * cells(); ++tries) {
            const int at = random_.pick(interior_);
            std::vector<int> closed;
            for (int offset : random_.pick(pieces))
                if (inside(at + offset) && floor_[at + offset]) closed.push_back(at + offset);
            for (int cell : closed) close(cell);
            if (closed.empty() || connected()) continue;
            for (int cell : closed) open(cell);
        }
    }
    // A door of one wall may be blocked by the next wall.
    void keep_largest_part() {
        std::vector<std::uint8_t> seen(cells(), 0);
        std::vector<int> largest;
        for (int cell : interior_) {
            if (!floor_[cell] || seen[cell]) continue;
            flood(cell, seen);
            if (queue_.size() > largest.size()) largest = queue_;
        }
        floor_.assign(cells(), 0);
        for (int cell : largest) floor_[cell] = 1;
        count_ = static_cast<int>(largest.size());
    }
    bool connected() {
        for (int cell : interior_) {
            if (!floor_[cell]) continue;
            std::vector<std::uint8_t> seen(cells(), 0);
            flood(cell, seen);
            return static_cast<int>(queue_.size()) == count_;
        }
        return false;
    }
    void flood(int from, std::vector<std::uint8_t>& seen) {
        queue_.assign(1, from);
        seen[from] = 1;
        for (std::size_t head = 0; head < queue_.size(); ++head)
            for (int step : steps_) {
                const int next = queue_[head] + step;
                if (!floor_[next] || seen[next]) continue;
                seen[next] = 1;
                queue_.push_back(next);
            }
    }

    // No box is ever pushed into the end of a corridor and out again: most ends are filled.
    void fill_dead_ends() {
        for (bool again = true; again;) {
            again = false;
            for (int cell : interior_) {
                if (!floor_[cell] || floor_neighbours(cell) > 1 || count_ <= 3 * recipe_.boxes + 2) continue;
                if (random_.chance(0.4)) continue;
                close(cell);
                again = true;
            }
        }
    }
    int floor_neighbours(int cell) const {
        int count = 0;
        for (int step : steps_) count += floor_[cell + step];
        return count;
    }

    const Recipe& recipe_;
    Random& random_;
    int width_, target_ = 0, count_ = 0;  // cells of floor, wanted and there
    std::vector<int> interior_, steps_, queue_;
    Floor floor_;
};

}  // namespace maskoban::synth
