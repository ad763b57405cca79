// A search for large levels that looks at few positions and thinks about each: feature space search (FESS).
//
// A move takes one box any number of pushes. Every position falls into a cell of feature space by how far the packing
// plan is done and how free the board is. The cells take turns, whatever they hold, so that no single measure leads
// the search astray. In its turn a cell goes on with the move of least weight: moves that some advisor recommends weigh
// nothing, all others one, and a position weighs what the moves to it do.
#pragma once

#include <map>
#include <queue>
#include <random>

#include "assignment.hpp"
#include "best_first.hpp"
#include "corrals.hpp"
#include "features.hpp"

namespace maskoban {

class FeatureSearch {
public:
    FeatureSearch(const Maze& maze, Plan plan, Memory& memory, Budget& budget)
        : maze_(maze), memory_(memory), budget_(budget), field_(maze), freezing_(maze), relaxed_(maze),
          corrals_(maze, memory), assignment_(maze, memory), features_(maze, plan, memory, budget), k_(maze.start.size()), nodes_(memory), boxes_(memory), moves_(memory) {
        std::mt19937_64 random(1);
        for (int c = 0; c < maze.cells; ++c) box_keys_.push_back(random()), player_keys_.push_back(random());
    }

    // Makes so many positions at most. When solved, solution() has the pushes.
    Standing run(std::int64_t most, Outcome& outcome) {
        if (nodes_.size() == 0) {
            if (budget_.spent(outcome)) return Standing::SPENT;
            // What this search, its rules and its planner keep a cell of the floor.
            if (!memory_.claim(maze_.cells * BYTES_A_CELL)) return full_ = true, Standing::FULL;
            ++outcome.expanded, --most;
            field_.set(maze_.start);
            if (maze_.backward) start_anywhere();
            else make(NONE, {}, maze_.start, field_.flood(maze_.player), 0);
        }
        while (most > 0) {
            if (won_) return Standing::SOLVED;
            if (full_) return Standing::FULL;
            if (waiting_ == 0) return Standing::EXHAUSTED;
            turn_ = (turn_ + 1) % queues_.size();
            if (queues_[turn_].empty()) continue;
            if (budget_.spent(outcome)) return Standing::SPENT;
            ++outcome.expanded, --most;
            go_on(queues_[turn_]);
        }
        return won_ ? Standing::SOLVED : Standing::RUNNING;
    }

    std::vector<Push> solution() {
        std::vector<std::uint32_t> chain;
        for (auto i = static_cast<std::uint32_t>(nodes_.size()) - 1; nodes_[i].parent != NONE; i = nodes_[i].parent)
            chain.push_back(i);
        std::vector<Push> pushes;
        for (auto i = chain.rbegin(); i != chain.rend(); ++i) {
            const Node &node = nodes_[*i], &parent = nodes_[node.parent];
            field_.set(boxes_of(node.parent));
            field_.flood(parent.player);
            int last = -1;
            field_.walk_box<false>(node.by.from, field_.sides(node.by.from), [&](const Stop& stop, int number) {
                if (stop.cell == node.by.to && stop.sides == node.by.sides) last = number;
                return last < 0;
            });
            std::vector<Push> part;
            if (maze_.backward) {
                // The last pull is the first push.
                for (int s = last; field_.stops()[s].before >= 0; s = field_.stops()[s].before) {
                    const Stop& stop = field_.stops()[s];
                    part.push_back({maze_.place[stop.cell], static_cast<std::uint16_t>(stop.along ^ 1)});
                }
                pushes.insert(pushes.begin(), part.begin(), part.end());
                continue;
            }
            for (int s = last; field_.stops()[s].before >= 0; s = field_.stops()[s].before) {
                const Stop& stop = field_.stops()[s];
                part.push_back({maze_.place[field_.stops()[stop.before].cell], stop.along});
            }
            pushes.insert(pushes.end(), part.rbegin(), part.rend());
        }
        return pushes;
    }

private:
    // Played backwards, the game begins wherever the player may end.
    void start_anywhere() {
        std::vector<std::uint8_t> done(maze_.cells, 0);
        for (int c = 0; c < maze_.cells && !won_; ++c) {
            field_.set(maze_.start);
            if (done[c] || field_.has(static_cast<Cell>(c))) continue;
            const Cell player = field_.flood(static_cast<Cell>(c));
            for (int i = 0; i < field_.size(); ++i) done[field_.cells()[i]] = 1;
            make(NONE, {}, maze_.start, player, 0);
        }
    }

    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;
    static constexpr std::size_t BYTES_A_CELL = 400;
    static constexpr std::size_t RELAXED_POSITIONS = 100;
    // The credit of the relaxed game: what a new position brings, what one proved lost brings, what a position played costs.
    static constexpr int RELAXED_INCOME = 1, RELAXED_REWARD = 2000, RELAXED_MOST_CREDIT = 4000, RELAXED_COST = 20;

