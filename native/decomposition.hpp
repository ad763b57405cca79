// Mode decomposed: how much a player has to consider who delivers the boxes in groups as small as possible, one group
// after the other. Defined in docs/solver.md.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "effort.hpp"

namespace maskoban {

// A position between two groups. Boxes that have been delivered stay where they are.
template <int N>
struct Stage {
    Bits<N> boxes, delivered;
    std::uint16_t player;  // lowest cell the player can reach
    std::uint32_t parent;
    std::int64_t cost;

    struct Hash {
        std::size_t operator()(const Stage& s) const { return s.boxes.hash(s.delivered.hash(s.player + 1u)); }
    };
    bool operator==(const Stage& other) const {
        return boxes == other.boxes && delivered == other.delivered && player == other.player;
    }
};

template <int N>
class Decomposition {
public:
    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;

    Decomposition(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome)
        : board_(board), memory_(memory), budget_(budget), outcome_(outcome) {}

    // Groups of one box first, larger ones only where smaller ones do not solve the board.
    void search() {
        for (int size = 1; size <= board_.start.count(); ++size) {
            const std::uint32_t last = cheapest_sequence(size);
            if (stopped_) return;
            if (last != NONE) return write(last, size);
        }
        outcome_.verdict = UNSOLVABLE;
    }

private:
    using State = EffortState<N>;

    // Dijkstra's algorithm over stages; an edge is the search of one group. Returns the last stage, or NONE.
    std::uint32_t cheapest_sequence(int size) {
        stages_.clear(), known_.clear(), queue_ = {}, best_ = NO_COST;
        const auto player = static_cast<std::uint16_t>(board_.start_reach().lowest());
        reach({board_.start, {}, player, NONE, 0});
        while (!queue_.empty() && !stopped_) {
            const auto [cost, index] = queue_.top();
            queue_.pop();
            const Stage<N> stage = stages_[index];
            if (cost > stage.cost) continue;
            if ((stage.boxes - board_.goals).none()) return index;
            std::vector<int> open;
            each(stage.boxes - stage.delivered, [&](int box) { open.push_back(box); });
            each_group(stage, index, open, 0, size, {});
        }
        return NONE;
    }

    // Searches every group that adds at most `size` of the open boxes from number `first` on.
    void each_group(const Stage<N>& stage, std::uint32_t index, const std::vector<int>& open, std::size_t first,
                    int size, const Bits<N>& group) {
        for (std::size_t i = first; i < open.size() && size > 0 && !stopped_; ++i) {
            Bits<N> larger = group;
            larger.set(open[i]);
            deliver(stage, index, larger);
            each_group(stage, index, open, i + 1, size - 1, larger);
        }
    }

    // Adds the stages that follow from a delivery of the group, to whatever goals.
    void deliver(const Stage<N>& stage, std::uint32_t index, const Bits<N>& group) {
        const Bits<N> others = stage.boxes - group;
        std::vector<std::uint32_t> ends;  // in order of pushes
        // A group that solves the board has one set of goals left, and its first end is the cheapest.
        const bool last_group = others.within(board_.goals);
        States<State> states = explore(stage, group, [&](const State&, std::uint32_t end) {
            ends.push_back(end);
            return !last_group;
        });
        if (stopped_) return;
        std::vector<std::uint32_t> pushes(states.size());
        for (std::uint32_t i = 1; i < states.size(); ++i) pushes[i] = pushes[states[i].parent] + 1;
        for (auto first = ends.begin(); first != ends.end();) {
            const Bits<N> goals = states[*first].boxes - others;
            const auto last = std::stable_partition(
                first, ends.end(), [&](std::uint32_t end) { return states[end].boxes - others == goals; });
            const std::vector<std::int64_t> costs = find_costs(states, pushes, others, goals, pushes[*(last - 1)]);
            for (; first != last; ++first)
                reach({states[*first].boxes, stage.delivered | goals, states[*first].player, index,
                       stage.cost + costs[pushes[*first]]});
        }
    }

    // What a delivery to these goals costs, by its number of pushes up to `most`: the states with fewer pushes whose
    // pushes and bound together are no more. Those are the states A* expands at worst.
    std::vector<std::int64_t> find_costs(States<State>& states, const std::vector<std::uint32_t>& pushes,
                                         const Bits<N>& others, const Bits<N>& goals, std::uint32_t most) {
        budget_.look_at_clock();
        find_distances(goals, board_.floor - others);
        std::vector<std::int64_t> costs(most + 1);
        for (std::uint32_t i = 0; i < states.size() && pushes[i] < most; ++i) {
            std::uint32_t bound = 0;
            each(states[i].boxes - others, [&](int box) { bound += distance_[box]; });
            bound = std::max(bound, 1u);
            if (pushes[i] + bound <= most) ++costs[pushes[i] + bound];
        }
        std::partial_sum(costs.begin(), costs.end(), costs.begin());
        return costs;
    }

    // The fewest pushes of a lone box from each cell to one of the goals, wherever the player may stand.
    void find_distances(const Bits<N>& goals, const Bits<N>& free) {
        std::fill(std::begin(distance_), std::end(distance_), FAR);
        Bits<N> seen = goals, front = goals;
        for (std::uint32_t pushes = 0; front.any(); ++pushes) {
            each(front, [&](int c) { distance_[c] = pushes; });
            Bits<N> next;
            // Backwards: the box is pulled to the next cell, and the player ends on the one beyond.
            for (Direction d : DIRECTIONS) next |= board_.moved(front, d) & free & board_.moved(free, opposite(d));
            front = next - seen;
            seen |= front;
        }
    }

