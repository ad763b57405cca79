// In which order the goals are filled: found backwards, by pulling boxes off their goals until none is left.
#pragma once

#include <deque>
#include <queue>
#include <unordered_set>

#include "field.hpp"
#include "memory.hpp"
#include "outcome.hpp"

namespace maskoban {

// One step of the plan: a box is brought to `to`, from outside (`from` is the wall) or from where an earlier step left it.
struct PackingStep {
    Cell from, to;
};

// A position that has all boxes of the first i steps in place is at stage i.
struct Packing {
    std::vector<PackingStep> steps;
    // ready[c * words ..]: the steps a box on c could be used for when all steps before are done and no other box is there.
    std::vector<std::uint64_t> ready;
    int words = 0;

    // The last stage whose boxes are all there.
    int stage(const Field& field, const Maze& maze) const {
        int missing = 0, best = 0;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            missing += field.free(steps[i].to);
            if (steps[i].from != maze.wall()) missing -= field.free(steps[i].from);
            if (missing == 0) best = static_cast<int>(i) + 1;
        }
        return best;
    }
};

// Two ways to plan. FROM_STARTS: a box comes from wherever one starts. FROM_OUTSIDE: the boxes that start near goals are
// left out of account, for they may be in the way all the time.
enum class Plan { FROM_STARTS, FROM_OUTSIDE };

class Packer {
public:
    Packer(const Maze& maze, Plan plan, Memory& memory, Budget& budget)
        : maze_(maze), memory_(memory), budget_(budget), field_(maze), starts_(maze.start), matching_(plan == Plan::FROM_STARTS) {
        if (plan == Plan::FROM_OUTSIDE) {
            std::erase_if(starts_, [&](Cell c) {
                return maze.goal[c] || std::any_of(maze.ring[c].begin(), maze.ring[c].end(), [&](Cell n) { return maze.goal[n]; });
            });
            if (starts_.empty()) starts_ = maze.start;
        }
    }
    ~Packer() { memory_.release(claimed_); }

    Packing find() {
        std::priority_queue<Entry> open;
        field_.set(maze_.goals);
        std::vector<std::uint8_t> walked(maze_.cells, 0);
        for (int c = 0; c < maze_.cells; ++c) {
            if (walked[c] || field_.has(static_cast<Cell>(c))) continue;
            const Cell player = field_.flood(static_cast<Cell>(c));
            for (int i = 0; i < field_.size(); ++i) walked[field_.cells()[i]] = 1;
            add(open, {maze_.goals, player, {}, {}, 0, 0});
        }
        Node best{maze_.goals, 0, {}, {}, 0, 0};
        for (int tried = 0; !open.empty() && tried < MOST_NODES; ++tried) {
            const int index = open.top().node;
            open.pop();
            Node node = nodes_[index];
            unload(node);
            if (node.boxes.size() < best.boxes.size()) best = node;
            if (node.boxes.empty()) break;
            relocate(node, open);
        }
        Packing packing;
        // What is left over when the search gives up is packed first, in any order.
        for (Cell c : best.boxes) packing.steps.push_back({maze_.wall(), c});
        packing.steps.insert(packing.steps.end(), best.steps.rbegin(), best.steps.rend());
        find_ready(packing);
        return packing;
    }

private:
    static constexpr int MOST_NODES = 2000;
    static constexpr std::size_t MOST_KNOWN = 20'000;

    struct Entry {
        int boxes, relocations, reach, node;
        bool operator<(const Entry& other) const {
            if (boxes != other.boxes) return boxes > other.boxes;
            if (relocations != other.relocations) return relocations > other.relocations;
            if (reach != other.reach) return reach < other.reach;
            return node > other.node;
        }
    };

    struct Node {
        std::vector<Cell> boxes;
        Cell player;
        std::vector<PackingStep> steps;       // backwards: the last of the plan first
        std::vector<std::uint64_t> sources;   // for each box taken off, the starts it could come from
        int relocations, reach;

        // With its entries in the queue and in the set of those seen.
        std::size_t bytes() const {
            return sizeof(Node) + sizeof(Entry) + 64 + boxes.capacity() * sizeof(Cell) +
                   steps.capacity() * sizeof(PackingStep) + sources.capacity() * sizeof(std::uint64_t);
        }
    };

    void add(std::priority_queue<Entry>& open, Node node) {
        std::uint64_t hash = node.player;
        std::vector<Cell> sorted = node.boxes;
        std::sort(sorted.begin(), sorted.end());
        for (Cell c : sorted) hash = (hash ^ c) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        if (seen_.size() >= MOST_KNOWN || seen_.contains(hash)) return;
        const std::size_t bytes = node.bytes();
        if (!memory_.claim(bytes)) return;
        claimed_ += bytes;
        seen_.insert(hash);
        nodes_.push_back(std::move(node));
        const Node& added = nodes_.back();
        open.push({static_cast<int>(added.boxes.size()), added.relocations, added.reach,
                   static_cast<int>(nodes_.size()) - 1});
    }

