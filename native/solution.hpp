// From a chain of pushes to LURD: between two pushes the player takes a shortest walk.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "board.hpp"
#include "outcome.hpp"

namespace maskoban {

struct Push {
    std::uint16_t box;    // the cell the box stands on before the push
    std::uint16_t along;  // its direction
};

// Appends a shortest walk over free cells, in small letters.
template <int N>
void walk(const Board<N>& board, const Bits<N>& free, int from, int to, std::string& text) {
    if (from == to) return;
    // Backwards from the target, so that the steps come out in order.
    std::uint16_t todo[N * 64];
    std::uint8_t towards[N * 64];
    Bits<N> seen = Bits<N>::cell(to);
    todo[0] = static_cast<std::uint16_t>(to);
    for (int head = 0, tail = 1; head < tail && !seen.has(from); ++head) {
        const int c = todo[head], column = c % board.width;
        const bool open[4] = {c >= board.width, c + board.width < board.height * board.width, column > 0, column < board.width - 1};
        for (Direction d : DIRECTIONS) {
            const int next = c + board.step[d];
            if (!open[d] || !free.has(next) || seen.has(next)) continue;
            seen.set(next);
            towards[next] = static_cast<std::uint8_t>(opposite(d));
            todo[tail++] = static_cast<std::uint16_t>(next);
        }
    }
    for (int c = from; c != to; c += board.step[towards[c]]) text += "udlr"[towards[c]];
}

template <int N>
void write_solution(const Board<N>& board, const std::vector<Push>& pushes, Outcome& outcome) {
    Bits<N> boxes = board.start;
    int player = board.player;
    outcome.verdict = SOLVED;
    outcome.solution.clear();
    for (const Push& push : pushes) {
        const int step = board.step[push.along];
        walk(board, board.floor - boxes, player, push.box - step, outcome.solution);
        outcome.solution += "UDLR"[push.along];
        boxes.clear(push.box);
        boxes.set(push.box + step);
        player = push.box;
    }
    outcome.pushes = static_cast<std::int32_t>(pushes.size());
    outcome.moves = static_cast<std::int32_t>(outcome.solution.size());
}

// The pushes that lead to state `last`: every state knows the push that made it and the state it was made from.
template <int N, class States>
void rebuild(const Board<N>& board, States& states, std::uint32_t last, Outcome& outcome) {
    const auto start = Clock::now();
    std::vector<Push> pushes;
    for (std::uint32_t i = last; states[i].parent != States::NONE; i = states[i].parent)
        pushes.push_back({states[i].pushed, states[i].along});
    std::reverse(pushes.begin(), pushes.end());
    write_solution(board, pushes, outcome);
    outcome.rebuilding = since(start);
}

}  // namespace maskoban