    struct Move {
        Cell from, to;
        std::uint8_t sides;  // of the box in the end that the player can get to
    };
    struct Node {
        std::uint64_t hash;
        std::uint32_t parent, first;  // first: its next move, and behind it the others
        std::uint32_t moves, advised;  // still to be tried; those at the front are advised
        std::uint16_t weight;
        Cell player;
        Move by;
    };
    struct Child {
        Move move;
        Features features;
        bool advised, checked = false, dead = false;
        std::uint64_t order;  // by the plan

        Child(const Move& by, const Features& found) : move(by), features(found), advised(false) {
            const auto part = [](int value, int bits) { return static_cast<std::uint64_t>(std::min(value, (1 << bits) - 1)); };
            order = part(1023 - std::min(found.stage, 1023), 10) << 54 | part(found.unplanned, 10) << 44 | part(found.parts, 8) << 36 |
                    part(found.tunnels, 8) << 28 | part(by.from, 12) << 16 | part(by.to, 12) << 4 | by.sides;
        }
    };
    struct Entry {
        std::uint32_t weight, order, node;
        // The queue gives the largest: the lightest, and the newest of those.
        bool operator<(const Entry& other) const {
            return weight != other.weight ? weight > other.weight : order < other.order;
        }
    };
    using Queue = std::priority_queue<Entry>;

    std::uint64_t hash(const std::vector<Cell>& boxes, Cell player) const {
        std::uint64_t hash = player_keys_[player];
        for (Cell c : boxes) hash ^= box_keys_[c];
        return hash;
    }
    std::vector<Cell> boxes_of(std::uint32_t node) const {
        std::vector<Cell> boxes(k_);
        for (std::size_t i = 0; i < k_; ++i) boxes[i] = boxes_[node * k_ + i];
        return boxes;
    }

    // Tries the next move of the lightest position of a cell.
    void go_on(Queue& queue) {
        const std::uint32_t index = queue.top().node;
        queue.pop();
        Node& node = nodes_[index];
        const bool advised = node.advised > 0;
        const Move move = moves_[node.first++];
        --node.moves;
        node.advised -= advised;
        if (node.moves > 0) queue.push({node.weight + 0u + (node.advised == 0), ++order_, index});
        else --waiting_;
        std::vector<Cell> boxes = boxes_of(index);
        *std::find(boxes.begin(), boxes.end(), move.from) = move.to;
        std::sort(boxes.begin(), boxes.end());
        field_.set(boxes);
        const Cell player = field_.flood(maze_.next[move.to][std::countr_zero(move.sides)]);
        make(index, move, boxes, player, node.weight + !advised);
    }

    // Notes a position if it is new, and finds its moves.
    void make(std::uint32_t parent, Move by, const std::vector<Cell>& boxes, Cell player, int weight) {
        const std::uint64_t key = hash(boxes, player);
        if (known(boxes, player, key)) return;
        const auto index = static_cast<std::uint32_t>(nodes_.size());
        weight = std::min(weight, 0xFFFF);
        if (!note({key, parent, 0, 0, 0, static_cast<std::uint16_t>(weight), player, by}, boxes)) return;
        if (uses(ASSIGNMENT) && assignment_.dead(boxes)) return;
        if (uses(CORRALS) && corrals_.dead(boxes, player)) return;
        if (uses(RELAXED_GAME) && lost(boxes, player)) return;
        field_.set(boxes);
        const Features features = features_.of(field_, boxes, player);
        expand(index, boxes, features);
        Node& node = nodes_[index];
        if (won_ || full_ || node.moves == 0) return;
        const auto [it, fresh] = numbers_.try_emplace(features.key(), queues_.size());
        if (fresh) queues_.emplace_back();
        queues_[it->second].push({weight + 0u + (node.advised == 0), ++order_, index});
        ++waiting_;
    }

