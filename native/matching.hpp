// A lower bound on the pushes still needed: the cheapest way to give every box a goal of its own, by lone-box
// distances. Where there is no such way the position is dead.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "distances.hpp"

namespace maskoban {

inline constexpr int NO_MATCHING = 1 << 30;

// All kinds of matching answer one question fast: given the boxes of a position, what is the bound if the
// i-th box stood on another cell? Only one row of the cost matrix changes, so most of the work is shared.

// Up to six boxes: all subsets of goals are tabulated.
template <int K>
class SubsetMatching {
public:
    // `rows[i]`: distances of box i to the K goals.
    void set(const std::uint16_t* const* rows) {
        set(rows, std::make_index_sequence<STEPS.size()>());
    }

    int moved(int box, const std::uint16_t* row) const {
        int best = NO_PATH;
        for (int g = 0; g < K; ++g) best = std::min(best, others_[box][g] + row[g]);
        return best < NO_PATH ? best : NO_MATCHING;
    }

private:
    // Box number `box` takes `goal` after the boxes before it took the goals `from`.
    struct Step {
        std::uint8_t from, to, box, goal;
    };
    static constexpr auto make_steps() {
        std::array<Step, K << (K - 1)> steps{};
        int n = 0;
        for (int box = 0; box < K; ++box)
            for (int from = 0; from < 1 << K; ++from)
                for (int goal = 0; goal < K; ++goal)
                    if (std::popcount(static_cast<unsigned>(from)) == box && !(from >> goal & 1))
                        steps[n++] = {static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(from | 1 << goal),
                                      static_cast<std::uint8_t>(box), static_cast<std::uint8_t>(goal)};
        return steps;
    }
    static constexpr auto STEPS = make_steps();

    // Every index is a constant, so that the small tables live in registers.
    template <std::size_t... I>
    void set(const std::uint16_t* const* rows, std::index_sequence<I...>) {
        int before[1 << K], after[1 << K], others[K][K];  // the first, the last boxes on exactly these goals
        for (int s = 0; s < 1 << K; ++s) before[s] = after[s] = s == 0 ? 0 : NO_PATH;
        for (auto& row : others)
            for (int& cost : row) cost = NO_PATH;
        const auto lower = [](int& best, int cost) { best = std::min(best, cost); };
        ((lower(before[STEPS[I].to], before[STEPS[I].from] + rows[STEPS[I].box][STEPS[I].goal]),
          lower(after[STEPS[I].to], after[STEPS[I].from] + rows[K - 1 - STEPS[I].box][STEPS[I].goal])), ...);
        (lower(others[STEPS[I].box][STEPS[I].goal], before[STEPS[I].from] + after[((1 << K) - 1) ^ STEPS[I].to]), ...);
        for (int i = 0; i < K; ++i)
            for (int g = 0; g < K; ++g) others_[i][g] = others[i][g];
    }

    int others_[K][K];  // cheapest for the other boxes when box takes goal
};

// Up to a hundred boxes: the Hungarian method. A moved box gives up its goal, and one more augmenting path
// from it, on a copy, mends the matching.
class HungarianMatching {
public:
    void set(const std::uint16_t* const* rows, int k) {
        k_ = k;
        rows_.assign(rows, rows + k);
        base_.box_price.assign(k, 0);
        base_.goal_price.assign(k + 1, 0);
        base_.owner.assign(k + 1, NOBODY);
        for (int i = 0; i < k; ++i) augment(base_, i);
    }

    int moved(int box, const std::uint16_t* row) {
        trial_ = base_;
        const std::uint16_t* before = rows_[box];
        rows_[box] = row;
        for (int j = 0; j < k_; ++j)
            if (trial_.owner[j] == box) trial_.owner[j] = NOBODY;
        // Make the moved row's reduced costs non-negative before searching.
        std::int64_t least = ENDLESS;
        for (int j = 0; j < k_; ++j) least = std::min(least, cost(box, j) - trial_.goal_price[j]);
        trial_.box_price[box] = least;
        augment(trial_, box);
        std::int64_t sum = 0;
        for (int j = 0; j < k_; ++j) sum += cost(trial_.owner[j], j);
        rows_[box] = before;
        return sum < IMPOSSIBLE ? static_cast<int>(sum) : NO_MATCHING;
    }

private:
    static constexpr int NOBODY = -1;
    // Dearer than 4096 boxes that all go 4096 cells: chosen only where there is no other choice.
    static constexpr std::int64_t IMPOSSIBLE = 1 << 25, ENDLESS = std::int64_t{1} << 60;
    struct Prices {
        std::vector<std::int64_t> box_price, goal_price;
        std::vector<int> owner;  // owner[goal]: its box
    };