    // Takes off the board every box that can be pulled to where some box starts. That never hurts: the player can walk
    // back the way it came. The nearest goes first, so that it is packed last.
    void unload(Node& node) {
        field_.set(node.boxes);
        for (;;) {
            budget_.look_at_clock();
            int best = -1, least = 1 << 30;
            std::uint64_t best_sources = 0;
            Cell best_player = 0;
            for (std::size_t i = 0; i < node.boxes.size(); ++i) {
                field_.flood(node.player);
                const std::uint8_t sides = field_.sides(node.boxes[i]);
                if (sides == 0) continue;
                std::uint64_t sources = source(node.boxes[i]);
                int steps = sources ? 0 : 1 << 30;
                Cell player = node.player;
                field_.walk_box<true>(node.boxes[i], sides, [&](const Stop& stop, int) {
                    const std::uint64_t here = source(stop.cell);
                    sources |= here;
                    if (here && stop.steps < steps) steps = stop.steps, player = maze_.next[stop.cell][stop.along ^ maze_.backward];
                    return true;
                });
                if (sources && steps < least && matched(node.sources, sources))
                    best = static_cast<int>(i), least = steps, best_sources = sources, best_player = player;
            }
            if (best < 0) return;
            node.steps.push_back({maze_.wall(), node.boxes[best]});
            node.sources.push_back(best_sources);
            field_.take(node.boxes[best]);
            node.boxes.erase(node.boxes.begin() + best);
            node.player = field_.flood(best_player);
        }
    }

    void relocate(const Node& node, std::priority_queue<Entry>& open) {
        if (seen_.size() >= MOST_KNOWN) return;
        for (std::size_t i = 0; i < node.boxes.size(); ++i) {
            field_.flood(node.player);
            const Cell box = node.boxes[i];
            const std::uint8_t sides = field_.sides(box);
            if (sides == 0) continue;
            std::vector<std::pair<Cell, Cell>> ends;
            field_.walk_box<true>(box, sides, [&](const Stop& stop, int) {
                ends.emplace_back(stop.cell, maze_.next[stop.cell][stop.along ^ maze_.backward]);
                return true;
            });
            budget_.look_at_clock();
            for (const auto& [to, player] : ends) {
                Node next = node;
                next.boxes[i] = to;
                field_.take(box);
                field_.put(to);
                next.player = field_.flood(player);
                next.reach = field_.size();
                field_.take(to);
                field_.put(box);
                next.steps.push_back({to, box});
                ++next.relocations;
                add(open, std::move(next));
            }
        }
    }

    // The boxes that start on this cell, as a set of one or none; beyond 64 boxes all count as one.
    std::uint64_t source(Cell c) const {
        for (std::size_t i = 0; i < starts_.size(); ++i)
            if (starts_[i] == c) return std::uint64_t{1} << (i < 64 ? i : 63);
        return 0;
    }

    // Whether all boxes taken off, and one more, can come from starts of their own.
    bool matched(const std::vector<std::uint64_t>& sources, std::uint64_t more) const {
        if (!matching_ || maze_.start.size() > 64) return true;
        std::vector<std::uint64_t> all = sources;
        all.push_back(more);
        std::vector<int> owner(64, -1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::uint64_t tried = 0;
            if (!augment(all, owner, static_cast<int>(i), tried)) return false;
        }
        return true;
    }
    static bool augment(const std::vector<std::uint64_t>& all, std::vector<int>& owner, int i, std::uint64_t& tried) {
        while (const std::uint64_t rest = all[i] & ~tried) {
            const int s = std::countr_zero(rest);
            tried |= std::uint64_t{1} << s;
            if (owner[s] < 0 || augment(all, owner, owner[s], tried)) return owner[s] = i, true;
        }
        return false;
    }

    void find_ready(Packing& packing) {
        packing.words = static_cast<int>(packing.steps.size() + 63) / 64;
        packing.ready.assign(static_cast<std::size_t>(maze_.cells + 1) * packing.words, 0);
        field_.clear();
        for (std::size_t i = 0; i < packing.steps.size(); ++i) {
            const auto [from, to] = packing.steps[i];
            const auto note = [&](Cell c) { packing.ready[c * packing.words + i / 64] |= std::uint64_t{1} << (i % 64); };
            if (from == maze_.wall() && field_.free(to)) {
                note(to);
                std::uint8_t left = 15;
                for (int d = 0; d < 4; ++d) {
                    const Cell player = maze_.next[to][d];
                    if (!(left >> d & 1) || field_.has(player)) continue;
                    field_.put(to);
                    field_.flood(player);
                    const std::uint8_t sides = field_.sides(to);
                    left &= ~sides;
                    field_.walk_box<true>(to, sides, [&](const Stop& stop, int) { return note(stop.cell), true; });
                    field_.take(to);
                }
            }
            if (from != maze_.wall()) field_.take(from);
            field_.put(to);
        }
    }

    const Maze& maze_;
    Memory& memory_;
    Budget& budget_;
    Field field_;
    std::vector<Cell> starts_;
    bool matching_;  // whether every box needs a start of its own
    std::size_t claimed_ = 0;
    std::deque<Node> nodes_;
    std::unordered_set<std::uint64_t> seen_;
};

}  // namespace maskoban