    // Whether the relaxed game is lost. It is played only as long as it proves positions lost, since it takes long.
    bool lost(const std::vector<Cell>& boxes, Cell player) {
        relaxed_credit_ = std::min(relaxed_credit_ + RELAXED_INCOME, RELAXED_MOST_CREDIT);
        if (relaxed_credit_ <= 0) return false;
        const bool lost = relaxed_.lost(boxes, player, RELAXED_POSITIONS);
        relaxed_credit_ += lost ? RELAXED_REWARD : -static_cast<int>(relaxed_.positions()) * RELAXED_COST;
        return lost;
    }

    // The rules that tell dead positions know the game played forwards only.
    bool uses(Technique rule) const { return !maze_.backward && budget_.uses(rule); }

    // Whether the player stands where the level begins, once all boxes do.
    bool player_at_start(Cell player) {
        field_.flood(player);
        return field_.reached(maze_.player);
    }

    bool note(const Node& node, const std::vector<Cell>& boxes) {
        if (nodes_.size() * 2 >= slots_.size() && !grow()) return full_ = true, false;
        // An entry of a queue goes with every node.
        if (!memory_.claim(sizeof(Entry)) || !nodes_.add(node)) return full_ = true, false;
        for (Cell c : boxes)
            if (!boxes_.add(c)) return full_ = true, false;
        put(static_cast<std::uint32_t>(nodes_.size()) - 1);
        return true;
    }

    void put(std::uint32_t node) {
        std::size_t at = nodes_[node].hash & (slots_.size() - 1);
        while (slots_[at] != NONE) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = node;
    }
    bool grow() {
        const std::size_t size = std::max<std::size_t>(1024, slots_.size() * 2);
        if (!memory_.claim((size - slots_.size()) * sizeof(std::uint32_t))) return false;
        std::vector<std::uint32_t>().swap(slots_);
        slots_.assign(size, NONE);
        for (std::uint32_t i = 0; i < nodes_.size(); ++i) put(i);
        return true;
    }
    // Whether this position, its boxes in order, has been made before.
    bool known(const std::vector<Cell>& boxes, Cell player, std::uint64_t key) const {
        if (slots_.empty()) return false;
        for (std::size_t at = key & (slots_.size() - 1); slots_[at] != NONE; at = (at + 1) & (slots_.size() - 1)) {
            const Node& node = nodes_[slots_[at]];
            if (node.hash != key || node.player != player) continue;
            std::size_t i = 0;
            while (i < k_ && boxes_[slots_[at] * k_ + i] == boxes[i]) ++i;
            if (i == k_) return true;
        }
        return false;
    }

