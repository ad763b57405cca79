// Synthetic boards, solvable by construction: boxes stand on the goals of a room, and a beam search pulls them away.
// Every pull reversed is a legal push.
#pragma once

#include <cmath>
#include <cstdlib>
#include <optional>
#include <unordered_set>

#include "solve.hpp"
#include "synth_one_by_one.hpp"
#include "synth_room.hpp"

namespace maskoban::synth {

struct Drawn {
    std::vector<std::uint8_t> tokens;
    int crowded = 0;  // boxes that stand on goals, and the player if it must
    bool one_by_one = false;
};

// With more boxes than this, boards are slow to make and to judge: the first few rooms must do.
inline constexpr int MANY = 8;

// Up to this product of cells and boxes a beam of single pulls is nearly a breadth-first search, whose last positions
// need the most pushes. Beyond, it would see a tiny part of each layer, and positions are chosen by their energy.
inline constexpr int SMALL = 256;

// The maze of a room, without boxes. Boxes may stand on every cell.
inline Maze make_maze(const Floor& floor, int height, int width) {
    Maze maze;
    maze.cells = static_cast<int>(std::count(floor.begin(), floor.end(), 1));
    std::vector<Cell> number(floor.size(), maze.wall());
    for (std::size_t c = 0; c < floor.size(); ++c) {
        if (!floor[c]) continue;
        number[c] = static_cast<Cell>(maze.place.size());
        maze.place.push_back(static_cast<Cell>(c));
    }
    link_cells(maze, number, height, width);
    maze.goal.assign(maze.cells + 1, 0);
    maze.live.assign(maze.cells + 1, 1);
    return maze;
}

class Maker {
public:
    Maker(const Recipe& recipe, Random random)
        : recipe_(recipe), random_(random), floor_(Carver(recipe, random_).carve()),
          maze_(make_maze(floor_, recipe.height, recipe.width)), field_(maze_) {}

    // The board of one room, or none where no box can be pulled in it.
    std::optional<Drawn> board() {
        if (!place_goals()) return std::nullopt;
        return pull();
    }

private:
    struct Candidate {
        Position position;
        double energy;
    };

    int interior() const { return (recipe_.height - 2) * (recipe_.width - 2); }
    bool small() const { return interior() * recipe_.boxes <= SMALL || recipe_.boxes > MANY; }

    // ---- The goals

    // On cells a box can be pulled from, scattered or close together.
    bool place_goals() {
        std::vector<Cell> places;
        for (int c = 0; c < maze_.cells; ++c)
            for (int d = 0; d < 4; ++d) {
                const Cell next = maze_.next[c][d];
                if (next == maze_.wall() || maze_.next[next][d] == maze_.wall()) continue;
                places.push_back(static_cast<Cell>(c));
                break;
            }
        if (static_cast<int>(places.size()) < recipe_.boxes) return false;
        const double style = random_.uniform();
        const int draws = style < 0.6 ? 1 : style < 0.85 ? 4 : 10;  // the nearest to the first goal of so many
        while (static_cast<int>(maze_.goals.size()) < recipe_.boxes) {
            int chosen = random_.below(static_cast<int>(places.size()));
            for (int i = 1; i < draws && !maze_.goals.empty(); ++i) {
                const int other = random_.below(static_cast<int>(places.size()));
                if (distance(places[other], maze_.goals[0]) < distance(places[chosen], maze_.goals[0])) chosen = other;
            }
            maze_.goals.push_back(places[chosen]);
            maze_.goal[places[chosen]] = 1;
            places.erase(places.begin() + chosen);
        }
        for (Cell goal : maze_.goals) distances_.push_back(find_distances(goal));
        return true;
    }
    int distance(Cell a, Cell b) const {
        const int p = maze_.place[a], q = maze_.place[b], width = recipe_.width;
        return std::abs(p / width - q / width) + std::abs(p % width - q % width);
    }

    // The fewest pushes of a lone box from each cell to a goal, wherever the player may stand.
    std::vector<int> find_distances(Cell goal) const {
        std::vector<int> pushes(maze_.cells, FAR);
        std::vector<Cell> queue{goal};
        pushes[goal] = 0;
        for (std::size_t head = 0; head < queue.size(); ++head)
            for (int d = 0; d < 4; ++d) {
                const Cell to = maze_.next[queue[head]][d];
                if (to == maze_.wall() || pushes[to] != FAR || maze_.next[to][d] == maze_.wall()) continue;
                pushes[to] = pushes[queue[head]] + 1;
                queue.push_back(to);
            }
        return pushes;
    }

