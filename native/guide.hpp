// What the two guided searches, any and pushes, know about a board: which positions are dead at sight, which pushes
// are worth trying, and how far each leaves the boxes from their goals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "board.hpp"
#include "deadlock.hpp"
#include "matching.hpp"
#include "memory.hpp"
#include "outcome.hpp"
#include "solution.hpp"

namespace maskoban {

template <int N>
class Guide {
public:
    Guide(const Board<N>& board, Memory& memory, Budget& budget)
        : board_(board), blocked_(board), memory_(memory), budget_(budget) {}

    // True when the start itself settles the matter; the outcome is then written.
    bool settled(Outcome& outcome) {
        const auto unsolvable = [&](std::string proof) {
            outcome.verdict = UNSOLVABLE;
            outcome.reason = std::move(proof);
            return true;
        };
        if (board_.stray_box) return unsolvable("a box the player can never reach is off goal");
        if ((board_.start - board_.goals).none()) return write_solution(board_, {}, outcome), true;
        if ((board_.start - board_.live).any()) return unsolvable("a box stands on a dead cell");
        const int boxes = board_.start.count(), goals = board_.goals.count();
        if (boxes != goals) return unsolvable("a goal lies where the player can never go");
        const Bits<N> stuck = frozen(board_, blocked_, board_.start);
        if (!stuck.within(board_.goals)) return unsolvable("a box is frozen off goal");
        if (!memory_.claim(Distances<N>::bytes(board_))) return budget_.out_of_memory(outcome), true;
        tables_.push_back(std::make_unique<Distances<N>>(board_, Bits<N>{}, budget_));
        matching_.set(board_, board_.start, board_.start_reach(), distances(stuck));
        if (matching_.bound() == NO_MATCHING) return unsolvable("the boxes cannot all have goals of their own");
        return false;
    }

    // The bound of the position last expanded, or of the start.
    int bound() { return matching_.bound(); }

    // Calls visit(box, direction, boxes after, bound after) for every push worth trying until it returns false.
    template <class Visit>
    bool expand(const Bits<N>& boxes, const Bits<N>& reach, Visit visit) {
        const Bits<N>* live = look_at(boxes, reach);
        Pushes<N> pushes;
        if (!narrow_to_corral(board_, boxes, reach, live, pushes))
            for (Direction d : DIRECTIONS) pushes.boxes[d] = board_.pushable(boxes, reach, live[d], d);
        for (Direction d : DIRECTIONS)
            for (int word = 0; word < N; ++word)
                for (std::uint64_t rest = pushes.boxes[d].w[word]; rest != 0; rest &= rest - 1)
                    if (!try_push(boxes, word * 64 + std::countr_zero(rest), d, visit)) return false;
        return true;
    }

    // The same for one push of the position looked at.
    template <class Visit>
    bool try_push(const Bits<N>& boxes, int box, Direction d, Visit& visit) {
        const int to = box + board_.step[d];
        int bound = matching_.moved(box, to, opposite(d));
        if (bound == NO_MATCHING) return true;
        Bits<N> after = boxes;
        after.clear(box);
        after.set(to);
        const Bits<N> stuck = frozen(board_, blocked_, after);
        if (!stuck.within(board_.goals)) return true;
        if (!(stuck == stuck_)) {
            budget_.look_at_clock();
            after_.set(board_, after, Bits<N>::cell(box), distances(stuck));
            bound = after_.bound();
            if (bound == NO_MATCHING) return true;
        }
        return visit(box, d, after, bound);
    }

    // Prepares for pushes of this position; returns the cells a box may be pushed to, by direction.
    const Bits<N>* look_at(const Bits<N>& boxes, const Bits<N>& reach) {
        stuck_ = frozen(board_, blocked_, boxes);
        const Distances<N>& table = distances(stuck_);
        matching_.set(board_, boxes, reach, table);
        return table.live();
    }

private:
    static constexpr std::size_t MOST_TABLES = N <= 4 ? 64 : 16;

    // Distances around these frozen boxes. Where there is no room for another table, those of the empty board are
    // still a bound, only a lower one.
    const Distances<N>& distances(const Bits<N>& stuck) {
        for (const auto& table : tables_)
            if (table->frozen() == stuck) return *table;
        if (tables_.size() == MOST_TABLES || !memory_.claim(Distances<N>::bytes(board_))) return *tables_[0];
        tables_.push_back(std::make_unique<Distances<N>>(board_, stuck, budget_));
        return *tables_.back();
    }

    const Board<N>& board_;
    Blocked<N> blocked_;
    Memory& memory_;
    Budget& budget_;
    std::vector<std::unique_ptr<Distances<N>>> tables_;
    Bits<N> stuck_;  // frozen boxes of the position looked at
    Matching<N> matching_, after_;
};

}  // namespace maskoban