    // Finds the moves of a position that are not dead at sight, those that are advised first.
    void expand(std::uint32_t index, const std::vector<Cell>& boxes, const Features& now) {
        field_.set(boxes);
        field_.flood(nodes_[index].player);
        std::vector<std::uint8_t> sides;
        for (Cell c : boxes) sides.push_back(field_.sides(c));
        children_.clear();
        std::vector<Cell> after = boxes;
        for (std::size_t b = 0; b < k_ && !won_ && !full_; ++b) {
            if (sides[b] == 0) continue;
            budget_.look_at_clock();
            features_.prepare(boxes, b);
            field_.walk_box<false>(boxes[b], sides[b], [&](const Stop& stop, int) {
                after[b] = stop.cell;
                field_.put(stop.cell);
                if (maze_.backward || !freezing_.dead(field_, stop.cell)) {
                    const Move move{boxes[b], stop.cell, stop.sides};
                    const Cell player = maze_.next[stop.cell][stop.along ^ !maze_.backward];
                    const Features features = features_.of_moved(field_, after, player, stop.cell);
                    full_ |= !add_child({move, features});
                    won_ = features.home == k_ && (!maze_.backward || player_at_start(player));
                }
                field_.take(stop.cell);
                return !won_ && !full_;
            });
            after[b] = boxes[b];
        }
        if (full_) return;
        if (won_) {
            const Child& last = children_.back();
            note({0, index, 0, 0, 0, 0, 0, last.move}, boxes);
            won_ = !full_;
            return;
        }
        advise(now, boxes);
        Node& node = nodes_[index];
        node.first = static_cast<std::uint32_t>(moves_.size());
        for (const bool advised : {true, false})
            for (const Child& child : children_) {
                if (child.advised != advised || child.dead) continue;
                full_ |= !moves_.add(child.move);
                ++node.moves;
                node.advised += advised;
            }
    }

    bool add_child(const Child& child) {
        if (children_.size() == children_.capacity()) {
            const std::size_t more = std::max<std::size_t>(1024, children_.capacity());
            if (!memory_.claim(more * sizeof(Child))) return false;
            children_.reserve(children_.capacity() + more);
        }
        children_.push_back(child);
        return true;
    }

    // Every advisor recommends the move that does best by its measure, if that is better than now.
    void advise(const Features& now, const std::vector<Cell>& boxes) {
        std::sort(children_.begin(), children_.end(), [](const Child& a, const Child& b) { return a.order < b.order; });
        const auto ask = [&](auto measure) {
            for (;;) {
                Child* best = nullptr;
                auto least = measure(now);
                for (Child& child : children_)
                    if (auto value = measure(child.features); !child.dead && value < least) least = value, best = &child;
                if (best == nullptr) return;
                if (!check_dead(*best, boxes)) {
                    best->advised = true;
                    return;
                }
            }
        };
        ask([](const Features& f) { return std::tuple(-f.stage, f.unplanned, f.parts, f.tunnels, -f.pushes); });
        ask([](const Features& f) { return std::tuple(f.parts, f.tunnels, f.unplanned, -f.reach); });
        ask([](const Features& f) { return std::tuple(f.tunnels, f.parts, f.unplanned, -f.reach); });
        ask([](const Features& f) { return std::tuple(f.unplanned, f.parts, f.tunnels, -f.reach); });
        ask([](const Features& f) { return std::tuple(-f.pushes, f.parts, f.tunnels); });
        ask([](const Features& f) { return std::tuple(-f.reach, f.parts, f.tunnels); });
    }

    bool check_dead(Child& child, const std::vector<Cell>& boxes) {
        if (child.checked) return child.dead;
        std::vector<Cell> after = boxes;
        *std::find(after.begin(), after.end(), child.move.from) = child.move.to;
        child.checked = true;
        const Cell player = maze_.next[child.move.to][std::countr_zero(child.move.sides)];
        child.dead = (uses(ASSIGNMENT) && assignment_.dead(after)) || (uses(CORRALS) && corrals_.dead(after, player));
        return child.dead;
    }

    const Maze& maze_;
    Memory& memory_;
    Budget& budget_;
    Field field_;
    Freezing freezing_;
    RelaxedGame relaxed_;
    Corrals corrals_;
    Assignment assignment_;
    FeatureFinder features_;
    std::size_t k_;
    Pool<Node> nodes_;
    Pool<Cell> boxes_;  // k_ for each node
    Pool<Move> moves_;
    std::vector<std::uint64_t> box_keys_, player_keys_;
    std::vector<std::uint32_t> slots_;
    std::map<std::array<int, 4>, std::size_t> numbers_;  // of the cells of feature space
    std::vector<Queue> queues_;
    std::vector<Child> children_;
    std::size_t turn_ = 0, waiting_ = 0;
    std::uint32_t order_ = 0;
    int relaxed_credit_ = RELAXED_MOST_CREDIT;
    bool won_ = false, full_ = false;
};

}  // namespace maskoban
