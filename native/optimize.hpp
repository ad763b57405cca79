// Shortens a solution. A window is a run of pushes that move at most four boxes. It is searched again by A*, all other
// boxes standing still, and replaced where a shorter way to the same position is found. So no solution gets longer.
#pragma once

#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "field.hpp"
#include "solve.hpp"

namespace maskoban {

class Optimizer {
public:
    // Costs compare by the measure, then by the other one: by moves and then pushes, or by pushes and then moves.
    Optimizer(const Maze& maze, bool by_moves, Budget& budget, Outcome& outcome)
        : maze_(maze), step_(by_moves ? MAJOR : 1), push_(MAJOR + 1), budget_(budget), outcome_(outcome), field_(maze),
          far_(maze.cells + 1), slots_(SLOTS) {}

    // Shortens the pushes of these moves until no window gets shorter or a limit is hit.
    std::vector<Push> run(std::string_view lurd) {
        read(lurd);
        try {
            cut_loops();
            while (shorten_once()) {}
        } catch (const OutOfTime&) {
            budget_.out_of_time(outcome_);
        }
        std::vector<Push> pushes;
        for (const Step& step : steps_) pushes.push_back({maze_.place[step.box], step.along});
        return pushes;
    }

private:
    using Cost = std::uint64_t;
    static constexpr Cost MAJOR = Cost{1} << 32, NEVER = ~Cost{0};
    static constexpr int MOST_BOXES = 4, STATES = 20'000;
    static constexpr std::size_t SLOTS = std::size_t{1} << 18;
    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;
    static constexpr std::uint64_t DONE = std::uint64_t{1} << 63;  // in a key: the player stands where the window ends

    struct Step {
        Cell box;  // where it stands before the push
        std::uint16_t along;
    };
    struct Slot {
        std::uint64_t key;
        std::uint32_t node, stamp;
    };
    struct Node {
        std::uint64_t key;
        Cost cost;
        std::uint32_t parent;
        Step by;
    };
    struct Entry {
        Cost least;
        std::uint32_t node;
        bool operator<(const Entry& other) const { return least != other.least ? least > other.least : node < other.node; }
    };
    using Boxes = std::vector<Cell>;  // in order

    void read(std::string_view lurd) {
        field_.set(maze_.start);
        Cell player = maze_.player;
        for (char letter : lurd) {
            const auto along = static_cast<Direction>(std::string_view("udlr").find(static_cast<char>(letter | 0x20)));
            player = maze_.next[player][along];
            if (field_.has(player)) {
                steps_.push_back({player, static_cast<std::uint16_t>(along)});
                push(steps_.back());
            }
        }
    }
    void push(const Step& step) {
        field_.take(step.box);
        field_.put(maze_.next[step.box][step.along]);
    }
    Cell stand(const Step& step) const { return maze_.next[step.box][opposite(static_cast<Direction>(step.along))]; }

    // Sets the field to the position before push i, and returns where the player is.
    Cell go_to(std::size_t i) {
        field_.set(maze_.start);
        for (std::size_t s = 0; s < i; ++s) push(steps_[s]);
        return i == 0 ? maze_.player : steps_[i - 1].box;
    }

    // Leaves out what lies between two times the same position.
    void cut_loops() {
        std::unordered_map<std::string, std::size_t> seen;
        std::vector<Step> kept;
        field_.set(maze_.start);
        Cell player = maze_.player;
        for (std::size_t i = 0;; ++i) {
            std::string position;
            const Cell lowest = field_.flood(player);
            for (int c = 0; c < maze_.cells; ++c) position += static_cast<char>(field_.has(static_cast<Cell>(c)));
            position += std::to_string(lowest);
            const auto [at, fresh] = seen.try_emplace(position, kept.size());
            if (!fresh) {
                kept.resize(at->second);
                std::erase_if(seen, [&](const auto& entry) { return entry.second > kept.size(); });
            }
            if (i == steps_.size()) break;
            kept.push_back(steps_[i]);
            push(steps_[i]);
            player = steps_[i].box;
        }
        steps_ = std::move(kept);
    }

    // Searches every window once; true when one got shorter.
    bool shorten_once() {
        bool shorter = false;
        for (int most = 1; most <= MOST_BOXES; ++most) {
            std::size_t searched = 0;            // windows that end here at the latest have been searched
            std::size_t length = steps_.size();  // pushes of a window at most: fewer where a search gives up
            for (std::size_t i = 0; i < steps_.size(); ++i) {
                const std::size_t end = std::min(end_of_window(i, most), i + length);
                if (end <= searched) continue;
                const std::size_t before = steps_.size();
                switch (search(i, end)) {
                    case Found::STOPPED: return false;
                    case Found::SHORTER: shorter = true; [[fallthrough]];
                    case Found::NOTHING: searched = end + steps_.size() - before, length += 1 + length / 4; break;
                    case Found::GAVE_UP: length = std::max<std::size_t>(1, (end - i) / 2), i -= length > 1; break;
                }
            }
        }
        return shorter;
    }

