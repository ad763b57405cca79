// What a search may use, and what it says at the end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "threads.hpp"

namespace maskoban {

enum class Mode { ANY, PUSHES, EFFORT, DECOMPOSED };
enum Verdict : std::uint8_t { SOLVED, UNSOLVABLE, UNKNOWN, MALFORMED };
enum Limit : std::uint8_t { NO_LIMIT, STATES, MEMORY, TIME };

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Techniques of mode any that tests and benchmarks leave out to see what each is worth. A bit each.
enum Technique : std::uint32_t {
    BEST_FIRST = 1, PLAN_FROM_OUTSIDE = 2, RELAXED_GAME = 4, CORRALS = 8, PLAN_FROM_STARTS = 16, ASSIGNMENT = 32, BACKWARDS = 64
};

struct Limits {
    std::int64_t states = -1;  // states expanded; negative: no limit
    std::size_t megabytes = 1024;
    double seconds = -1;  // negative: no limit
    std::uint32_t without = 0;  // techniques left out
};

struct Outcome {
    Verdict verdict = UNKNOWN;
    Limit limit_hit = NO_LIMIT;
    std::string reason;
    std::string solution;
    std::int32_t pushes = -1, moves = -1;
    std::int32_t boxes_at_once = -1;  // mode decomposed only
    std::int64_t expanded = 0;
    double seconds = 0, setup = 0, rebuilding = 0;  // rebuilding: from the chain of pushes to the LURD text
};

// Thrown out of a search when its time is up.
struct OutOfTime {};

// Asked once for every expanded state, and wherever else time may go by, whether the search may go on.
class Budget {
public:
    // On a small room a look at the clock costs as much as a state does, so only every sixteenth looks.
    Budget(const Limits& limits, Clock::time_point start, int cells, const Poll& poll)
        : limits_(limits), start_(start), skipped_(cells <= 128 ? 15 : 0), poll_(poll) {}

    // True when the state limit stops the search; the outcome then says so.
    bool spent(Outcome& outcome) {
        if (limits_.states >= 0 && outcome.expanded >= limits_.states) {
            stop(outcome, STATES, "state limit of " + std::to_string(limits_.states) + " reached");
            return true;
        }
        look_at_clock();
        return false;
    }

    void look_at_clock() {
        if ((++asked_ & skipped_) == 0) ask();
    }
    // Out of line: inlined, it slows the search for effort by half.
    [[gnu::noinline, gnu::cold]] void ask() {
        poll_();
        if (limits_.seconds >= 0 && since(start_) >= limits_.seconds) throw OutOfTime{};
    }

    bool uses(Technique technique) const { return !(limits_.without & technique); }

    void out_of_memory(Outcome& outcome) const {
        stop(outcome, MEMORY, "memory limit of " + std::to_string(limits_.megabytes) + " MB reached");
    }

    void out_of_time(Outcome& outcome) const {
        char text[64];
        std::snprintf(text, sizeof text, "time limit of %g seconds reached", limits_.seconds);
        stop(outcome, TIME, text);
    }

private:
    static void stop(Outcome& outcome, Limit limit, std::string reason) {
        outcome.verdict = UNKNOWN;
        outcome.limit_hit = limit;
        outcome.reason = std::move(reason);
    }

    const Limits& limits_;
    Clock::time_point start_;
    std::uint32_t skipped_;
    const Poll& poll_;
    std::uint32_t asked_ = 0;
};

}  // namespace maskoban
