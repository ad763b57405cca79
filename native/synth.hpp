// Synthetic boards, solvable by construction: a room is carved, boxes stand on its goals, and a beam search plays
// backwards from there, pulling the boxes away. Every pull reversed is a legal push.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <unordered_set>
#include <vector>

#include "solve.hpp"

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

struct Drawn {
    std::vector<std::uint8_t> tokens;
    int crowded = 0;  // boxes that stand on goals, and the player if it must
};

// With more boxes than this, boards are slow to make and to judge: the first few rooms must do.
inline constexpr int MANY = 8;

// Which cells are floor, row by row. The border is wall.
using Room = std::vector<std::uint8_t>;

class Maker {
public:
    Maker(const Recipe& recipe, Random random) : recipe_(recipe), random_(random), width_(recipe.width) {
        for (int row = 1; row + 1 < recipe.height; ++row)
            for (int column = 1; column + 1 < width_; ++column) interior_.push_back(row * width_ + column);
        steps_ = {-width_, width_, -1, 1};
    }

    // The board of one room, or none where no box can be pulled in it.
    std::optional<Drawn> board() {
        carve();
        if (!place_goals()) return std::nullopt;
        return pull();
    }

private:
    int cells() const { return recipe_.height * width_; }
    bool inside(int cell) const {
        const int row = cell / width_, column = cell % width_;
        return row > 0 && row < recipe_.height - 1 && column > 0 && column < width_ - 1;
    }
    int floor_neighbours(int cell) const {
        int count = 0;
        for (int step : steps_) count += room_[cell + step];
        return count;
    }

    // ---- The room

    void carve() {
        room_.assign(cells(), 0);
        const int all = static_cast<int>(interior_.size());
        const double share = 1 - recipe_.walls * (0.75 + 0.5 * random_.uniform());  // rooms vary in size
        target_ = std::clamp(static_cast<int>(all * share + 0.5), std::min(4 * recipe_.boxes + 4, all), all);
        floor_ = 0;
        const double style = random_.uniform();
        if (style < 0.6) carve_walk();
        else if (style < 0.8) carve_chambers();
        else carve_pillars();
        fill_dead_ends();
    }

    void open(int cell) {
        if (!inside(cell) || room_[cell]) return;
        room_[cell] = 1;
        ++floor_;
    }

    // A walk that opens a small patch around every step.
    void carve_walk() {
        const std::vector<std::vector<int>> patches{
            {0}, {-1, 0, 1}, {-width_, 0, width_}, {0, 1, width_}, {0, -1, -width_}, {0, 1, width_, width_ + 1}};
        int cell = random_.pick(interior_), step = steps_[random_.below(4)];
        for (int taken = 0; floor_ < target_ && taken < 50 * cells(); ++taken) {
            for (int offset : random_.pick(patches)) open(cell + offset);
            while (random_.chance(0.35) || !inside(cell + step)) step = steps_[random_.below(4)];
            cell += step;
        }
    }