    std::size_t end_of_window(std::size_t i, int most) {
        std::vector<Cell> boxes;
        for (; i < steps_.size(); ++i) {
            auto box = std::find(boxes.begin(), boxes.end(), steps_[i].box);
            if (box == boxes.end()) {
                if (static_cast<int>(boxes.size()) == most) break;
                box = boxes.insert(box, steps_[i].box);
            }
            *box = maze_.next[steps_[i].box][steps_[i].along];
        }
        return i;
    }

    enum class Found { SHORTER, NOTHING, GAVE_UP, STOPPED };

    Found search(std::size_t first, std::size_t end) {
        const Cell player = go_to(first);
        // The boxes of the window, before and after it.
        Boxes from, to;
        for (std::size_t i = first; i < end; ++i) {
            const Cell box = steps_[i].box;
            if (const auto at = std::find(to.begin(), to.end(), box); at != to.end()) to.erase(at);
            else from.push_back(box);
            to.push_back(maze_.next[box][steps_[i].along]);
        }
        std::sort(from.begin(), from.end());
        std::sort(to.begin(), to.end());
        const bool last = end == steps_.size();
        const Cell target = last ? maze_.wall() : stand(steps_[end]);
        if (!windows_.insert(name_of(first, end, player, target)).second) return Found::NOTHING;
        const Cost now = cost_of(first, end, player, target);
        go_to(first);
        for (Cell c : from) field_.take(c);
        measure_distances(to);

        nodes_.clear();
        ++stamp_;
        std::priority_queue<Entry> open;
        const auto add = [&](std::uint64_t key, Cost cost, Cost bound, std::uint32_t parent, Step by) {
            if (bound == NEVER || cost + bound >= now) return true;
            std::size_t at = (key * 0x9E3779B97F4A7C15u) >> 46;
            while (slots_[at].stamp == stamp_ && slots_[at].key != key) at = (at + 1) & (SLOTS - 1);
            if (slots_[at].stamp == stamp_ && nodes_[slots_[at].node].cost <= cost) return true;
            if (nodes_.size() >= SLOTS / 2) return false;
            slots_[at] = {key, static_cast<std::uint32_t>(nodes_.size()), stamp_};
            nodes_.push_back({key, cost, parent, by});
            open.push({cost + bound, slots_[at].node});
            return true;
        };
        add(key_of(from, player), 0, bound(from), NONE, {});
        for (int n = 0; !open.empty(); ) {
            const std::uint32_t index = open.top().node;
            open.pop();
            const Node node = nodes_[index];
            if (find(node.key) != index) continue;  // reached by a shorter way since
            Boxes boxes;
            for (std::size_t b = 0; b < from.size(); ++b) boxes.push_back(static_cast<Cell>(node.key >> (12 * b + 12) & 0xFFF));
            if (node.key & DONE || (last && boxes == to)) return replace(first, end, index), Found::SHORTER;
            if (++n > STATES) return Found::GAVE_UP;
            if (budget_.spent(outcome_)) return Found::STOPPED;
            ++outcome_.expanded;
            for (Cell c : boxes) field_.put(c);
            walk_from(static_cast<Cell>(node.key & 0xFFF));
            for (Cell c : boxes) field_.take(c);
            bool room = true;
            if (boxes == to && far_[target] != FAR)
                room &= add(key_of(boxes, target) | DONE, node.cost + far_[target] * step_, 0, index, {});
            for (std::size_t b = 0; b < boxes.size(); ++b)
                for (Direction d : DIRECTIONS) {
                    const Step by{boxes[b], static_cast<std::uint16_t>(d)};
                    const Cell there = maze_.next[boxes[b]][d], behind = stand(by);
                    if (far_[behind] == FAR || field_.has(there) || std::binary_search(boxes.begin(), boxes.end(), there)) continue;
                    Boxes after = boxes;
                    after[b] = there;
                    std::sort(after.begin(), after.end());
                    room &= add(key_of(after, boxes[b]), node.cost + far_[behind] * step_ + push_, bound(after), index, by);
                }
            if (!room) return Found::GAVE_UP;
        }
        return Found::NOTHING;
    }

    // Tells windows apart: the position before it, its pushes and where the player ends. The field holds the position.
    std::uint64_t name_of(std::size_t first, std::size_t end, Cell player, Cell target) const {
        std::uint64_t name = std::uint64_t{player} << 16 | target;
        const auto mix = [&](std::uint64_t value) { name = (name ^ value) * 0x9E3779B97F4A7C15u, name ^= name >> 29; };
        for (int c = 0; c < maze_.cells; ++c)
            if (field_.has(static_cast<Cell>(c))) mix(static_cast<std::uint64_t>(c));
        for (std::size_t i = first; i < end; ++i) mix(std::uint64_t{steps_[i].box} << 2 | steps_[i].along | MAJOR);
        return name;
    }