    // All states in which only the group has moved, in order of pushes. Calls found(state, index) for each
    // of them with the whole group on goals, until it returns false; that state is then the last.
    template <class Found>
    States<State> explore(const Stage<N>& stage, const Bits<N>& group, const Found& found) {
        const Bits<N> others = stage.boxes - group;
        States<State> states(memory_);
        if (states.add({stage.boxes, stage.player, 0, 0, NONE}).index == NONE) return give_up(states);
        std::int64_t pushes = 0;
        for (std::uint32_t front = 0, layer_end = 1; front < states.size(); ++front) {
            if (front == layer_end) {
                layer_end = states.size();
                if (stage.cost + ++pushes >= best_) break;  // a push costs a state at least
            }
            if (budget_.spent(outcome_)) return stopped_ = true, states;
            ++outcome_.expanded;
            const State state = states[front];
            const Bits<N> reach = board_.flood(Bits<N>::cell(state.player), board_.floor - state.boxes);
            for (Direction d : DIRECTIONS) {
                bool go_on = true;
                each(board_.pushable(state.boxes, reach, board_.live, d) - others, [&](int box) {
                    if (!go_on) return;
                    State next{state.boxes, 0, static_cast<std::uint16_t>(box), static_cast<std::uint16_t>(d), front};
                    next.boxes.clear(box);
                    next.boxes.set(box + board_.step[d]);
                    next.player = static_cast<std::uint16_t>(
                        board_.reach_after(reach, next.boxes, box, box + board_.step[d]).lowest());
                    const auto added = states.add(next);
                    if (added.index == NONE) give_up(states), go_on = false;
                    else if (added.fresh && (next.boxes - others).within(board_.goals)) go_on = found(next, added.index);
                });
                if (!go_on) return states;
            }
        }
        return states;
    }

    States<State>& give_up(States<State>& states) {
        stopped_ = true;
        budget_.out_of_memory(outcome_);
        return states;
    }

    // Adds a stage, or a cheaper way to it.
    void reach(const Stage<N>& stage) {
        const auto [place, fresh] = known_.try_emplace(stage, static_cast<std::uint32_t>(stages_.size()));
        if (fresh) {
            // In the list, in the table with its links, and perhaps several times in the queue.
            if (stages_.size() == claimed_ && !memory_.claim(4 * sizeof stage))
                return stopped_ = true, budget_.out_of_memory(outcome_);
            stages_.push_back(stage);
            claimed_ = std::max(claimed_, stages_.size());
        } else if (stage.cost < stages_[place->second].cost) {
            stages_[place->second] = stage;
        } else {
            return;
        }
        if ((stage.boxes - board_.goals).none()) best_ = std::min(best_, stage.cost);
        queue_.push({stage.cost, place->second});
    }

    // The pushes of all groups; each group is searched again for the way to its last state.
    void write(std::uint32_t last, int size) {
        outcome_.expanded = 0;
        std::vector<std::uint32_t> chain;
        for (std::uint32_t i = last; i != NONE; i = stages_[i].parent) chain.push_back(i);
        std::vector<Push> pushes;
        best_ = NO_COST;
        for (std::size_t i = chain.size() - 1; i > 0; --i) {
            const Stage<N>&stage = stages_[chain[i]], &next = stages_[chain[i - 1]];
            const Bits<N> group = stage.boxes - (next.boxes - (next.delivered - stage.delivered));
            const State end{next.boxes, next.player, 0, 0, NONE};
            States<State> states =
                explore(stage, group, [&](const State& state, std::uint32_t) { return !state.same(end); });
            if (stopped_) return;
            std::vector<Push> backwards;
            for (std::uint32_t s = states.size() - 1; states[s].parent != NONE; s = states[s].parent)
                backwards.push_back({states[s].pushed, states[s].along});
            pushes.insert(pushes.end(), backwards.rbegin(), backwards.rend());
        }
        outcome_.expanded = stages_[last].cost;
        outcome_.boxes_at_once = size;
        write_solution(board_, pushes, outcome_);
    }

    static constexpr std::uint32_t FAR = 1 << 20;
    static constexpr std::int64_t NO_COST = std::numeric_limits<std::int64_t>::max();

    const Board<N>& board_;
    Memory& memory_;
    Budget& budget_;
    Outcome& outcome_;
    bool stopped_ = false;
    std::int64_t best_ = NO_COST;  // of the cheapest sequence known
    std::size_t claimed_ = 0;      // stages the memory has been asked for
    std::uint32_t distance_[N * 64];
    std::vector<Stage<N>> stages_;
    std::unordered_map<Stage<N>, std::uint32_t, typename Stage<N>::Hash> known_;
    using Entry = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

template <int N>
void search_decomposed(const Board<N>& board, Memory& memory, Budget& budget, Outcome& outcome) {
    if (!board.stray_box && (board.start - board.goals).none()) {
        outcome.boxes_at_once = 0;
        return write_solution(board, {}, outcome);
    }
    if (board.stray_box || (board.start - board.live).any()) {
        outcome.verdict = UNSOLVABLE;
        if (!board.stray_box) outcome.reason = "a box stands on a dead cell";
        return;
    }
    Decomposition<N>(board, memory, budget, outcome).search();
}

}  // namespace maskoban
