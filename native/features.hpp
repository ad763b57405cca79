// What the feature search measures of a position.
#pragma once

#include <tuple>

#include "packing.hpp"

namespace maskoban {

struct Features {
    int stage;        // steps of the packing plan that are done
    int unplanned;    // boxes the rest of the plan has no use for where they are
    int parts;        // parts the boxes divide the floor into
    int tunnels;      // tunnels that hold a box
    std::size_t home; // boxes on goals
    int reach;        // cells the player can walk to
    int pushes;       // pushes the player can make now

    std::array<int, 4> key() const { return {stage, unplanned, parts, tunnels}; }
};

class FeatureFinder {
public:
    FeatureFinder(const Maze& maze, Plan plan, Memory& memory, Budget& budget)
        : maze_(maze), plan_(plan), memory_(memory), budget_(budget) {}

    // The field must hold exactly these boxes.
    Features of(Field& field, const std::vector<Cell>& boxes, Cell player) {
        const int parts = field.flood_parts(player);
        Features found = measure(field, boxes, parts, field.size(), [&](Cell c) { return field.reached(c); });
        found.unplanned = unplanned(boxes, found.stage);
        return found;
    }

    // Prepares for moves of one of these boxes.
    void prepare(const std::vector<Cell>& boxes, std::size_t mover) {
        others_ = boxes;
        others_.erase(others_.begin() + static_cast<std::ptrdiff_t>(mover));
        others_stage_ = -1;
    }

    // The same with the prepared box on `moved`, and the player beside it; the field must have walked that box.
    Features of_moved(Field& field, const std::vector<Cell>& boxes, Cell player, Cell moved) {
        field.take(moved);  // so that the floor is that of the walk
        const Cuts& cuts = field.cuts();
        field.put(moved);
        const Pieces pieces = cuts.without(moved);
        const int piece = pieces.of(cuts.number(player));
        Features found = measure(field, boxes, cuts.parts() - 1 + pieces.count(), pieces.size(piece),
                                 [&](Cell c) { return field.free(c) && pieces.of(cuts.number(c)) == piece; });
        if (found.stage != others_stage_) {
            others_stage_ = found.stage;
            others_left_ = unplanned(others_, found.stage);
            kept_owner_ = owner_;
        }
        found.unplanned = others_left_;
        if (!placed_[moved] && !has_free_step(moved, found.stage)) {
            tried_.assign(packing_.words, 0);
            found.unplanned += !give_step(moved, found.stage);
            owner_ = kept_owner_;
        }
        return found;
    }

private:
    template <class Reached>
    Features measure(const Field& field, const std::vector<Cell>& boxes, int parts, int reach, Reached reached) {
        if (packing_.steps.empty()) {
            packing_ = Packer(maze_, plan_, memory_, budget_).find();
            tunnels_.resize(maze_.tunnels);
        }
        Features found{};
        found.stage = packing_.stage(field, maze_);
        found.parts = parts;
        found.reach = reach;
        std::fill(tunnels_.begin(), tunnels_.end(), std::uint8_t{0});
        for (Cell c : boxes) {
            found.home += maze_.goal[c];
            if (maze_.tunnel[c] >= 0) found.tunnels += !tunnels_[maze_.tunnel[c]], tunnels_[maze_.tunnel[c]] = 1;
            for (Direction d : DIRECTIONS) {
                const Cell to = maze_.next[c][d];
                found.pushes += maze_.live[to] && field.free(to) &&
                                (maze_.backward ? field.free(maze_.next[to][d]) && reached(to) : reached(maze_.next[c][opposite(d)]));
            }
        }
        return found;
    }

    static constexpr Cell NOBODY = 0xFFFF;

    // Boxes left over when as many as possible of those not yet in place get a step of the plan of their own.
    int unplanned(const std::vector<Cell>& boxes, int stage) {
        placed_.assign(maze_.cells + 1, 0);
        for (int i = 0; i < stage; ++i) {
            placed_[packing_.steps[i].to] = 1;
            placed_[packing_.steps[i].from] = 0;
        }
        owner_.assign(packing_.steps.size(), NOBODY);
        int left = 0;
        for (Cell c : boxes) {
            if (placed_[c]) continue;
            tried_.assign(packing_.words, 0);
            left += !give_step(c, stage);
        }
        return left;
    }
    // Whether some step has no box yet that this one could be used for.
    bool has_free_step(Cell c, int stage) const {
        for (int w = stage / 64; w < packing_.words; ++w) {
            std::uint64_t steps = packing_.ready[c * packing_.words + w];
            if (w == stage / 64) steps &= ~std::uint64_t{0} << (stage % 64);
            for (; steps != 0; steps &= steps - 1)
                if (owner_[w * 64 + std::countr_zero(steps)] == NOBODY) return true;
        }
        return false;
    }
    bool give_step(Cell c, int stage) {
        for (int w = stage / 64; w < packing_.words; ++w) {
            std::uint64_t steps = packing_.ready[c * packing_.words + w];
            if (w == stage / 64) steps &= ~std::uint64_t{0} << (stage % 64);
            while ((steps &= ~tried_[w]) != 0) {
                const int step = w * 64 + std::countr_zero(steps);
                tried_[w] |= std::uint64_t{1} << (step % 64);
                if (owner_[step] == NOBODY || give_step(owner_[step], stage)) return owner_[step] = c, true;
            }
        }
        return false;
    }

    const Maze& maze_;
    Plan plan_;
    Memory& memory_;
    Budget& budget_;
    Packing packing_;
    std::vector<std::uint8_t> placed_, tunnels_;
    std::vector<Cell> owner_, kept_owner_;
    std::vector<Cell> others_;  // the boxes that stay when the prepared one moves
    int others_stage_ = -1, others_left_ = 0;
    std::vector<std::uint64_t> tried_;
};

}  // namespace maskoban
