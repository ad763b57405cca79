// The solver for the static site, compiled to WebAssembly: one board at a time, no threads. site/solver.js calls it.
//
// The compiler's C++ library for WebAssembly has no exceptions, so what a `throw` and a `catch` need is here. The search
// throws and catches one type alone (OutOfTime), which is why every handler takes every exception.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "grid.hpp"
#include "solve.hpp"

#define EXPORT(name) extern "C" __attribute__((export_name(name)))

__asm__(".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n");

extern "C" {
// The compiler stores where an exception arrives, and reads which handler of that place takes it: the first.
struct {
    std::uintptr_t place, table, selector;
} __wasm_lpad_context;
int _Unwind_CallPersonality(void*) {
    __wasm_lpad_context.selector = 1;
    return 0;
}
alignas(16) char thrown[64];
void* __cxa_allocate_exception(std::size_t size) noexcept { return size <= sizeof thrown ? thrown : nullptr; }
void __cxa_throw(void* exception, void*, void (*)(void*)) { __builtin_wasm_throw(0, exception); }
void* __cxa_begin_catch(void* exception) noexcept { return exception; }
void __cxa_end_catch() {}
void __cxa_free_exception(void*) noexcept {}
}

namespace {

using namespace maskoban;

std::uint8_t tokens[MAX_CELLS];
Outcome outcome;
std::vector<std::uint8_t> dead;

// Read by solver.js, in this order.
struct {
    double expanded, seconds;
    std::int32_t verdict, limit_hit, pushes, moves, boxes_at_once;
    const char *reason, *solution;
    std::int32_t reason_length, solution_length;
} result;

}  // namespace

EXPORT("tokens") std::uint8_t* tokens_address() { return tokens; }

// Solves the board in `tokens`. Negative states or seconds: no limit. Returns the address of the result.
EXPORT("solve") const void* solve_board(int height, int width, int mode, double states, int megabytes, double seconds) {
    const Limits limits{static_cast<std::int64_t>(states), static_cast<std::size_t>(megabytes), seconds};
    static const Poll poll = [] {};
    static Worker* worker = nullptr;
    if (worker == nullptr || worker->memory.limit() != limits.megabytes << 20) {
        delete worker;
        worker = new Worker(limits);
    }
    outcome = solve({tokens, height, width}, static_cast<Mode>(mode), limits, *worker, poll);
    result = {static_cast<double>(outcome.expanded),
              outcome.seconds,
              outcome.verdict,
              outcome.limit_hit,
              outcome.pushes,
              outcome.moves,
              outcome.boxes_at_once,
              outcome.reason.data(),
              outcome.solution.data(),
              static_cast<std::int32_t>(outcome.reason.size()),
              static_cast<std::int32_t>(outcome.solution.size())};
    return &result;
}

// A byte for every cell of the board in `tokens`: whether it is dead.
EXPORT("dead_cells") const std::uint8_t* find_dead_cells(int height, int width) {
    dead = dead_cells({tokens, height, width});
    return dead.data();
}