    std::int64_t cost(int i, int j) const { return rows_[i][j] < NO_PATH ? rows_[i][j] : IMPOSSIBLE; }

    // Shortest augmenting path from an unmatched box (Dijkstra on reduced costs).
    void augment(Prices& p, int start) {
        least_.assign(k_ + 1, ENDLESS);
        from_.assign(k_ + 1, k_);
        done_.assign(k_ + 1, 0);
        p.owner[k_] = start;
        int goal = k_;
        do {
            done_[goal] = 1;
            const int box = p.owner[goal];
            std::int64_t delta = ENDLESS;
            int next = k_;
            for (int j = 0; j < k_; ++j) {
                if (done_[j]) continue;
                const std::int64_t reduced = cost(box, j) - p.box_price[box] - p.goal_price[j];
                if (reduced < least_[j]) least_[j] = reduced, from_[j] = goal;
                if (least_[j] < delta) delta = least_[j], next = j;
            }
            for (int j = 0; j <= k_; ++j) {
                if (done_[j]) p.box_price[p.owner[j]] += delta, p.goal_price[j] -= delta;
                else least_[j] -= delta;
            }
            goal = next;
        } while (p.owner[goal] != NOBODY);
        while (goal != k_) {
            p.owner[goal] = p.owner[from_[goal]];
            goal = from_[goal];
        }
    }

    int k_ = 0;
    std::vector<const std::uint16_t*> rows_;
    Prices base_, trial_;
    std::vector<std::int64_t> least_;
    std::vector<int> from_;
    std::vector<std::uint8_t> done_;
};

// More boxes than that: each takes its nearest goal, whoever else does. A lower bound, but a cheap one.
class NearestGoals {
public:
    void set(const std::uint16_t* const* rows, int k) {
        nearest_.resize(k);
        sum_ = 0;
        for (int i = 0; i < k; ++i) sum_ += nearest_[i] = *std::min_element(rows[i], rows[i] + k);
    }

    int moved(int box, const std::uint16_t* row) const {
        const int nearest = *std::min_element(row, row + nearest_.size());
        return nearest < NO_PATH ? sum_ - nearest_[box] + nearest : NO_MATCHING;
    }

private:
    std::vector<int> nearest_;
    int sum_ = 0;
};

template <int N>
class Matching {
public:
    // Prepares for the boxes of one position; the distances must outlive it. A box beside which the player can stand
    // is seen from there, any other from its best side.
    void set(const Board<N>& board, const Bits<N>& boxes, const Bits<N>& reach, const Distances<N>& distances) {
        Bits<N> beside[4];
        for (Direction s : DIRECTIONS) beside[s] = boxes & board.moved(reach, opposite(s));
        distances_ = &distances;
        rows_.resize(distances.goals());
        cells_.resize(distances.goals());
        int i = 0;
        each(boxes, [&](int c) {
            int side = 0;
            while (side < ANY_SIDE && !beside[side].has(c)) ++side;
            cells_[i] = c;
            rows_[i++] = distances.from(c, side);
        });
        switch (i) {
            case 1: return one_.set(rows_.data());
            case 2: return two_.set(rows_.data());
            case 3: return three_.set(rows_.data());
            case 4: return four_.set(rows_.data());
            case 5: return five_.set(rows_.data());
            case 6: return six_.set(rows_.data());
            default: return cells_.size() <= MOST_MATCHED ? many_.set(rows_.data(), i) : crowd_.set(rows_.data(), i);
        }
    }

    // The bound with the box on `from` pushed to `to` by a player who is then on that side, or NO_MATCHING.
    int moved(int from, int to, Direction side) {
        int box = 0;
        while (cells_[box] != from) ++box;
        return changed(box, distances_->from(to, side));
    }

    // The bound of the position itself.
    int bound() { return changed(0, rows_[0]); }

private:
    static constexpr std::size_t MOST_MATCHED = 100;

    int changed(int box, const std::uint16_t* row) {
        switch (cells_.size()) {
            case 1: return one_.moved(box, row);
            case 2: return two_.moved(box, row);
            case 3: return three_.moved(box, row);
            case 4: return four_.moved(box, row);
            case 5: return five_.moved(box, row);
            case 6: return six_.moved(box, row);
            default: return cells_.size() <= MOST_MATCHED ? many_.moved(box, row) : crowd_.moved(box, row);
        }
    }

    const Distances<N>* distances_ = nullptr;
    std::vector<const std::uint16_t*> rows_;
    std::vector<int> cells_;
    SubsetMatching<1> one_;
    SubsetMatching<2> two_;
    SubsetMatching<3> three_;
    SubsetMatching<4> four_;
    SubsetMatching<5> five_;
    SubsetMatching<6> six_;
    HungarianMatching many_;
    NearestGoals crowd_;
};

}  // namespace maskoban