    // A cell has 12 bits, since there are 4096 at most.
    static std::uint64_t key_of(const Boxes& boxes, Cell player) {
        std::uint64_t key = player;
        for (std::size_t b = 0; b < boxes.size(); ++b) key |= std::uint64_t{boxes[b]} << (12 * b + 12);
        return key;
    }
    std::uint32_t find(std::uint64_t key) const {
        std::size_t at = (key * 0x9E3779B97F4A7C15u) >> 46;
        while (slots_[at].key != key || slots_[at].stamp != stamp_) at = (at + 1) & (SLOTS - 1);
        return slots_[at].node;
    }

    // What the pushes of a window and the walks between them cost, with the walk to where the next push begins.
    Cost cost_of(std::size_t first, std::size_t end, Cell player, Cell target) {
        Cost cost = 0;
        for (std::size_t i = first; i < end; ++i) {
            walk_from(player);
            cost += far_[stand(steps_[i])] * step_ + push_;
            push(steps_[i]);
            player = steps_[i].box;
        }
        if (target == maze_.wall()) return cost;
        walk_from(player);
        return cost + far_[target] * step_;
    }

    static constexpr Cost FAR = 0xFFFF;
    void walk_from(Cell player) {
        std::fill(far_.begin(), far_.end(), FAR);
        far_[player] = 0;
        queue_.assign(1, player);
        for (std::size_t head = 0; head < queue_.size(); ++head)
            for (Cell there : maze_.next[queue_[head]])
                if (far_[there] == FAR && field_.free(there)) {
                    far_[there] = far_[queue_[head]] + 1;
                    queue_.push_back(there);
                }
    }

    // Pushes a lone box needs from every cell to each of these, wherever the player is.
    void measure_distances(const Boxes& to) {
        distances_.assign(to.size(), std::vector<std::uint16_t>(maze_.cells + 1, FAR));
        for (std::size_t t = 0; t < to.size(); ++t) {
            auto& distance = distances_[t];
            distance[to[t]] = 0;
            queue_.assign(1, to[t]);
            for (std::size_t head = 0; head < queue_.size(); ++head)
                for (Direction d : DIRECTIONS) {
                    const Cell box = maze_.next[queue_[head]][d], player = maze_.next[box][d];
                    if (field_.has(box) || field_.has(player) || distance[box] != FAR) continue;
                    distance[box] = distance[queue_[head]] + 1;
                    queue_.push_back(box);
                }
        }
    }
    // The cheapest assignment of the boxes to where they end, by lone pushes.
    Cost bound(const Boxes& boxes) const {
        const std::size_t k = boxes.size();
        unsigned least[1 << MOST_BOXES];
        std::fill_n(least, 1 << k, unsigned{FAR});
        least[0] = 0;
        for (unsigned set = 0; set + 1 < 1u << k; ++set)
            for (std::size_t t = 0; t < k; ++t)
                if (!(set >> t & 1)) {
                    unsigned& there = least[set | 1u << t];
                    there = std::min(there, least[set] + distances_[t][boxes[std::popcount(set)]]);
                }
        return least[(1 << k) - 1] >= FAR ? NEVER : least[(1 << k) - 1] * push_;
    }

    void replace(std::size_t first, std::size_t end, std::uint32_t node) {
        std::vector<Step> found;
        for (; nodes_[node].parent != NONE; node = nodes_[node].parent)
            if (!(nodes_[node].key & DONE)) found.push_back(nodes_[node].by);
        steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(first), steps_.begin() + static_cast<std::ptrdiff_t>(end));
        steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(first), found.rbegin(), found.rend());
    }

    const Maze& maze_;
    Cost step_, push_;
    Budget& budget_;
    Outcome& outcome_;
    Field field_;
    std::vector<Step> steps_;
    std::vector<Cost> far_;
    std::vector<Cell> queue_;
    std::vector<std::vector<std::uint16_t>> distances_;  // by the end of a box and the cell it stands on
    std::vector<Node> nodes_;
    std::vector<Slot> slots_;
    std::uint32_t stamp_ = 0;
    std::unordered_set<std::uint64_t> windows_;  // searched before
};

// The solution must solve the board.
inline Outcome optimize(const Grid& grid, std::string_view solution, bool by_moves, const Limits& limits, const Poll& poll) {
    const auto start = Clock::now();
    Outcome outcome;
    Room room;
    find_room(grid, room);
    Budget budget(limits, start, room.height * room.width, poll);
    Board<64> board;
    set_board(board, grid, room);
    const Maze maze = make_maze(board);
    write_solution(board, Optimizer(maze, by_moves, budget, outcome).run(solution), outcome);
    outcome.seconds = since(start);
    return outcome;
}

}  // namespace maskoban
