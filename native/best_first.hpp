// A best-first search over single pushes that trusts its bound far more than the path so far.
#pragma once

#include "buckets.hpp"
#include "guide.hpp"

namespace maskoban {

// How a search that is run a part at a time stands.
enum class Standing { RUNNING, SOLVED, EXHAUSTED, FULL, SPENT };  // FULL: of memory; SPENT: the state limit is hit

template <int N>
struct BestFirstState {
    Bits<N> boxes, reach;
    std::uint32_t parent, next;
    std::uint16_t pushed : 14, along : 2;
    std::uint16_t depth;  // pushes so far; stops counting at its largest value, since it only orders

    std::uint64_t hash() const { return boxes.hash(static_cast<std::uint64_t>(reach.lowest()) + 1); }
    bool same(const BestFirstState& other) const { return boxes == other.boxes && reach == other.reach; }
};

template <int N>
class BestFirst {
public:
    // The guide must have found the start unsettled. No more than `share` bytes are used.
    BestFirst(const Board<N>& board, Guide<N>& guide, Memory& memory, std::size_t share, Budget& budget)
        : board_(board), guide_(guide), budget_(budget), share_(share), states_(memory), open_(states_, memory) {
        const auto first = states_.add({board.start, board.start_reach(), NONE, NONE, 0, 0, 0});
        full_ = first.index == NONE || !open_.push(first.index, 0);
    }

    // Expands so many states at most. When solved, the outcome holds the solution.
    Standing run(std::int64_t most, Outcome& outcome) {
        if (full_) return Standing::FULL;
        for (std::int64_t n = 0; n < most; ++n) {
            const std::uint32_t index = open_.pop();
            if (index == NONE) return Standing::EXHAUSTED;
            if (budget_.spent(outcome)) return Standing::SPENT;
            ++outcome.expanded;
            const State state = states_[index];
            const auto depth = static_cast<std::uint16_t>(std::min(state.depth + 1, 0xFFFF));
            bool solved = false;
            const auto visit = [&](int box, Direction d, const Bits<N>& boxes, int bound) {
                const Bits<N> reach = board_.reach_after(state.reach, boxes, box, box + board_.step[d]);
                const auto found = states_.add({boxes, reach, index, NONE, static_cast<std::uint16_t>(box),
                                                static_cast<std::uint16_t>(d), depth});
                full_ = found.index == NONE;
                if (full_ || !found.fresh) return !full_;
                solved = bound == 0;
                if (solved) return rebuild(board_, states_, found.index, outcome), false;
                full_ = !open_.push(found.index, bound * BOUND_WEIGHT + depth);
                return !full_;
            };
            if (!guide_.expand(state.boxes, state.reach, visit))
                return solved ? Standing::SOLVED : Standing::FULL;
            if (states_.bytes() > share_) return full_ = true, Standing::FULL;
        }
        return Standing::RUNNING;
    }

private:
    using State = BestFirstState<N>;
    static constexpr std::uint32_t NONE = States<State>::NONE;
    static constexpr std::size_t BOUND_WEIGHT = 4;  // measured: 3 to 5 expand fewest states on Boxoban

    const Board<N>& board_;
    Guide<N>& guide_;
    Budget& budget_;
    std::size_t share_;
    States<State> states_;
    Buckets<State> open_;
    bool full_ = false;
};

}  // namespace maskoban