    // Small chambers, each joined to the one before by a corridor.
    void carve_chambers() {
        int from = random_.pick(interior_);
        open(from);
        while (floor_ < target_) {
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

    // A hall into which pieces of wall are set as long as it stays connected.
    void carve_pillars() {
        for (int cell : interior_) open(cell);
        const std::vector<std::vector<int>> pieces{{0}, {0, 1}, {0, width_}, {0, 1, 2}, {0, width_, 2 * width_}, {0, 1, width_}};
        for (int tries = 0; floor_ > target_ && tries < 20 * cells(); ++tries) {
            const int at = random_.pick(interior_);
            std::vector<int> closed;
            for (int offset : random_.pick(pieces))
                if (at + offset < cells() && inside(at + offset) && room_[at + offset]) closed.push_back(at + offset);
            for (int cell : closed) room_[cell] = 0;
            floor_ -= static_cast<int>(closed.size());
            if (closed.empty() || connected()) continue;
            for (int cell : closed) room_[cell] = 1;
            floor_ += static_cast<int>(closed.size());
        }
    }
    bool connected() {
        for (int cell : interior_)
            if (room_[cell]) return flood(cell, {}) == floor_;
        return false;
    }

    // No box is ever pushed into the end of a corridor and out again: most ends are filled.
    void fill_dead_ends() {
        for (bool again = true; again;) {
            again = false;
            for (int cell : interior_) {
                if (!room_[cell] || floor_neighbours(cell) > 1 || floor_ <= 3 * recipe_.boxes + 2) continue;
                if (random_.chance(0.4)) continue;
                room_[cell] = 0;
                --floor_;
                again = true;
            }
        }
    }

    // ---- The goals

    // On cells a box can be pulled from, at times close together.
    bool place_goals() {
        std::vector<int> places;
        for (int cell : interior_) {
            if (!room_[cell]) continue;
            for (int step : steps_)
                if (room_[cell + step] && room_[cell + 2 * step]) {
                    places.push_back(cell);
                    break;
                }
        }
        goals_.clear();
        if (static_cast<int>(places.size()) < recipe_.boxes) return false;
        const bool close = random_.chance(0.25);
        while (static_cast<int>(goals_.size()) < recipe_.boxes) {
            int chosen = random_.below(static_cast<int>(places.size()));
            for (int tries = 0; close && !goals_.empty() && tries < 3; ++tries) {
                const int other = random_.below(static_cast<int>(places.size()));
                if (distance(places[other], goals_[0]) < distance(places[chosen], goals_[0])) chosen = other;
            }
            goals_.push_back(places[chosen]);
            places.erase(places.begin() + chosen);
        }
        goal_.assign(cells(), 0);
        for (int cell : goals_) goal_[cell] = 1;
        return true;
    }
    int distance(int a, int b) const {
        return std::abs(a / width_ - b / width_) + std::abs(a % width_ - b % width_);
    }

    // ---- The pulls

    struct Position {
        std::vector<int> boxes;
        int player;  // lowest cell it can walk to
    };
    bool reached(int cell) const { return reach_[cell] == stamp_; }

    // Marks the cells the player can walk to from a cell; how many there are. lowest_ is the first of them.
    int flood(int from, const std::vector<int>& boxes) {
        if (reach_.empty()) reach_.assign(cells(), 0);
        ++stamp_;
        for (int box : boxes) reach_[box] = -stamp_;
        stack_.assign(1, from);
        reach_[from] = stamp_;
        lowest_ = from;
        int count = 0;
        while (!stack_.empty()) {
            const int cell = stack_.back();
            stack_.pop_back();
            ++count;
            lowest_ = std::min(lowest_, cell);
            for (int step : steps_) {
                const int next = cell + step;
                if (!room_[next] || reach_[next] == stamp_ || reach_[next] == -stamp_) continue;
                reach_[next] = stamp_;
                stack_.push_back(next);
            }
        }
        return count;
    }

    // A wide beam is nearly a breadth-first search, whose last positions need the most pushes.
    std::optional<Drawn> pull() {
        const std::size_t width = std::clamp<std::size_t>(25'600 / interior_.size(), 4, 400);
        const int deepest = 12 + 8 * recipe_.boxes;
        seen_.clear();
        std::vector<Position> beam, next, ends;  // ends: the least crowded position of every depth
        for (int cell : interior_) {             // every region the player may end in
            if (!room_[cell] || goal_[cell]) continue;
            flood(cell, goals_);
            add({goals_, lowest_}, beam);
        }
        int least = recipe_.boxes + 1;
        for (int depth = 1; depth <= deepest && !beam.empty(); ++depth) {
            next.clear();
            for (const Position& p : beam) add_pulls(p, next);
            for (std::size_t kept = 0; kept < std::min(next.size(), width); ++kept)  // a random choice
                std::swap(next[kept], next[kept + random_.below(static_cast<int>(next.size() - kept))]);
            next.resize(std::min(next.size(), width));
            const Position* end = nullptr;
            for (const Position& p : next) {
                const int count = crowded(p);
                if (count > least || (count == least && end != nullptr)) continue;
                if (count < least) ends.clear();
                least = count;
                end = &p;
            }
            if (end != nullptr) ends.push_back(*end);
            std::swap(beam, next);
        }
        if (ends.empty()) return std::nullopt;
        const double depth = 0.7 + 0.3 * random_.uniform();
        return Drawn{draw(ends[static_cast<std::size_t>(depth * static_cast<double>(ends.size()))]), least};
    }

    void add_pulls(const Position& p, std::vector<Position>& next) {
        flood(p.player, p.boxes);
        pulls_.clear();  // all of them first: the flood of the next position overwrites the marks
        for (int i = 0; i < recipe_.boxes; ++i)
            for (int step : steps_)
                if (reached(p.boxes[i] + step) && reached(p.boxes[i] + 2 * step)) pulls_.push_back({i, step});
        for (const auto& [box, step] : pulls_) {
            Position after = p;
            after.boxes[box] += step;
            flood(after.boxes[box] + step, after.boxes);
            after.player = lowest_;
            add(std::move(after), next);
        }
    }

    // Adds a position not seen before. The same cells with boxes changed round are the same position.
    void add(Position p, std::vector<Position>& positions) {
        std::uint64_t identity = Random(2, p.player).next();
        for (int box : p.boxes) identity += Random(1, box).next();
        if (seen_.insert(identity).second) positions.push_back(std::move(p));
    }

    int crowded(const Position& p) {
        const auto on_goal = std::count_if(p.boxes.begin(), p.boxes.end(), [&](int box) { return goal_[box]; });
        return static_cast<int>(on_goal) + (on_goal == 0 && goal_[places(p)[0]]);
    }

    // Where the player may start: cells it can walk to, those off the goals if there are any.
    std::vector<int> places(const Position& p) {
        flood(p.player, p.boxes);
        std::vector<int> off, on;
        for (int cell : interior_)
            if (reached(cell)) (goal_[cell] ? on : off).push_back(cell);
        return off.empty() ? on : off;
    }

    std::vector<std::uint8_t> draw(const Position& p) {
        std::vector<std::uint8_t> tokens(cells(), WALL);
        for (int cell : interior_)
            if (room_[cell]) tokens[cell] = goal_[cell] ? GOAL : FLOOR;
        for (int box : p.boxes) tokens[box] = goal_[box] ? BOX_ON_GOAL : BOX;
        const int player = random_.pick(places(p));
        tokens[player] = goal_[player] ? PLAYER_ON_GOAL : PLAYER;
        return tokens;
    }

    const Recipe& recipe_;
    Random random_;
    int width_, target_ = 0, floor_ = 0, lowest_ = 0, stamp_ = 0;
    std::vector<int> interior_, steps_, goals_, stack_, reach_;
    std::vector<std::pair<int, int>> pulls_;  // the box, the step
    Room room_, goal_;
    std::unordered_set<std::uint64_t> seen_;
};

// A board with few pushes, and most of those whose boxes can be delivered one after the other.
inline bool trivial(const Drawn& drawn, const Recipe& recipe, Random& random, Worker& worker, const Poll& poll) {
    constexpr double KEPT = 0.4;  // of those delivered one by one: Boxoban's medium levels are 37 % such
    if (recipe.boxes > MANY) return false;
    const Grid grid{drawn.tokens.data(), recipe.height, recipe.width};
    const Outcome found = solve(grid, Mode::DECOMPOSED, Limits{20'000}, worker, poll);
    if (found.verdict != SOLVED) return false;
    return 2 * found.pushes < 5 * recipe.boxes || (found.boxes_at_once == 1 && !random.chance(KEPT));
}

// The board of a number: the first that is neither crowded nor trivial, else the least crowded. Empty if none is found.
inline std::vector<std::uint8_t> make(const Recipe& recipe, std::uint64_t seed, std::uint64_t number, Worker& worker,
                                      const Poll& poll) {
    const int rooms = recipe.boxes > MANY ? 3 : 60;
    Random random(seed, number);
    Drawn best{{}, recipe.boxes + 1};
    for (int tries = 0; tries < rooms; ++tries) {
        poll();
        auto drawn = Maker(recipe, random.fork()).board();
        if (!drawn || drawn->crowded > best.crowded) continue;
        best = std::move(*drawn);
        if (best.crowded == 0 && !trivial(best, recipe, random, worker, poll)) break;
    }
    return best.tokens;
}

}  // namespace maskoban::synth
