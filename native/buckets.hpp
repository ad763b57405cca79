// The open states of a best-first search, one list a priority; the lists run through the states themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.hpp"

namespace maskoban {

// State needs: std::uint32_t next, and previous where states are taken out of the middle.
template <class State>
class Buckets {
public:
    static constexpr std::uint32_t NONE = States<State>::NONE;

    Buckets(States<State>& states, Memory& memory) : states_(states), memory_(memory), heads_(256, NONE) {}

    // The newest of equals comes first. False when memory is used up.
    bool push(std::uint32_t index, std::size_t priority) {
        if (priority >= heads_.size()) {
            const std::size_t more = priority + 1;  // on top of what is needed, so that growing stays rare
            if (!memory_.claim(more * 2 * sizeof(std::uint32_t))) return false;
            heads_.resize(priority + more, NONE);
        }
        State& state = states_[index];
        state.next = heads_[priority];
        if constexpr (requires { state.previous; }) {
            state.previous = NONE;
            if (state.next != NONE) states_[state.next].previous = index;
        }
        heads_[priority] = index;
        lowest_ = std::min(lowest_, priority);
        return true;
    }

    void remove(std::uint32_t index, std::size_t priority) {
        const State& state = states_[index];
        if (state.next != NONE) states_[state.next].previous = state.previous;
        if (state.previous != NONE) states_[state.previous].next = state.next;
        else heads_[priority] = state.next;
    }

    // Takes out a state of the lowest priority; NONE when there is none left.
    std::uint32_t pop() {
        while (lowest_ < heads_.size() && heads_[lowest_] == NONE) ++lowest_;
        if (lowest_ == heads_.size()) return NONE;
        const std::uint32_t index = heads_[lowest_];
        heads_[lowest_] = states_[index].next;
        if constexpr (requires { states_[index].previous; })
            if (heads_[lowest_] != NONE) states_[heads_[lowest_]].previous = NONE;
        return index;
    }

private:
    States<State>& states_;
    Memory& memory_;
    std::vector<std::uint32_t> heads_;
    std::size_t lowest_ = 0;
};

}  // namespace maskoban