    // ---- The pulls

    std::optional<Drawn> pull() {
        const std::size_t width = small() ? std::clamp(25'600 / interior(), 4, 400) : std::clamp(6'000 / interior(), 8, 32);
        const int deepest = small() ? 12 + 8 * recipe_.boxes : 6 * recipe_.boxes;
        std::vector<Candidate> beam = starts(), next;
        std::vector<Position> ends;  // the least crowded position of every depth
        int least = recipe_.boxes + 1;
        for (int depth = 1; depth <= deepest && !beam.empty(); ++depth) {
            next.clear();
            if (small()) add_pulls(beam, next);
            else add_long_pulls(beam, next, 3 * width);
            keep(next, width);
            const Position* end = nullptr;
            for (const Candidate& candidate : next) {
                const int count = crowded(candidate.position);
                if (count > least || (count == least && end != nullptr)) continue;
                if (count < least) ends.clear();
                least = count;
                end = &candidate.position;
            }
            if (end != nullptr) ends.push_back(*end);
            if (!small() && least > 0 && 2 * depth > deepest) return std::nullopt;
            std::swap(beam, next);
        }
        if (ends.empty()) return std::nullopt;
        const double depth = 0.7 + 0.3 * random_.uniform();
        const Position& end = ends[static_cast<std::size_t>(depth * static_cast<double>(ends.size()))];
        field_.clear();
        const bool one_by_one = recipe_.boxes <= MANY && OneByOne(maze_, field_).solves(end);
        return Drawn{draw(end), least, one_by_one};
    }

    // All boxes on goals, and every region the player may end in.
    std::vector<Candidate> starts() {
        std::vector<Candidate> found;
        for (int c = 0; c < maze_.cells; ++c)
            if (!maze_.goal[c]) add({maze_.goals, static_cast<Cell>(c)}, found);
        return found;
    }

    // Every single pull.
    void add_pulls(const std::vector<Candidate>& beam, std::vector<Candidate>& next) {
        std::vector<std::pair<int, Direction>> pulls;  // first all of them: the next position floods anew
        for (const auto& [position, energy] : beam) {
            pulls.clear();
            field_.set(position.boxes);
            field_.flood(position.player);
            for (int box = 0; box < recipe_.boxes; ++box)
                for (Direction d : DIRECTIONS) {
                    const Cell to = maze_.next[position.boxes[box]][d];
                    if (field_.reached(to) && field_.reached(maze_.next[to][d])) pulls.emplace_back(box, d);
                }
            for (const auto& [box, d] : pulls) add_pull(position, box, maze_.next[position.boxes[box]][d], d, next);
        }
    }

    // So many long pulls, at random.
    void add_long_pulls(const std::vector<Candidate>& beam, std::vector<Candidate>& next, std::size_t tries) {
        for (std::size_t i = 0; i < tries; ++i) {
            const Position& from = random_.pick(beam).position;
            const int box = random_.below(recipe_.boxes);
            field_.set(from.boxes);
            field_.flood(from.player);
            const std::uint8_t sides = field_.sides(from.boxes[box]);
            if (sides == 0) continue;
            field_.walk_box<true>(from.boxes[box], sides, [](const Stop&, int) { return true; });
            const auto& stops = field_.stops();  // the first is where the box stands
            if (stops.size() == 1) continue;
            const Stop stop = stops[1 + random_.below(static_cast<int>(stops.size()) - 1)];
            add_pull(from, box, stop.cell, stop.along, next);
        }
    }

    void add_pull(const Position& from, int box, Cell to, int along, std::vector<Candidate>& next) {
        Position after = from;
        after.boxes[box] = to;
        after.player = maze_.next[to][along];
        add(std::move(after), next);
    }

    // Adds a position not seen before. The same cells with boxes changed round are the same position.
    void add(Position position, std::vector<Candidate>& candidates) {
        field_.set(position.boxes);
        position.player = field_.flood(position.player);
        std::uint64_t identity = Random(2, position.player).next();
        for (Cell box : position.boxes) identity += Random(1, box).next();
        if (!seen_.insert(identity).second) return;
        const double e = small() ? 0 : energy(position);
        candidates.push_back({std::move(position), e});
    }

    // Keeps so many: on small boards any, on others those of low energy.
    void keep(std::vector<Candidate>& next, std::size_t width) {
        for (std::size_t kept = 0; kept < std::min(next.size(), width); ++kept)
            std::swap(next[kept], next[kept + random_.below(static_cast<int>(next.size() - kept))]);
        if (!small())
            std::sort(next.begin(), next.end(), [](const Candidate& a, const Candidate& b) { return a.energy < b.energy; });
        next.resize(std::min(next.size(), width));
    }

