// Positions that can be given up at sight: boxes frozen off goal, and corrals that leave only some pushes worth trying.
#pragma once

#include "board.hpp"

namespace maskoban {

// Cells on which a box cannot move along one axis whatever the other boxes do: a wall on either side, or a dead
// cell on both.
template <int N>
struct Blocked {
    Bits<N> across, upright;

    explicit Blocked(const Board<N>& board) {
        // A step off the board is a wall too: shifting what is open in finds it closed.
        const auto open = [&](const Bits<N>& cells, Direction d) { return board.moved(cells, opposite(d)); };
        const auto along = [&](Direction one, Direction other) {
            const Bits<N> clear = open(board.floor, one) & open(board.floor, other);
            return board.floor - (clear & (open(board.live, one) | open(board.live, other)));
        };
        across = along(LEFT, RIGHT);
        upright = along(UP, DOWN);
    }
};

// The boxes that can never move again. All boxes are suspected; one that has both neighbours along an axis free of
// walls and of suspects is let go, until nothing changes.
template <int N>
Bits<N> frozen(const Board<N>& board, const Blocked<N>& blocked, Bits<N> suspects) {
    for (;;) {
        const Bits<N> held = suspects &
                             (blocked.across | board.moved(suspects, LEFT) | board.moved(suspects, RIGHT)) &
                             (blocked.upright | board.moved(suspects, UP) | board.moved(suspects, DOWN));
        if (held == suspects) return held;
        suspects = held;
    }
}

// The pushes worth trying, one set of boxes a direction.
template <int N>
struct Pushes {
    Bits<N> boxes[4];

    int count() const {
        int n = 0;
        for (const Bits<N>& b : boxes) n += b.count();
        return n;
    }
};

// A corral is a part of the board the player cannot reach. Where all boxes around it can only be pushed into it, and
// the player can do every one of these pushes now, and one of them must be done some time, it may as well be the
// next: all other pushes leave the corral as it is and can come later. Returns true if such a corral was found; the
// pushes are then cut down to it, and none at all left means the position is dead.
template <int N>
bool narrow_to_corral(const Board<N>& board, const Bits<N>& boxes, const Bits<N>& reach, const Bits<N>* live,
                      Pushes<N>& pushes) {
    Bits<N> unreached = board.floor - boxes - reach;
    if (unreached.none()) return false;
    bool found = false;
    int best = 0;
    const auto consider = [&](const Bits<N>& corral) {
        const Bits<N> around = boxes & board.around(corral);
        if ((around - board.goals).none() && (corral & board.goals).none()) return;
        Pushes<N> inward;
        for (Direction d : DIRECTIONS) {
            // Pushes that might become possible without touching this corral before.
            const Bits<N> thinkable = around & board.moved(live[d] - around, opposite(d)) &
                                      board.moved(board.floor - corral - around, d);
            inward.boxes[d] = thinkable & board.moved(corral, opposite(d)) & board.moved(reach, d);
            if (!(thinkable == inward.boxes[d])) return;
        }
        const int n = inward.count();
        if (found && n >= best) return;
        found = true, best = n, pushes = inward;
    };
    const Bits<N> all = unreached;
    int parts = 0;
    while (unreached.any()) {
        const Bits<N> corral = board.flood(Bits<N>::cell(unreached.lowest()), unreached);
        unreached -= corral;
        consider(corral);
        ++parts;
    }
    if (parts > 1) consider(all);
    return found;
}

}  // namespace maskoban
