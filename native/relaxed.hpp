// An easier game on the same maze: a box that can be pushed to a goal is taken off the board there. A position that is
// lost even so is dead.
#pragma once

#include "freezing.hpp"

namespace maskoban {

class RelaxedGame {
public:
    explicit RelaxedGame(const Maze& maze) : maze_(maze), field_(maze), freezing_(maze) {}

    // True when the game is proved lost. After `most` positions it is given up as not lost.
    bool lost(const std::vector<Cell>& boxes, Cell player, std::size_t most) {
        // Boxes frozen on goals stay there for ever.
        field_.set(boxes);
        std::vector<Cell> fixed, others;
        for (Cell c : boxes) (maze_.goal[c] && freezing_.fixed(field_, c) ? fixed : others).push_back(c);
        return lost(others, fixed, player, most);
    }
    // The same for some boxes of a position; `fixed` are those that stay for ever.
    bool lost(const std::vector<Cell>& boxes, const std::vector<Cell>& fixed, Cell player, std::size_t most) {
        boxes_ = boxes;
        fixed_ = fixed;
        field_.set(boxes_);
        for (Cell c : fixed_) field_.put(c);
        states_.clear();
        cells_.clear();
        slots_.assign(256, NONE);
        played_ = 0;
        if (take_home(player)) return false;
        for (; played_ < states_.size(); ++played_)
            if (played_ >= most || won_from(played_)) return false;
        return true;
    }
    // How many positions the last game took.
    std::size_t positions() const { return played_; }

private:
    static constexpr std::uint32_t NONE = 0xFFFFFFFFu;
    struct State {
        std::uint32_t first, boxes;  // where its boxes begin in cells_, and how many there are
        Cell player;                 // the lowest cell the player can reach
    };

    // Tries all pushes of a position; true when one of them wins.
    bool won_from(std::size_t i) {
        const State state = states_[i];
        load(state);
        field_.flood(state.player);
        sides_.clear();
        for (Cell c : boxes_) sides_.push_back(field_.sides(c));
        for (std::uint32_t b = 0; b < state.boxes; ++b)
            for (Direction d : DIRECTIONS) {
                if (!(sides_[b] >> opposite(d) & 1)) continue;
                load(state);
                const Cell from = boxes_[b], to = maze_.next[from][d];
                if (field_.has(to) || !maze_.live[to]) continue;
                boxes_[b] = to;
                field_.take(from);
                field_.put(to);
                if (!freezing_.dead(field_, to) && take_home(from)) return true;
            }
        return false;
    }

    void load(const State& state) {
        boxes_.assign(cells_.begin() + state.first, cells_.begin() + state.first + state.boxes);
        field_.set(boxes_);
        for (Cell c : fixed_) field_.put(c);
    }

    // Takes off the board every box that can be pushed to a goal while the others stay. That never hurts: the player can
    // walk back the way it came. True when none is left; otherwise the position is noted if it is new.
    bool take_home(Cell player) {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t i = 0; i < boxes_.size();) {
                bool home = maze_.goal[boxes_[i]];
                if (!home) {
                    field_.flood(player);
                    if (const std::uint8_t sides = field_.sides(boxes_[i]))
                        field_.walk_box<false>(boxes_[i], sides, [&](const Stop& stop, int) {
                            home = maze_.goal[stop.cell];
                            return !home;
                        });
                }
                if (!home) {
                    ++i;
                    continue;
                }
                field_.take(boxes_[i]);
                boxes_[i] = boxes_.back();
                boxes_.pop_back();
                again = true;
            }
        }
        if (boxes_.empty()) return true;
        std::sort(boxes_.begin(), boxes_.end());
        note(field_.flood(player));
        return false;
    }

    void note(Cell player) {
        std::uint64_t hash = player + 1;
        for (Cell c : boxes_) hash = (hash ^ c) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        if (states_.size() * 2 >= slots_.size()) grow();
        std::size_t at = hash & (slots_.size() - 1);
        for (; slots_[at] != NONE; at = (at + 1) & (slots_.size() - 1))
            if (same(states_[slots_[at]], player)) return;
        slots_[at] = static_cast<std::uint32_t>(states_.size());
        hashes_.resize(states_.size());
        hashes_.push_back(hash);
        states_.push_back({static_cast<std::uint32_t>(cells_.size()), static_cast<std::uint32_t>(boxes_.size()), player});
        cells_.insert(cells_.end(), boxes_.begin(), boxes_.end());
    }
    bool same(const State& state, Cell player) const {
        return state.player == player && state.boxes == boxes_.size() &&
               std::equal(boxes_.begin(), boxes_.end(), cells_.begin() + state.first);
    }
    void grow() {
        slots_.assign(slots_.size() * 4, NONE);
        for (std::uint32_t i = 0; i < states_.size(); ++i) {
            std::size_t at = hashes_[i] & (slots_.size() - 1);
            while (slots_[at] != NONE) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = i;
        }
    }

    const Maze& maze_;
    Field field_;
    Freezing freezing_;
    std::size_t played_ = 0;
    std::vector<Cell> fixed_, boxes_;  // boxes_: those of the position at hand that can still move
    std::vector<std::uint8_t> sides_;
    std::vector<State> states_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> slots_;
    std::vector<std::uint64_t> hashes_;
};

}  // namespace maskoban