    // Low where boxes block each other and are far from the goals. A little chance keeps the beam diverse.
    double energy(const Position& position) {
        const double far = FAR_ENOUGH + (interior() - 64) / 66.0;
        const double pushes = std::min<double>(least_pushes(position), far * recipe_.boxes);
        const double gumbel = -std::log(-std::log(random_.uniform() + 1e-300) + 1e-300);
        return 3.0 * deliverable(position) + 2.0 * on_goals(position) - 0.3 * pushes - NOISE * gumbel;
    }

    // How many boxes can be pushed to a goal while the others stand still.
    int deliverable(const Position& position) {
        int count = 0;
        field_.set(position.boxes);
        field_.flood(position.player);
        sides_.clear();
        for (Cell box : position.boxes) sides_.push_back(field_.sides(box));  // now: a walk floods anew
        for (int i = 0; i < recipe_.boxes; ++i)
            if (sides_[i] != 0)
                field_.walk_box<false>(position.boxes[i], sides_[i], [&](const Stop& stop, int) {
                    count += maze_.goal[stop.cell];
                    return !maze_.goal[stop.cell];
                });
        return count;
    }

    // A lower bound: every box takes the nearest goal, every goal the nearest box.
    int least_pushes(const Position& position) const {
        int of_boxes = 0, of_goals = 0;
        for (Cell box : position.boxes) {
            int least = FAR;
            for (const auto& pushes : distances_) least = std::min(least, pushes[box]);
            of_boxes += least;
        }
        for (const auto& pushes : distances_) {
            int least = FAR;
            for (Cell box : position.boxes) least = std::min(least, pushes[box]);
            of_goals += least;
        }
        return std::max(of_boxes, of_goals);
    }

    int on_goals(const Position& position) const {
        return static_cast<int>(
            std::count_if(position.boxes.begin(), position.boxes.end(), [&](Cell box) { return maze_.goal[box]; }));
    }
    int crowded(const Position& position) {
        const int boxes = on_goals(position);
        return boxes + (boxes == 0 && maze_.goal[places(position)[0]]);
    }

    // Where the player may start: cells it can walk to, those off the goals if there are any.
    std::vector<Cell> places(const Position& position) {
        field_.set(position.boxes);
        field_.flood(position.player);
        std::vector<Cell> off, on;
        for (int c = 0; c < maze_.cells; ++c)
            if (field_.reached(static_cast<Cell>(c))) (maze_.goal[c] ? on : off).push_back(static_cast<Cell>(c));
        return off.empty() ? on : off;
    }

    std::vector<std::uint8_t> draw(const Position& position) {
        std::vector<std::uint8_t> tokens(floor_.size(), WALL);
        for (int c = 0; c < maze_.cells; ++c) tokens[maze_.place[c]] = maze_.goal[c] ? GOAL : FLOOR;
        for (Cell box : position.boxes) tokens[maze_.place[box]] = maze_.goal[box] ? BOX_ON_GOAL : BOX;
        const Cell player = random_.pick(places(position));
        tokens[maze_.place[player]] = maze_.goal[player] ? PLAYER_ON_GOAL : PLAYER;
        return tokens;
    }

    static constexpr int FAR = 1 << 20;
    static constexpr double FAR_ENOUGH = 5, NOISE = 0.7;  // pushes a box at 10x10; in units of energy

    const Recipe& recipe_;
    Random random_;
    Floor floor_;
    Maze maze_;
    Field field_;
    std::vector<std::vector<int>> distances_;  // of each goal
    std::vector<std::uint8_t> sides_;
    std::unordered_set<std::uint64_t> seen_;
};

// A board with few pushes, and most of those whose boxes can be delivered one after the other.
inline bool trivial(const Drawn& drawn, const Recipe& recipe, Random& random, Worker& worker, const Poll& poll) {
    constexpr double KEPT = 0.4;  // of those delivered one by one: Boxoban's medium levels are 37 % such
    if (recipe.boxes > MANY) return false;
    if (drawn.one_by_one && !random.chance(KEPT)) return true;
    const Grid grid{drawn.tokens.data(), recipe.height, recipe.width};
    const Outcome found = solve(grid, Mode::ANY, Limits{20'000}, worker, poll);
    return found.verdict == SOLVED && 2 * found.pushes < 5 * recipe.boxes;
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
