// The whole face of the native core: maskoban._core, typed in src/maskoban/_core.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "batch.hpp"
#include "dead_rules.hpp"
#include "games_bindings.hpp"
#include "grid.hpp"
#include "nearest.hpp"
#include "optimize.hpp"
#include "play.hpp"
#include "synth.hpp"

namespace nb = nanobind;
using namespace maskoban;

namespace {

template <class T, class Shape>
using Array = nb::ndarray<T, Shape, nb::c_contig, nb::device::cpu>;
using Boards = Array<const std::uint8_t, nb::ndim<3>>;
using OneBoard = Array<const std::uint8_t, nb::ndim<2>>;
using FlatBoards = Array<const std::uint8_t, nb::ndim<2>>;  // a row a board

Grid grid_of(const Boards& boards, std::size_t i) {
    const std::size_t height = boards.shape(1), width = boards.shape(2);
    return {boards.data() + i * height * width, static_cast<int>(height), static_cast<int>(width)};
}

// A NumPy array that owns the vector's memory.
template <class T>
nb::object array(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

nb::list texts(const std::vector<std::string>& values) {
    nb::list list;
    const nb::str empty("");
    for (const std::string& value : values) {
        if (value.empty()) list.append(empty);
        else list.append(nb::str(value.data(), value.size()));
    }
    return list;
}

// What long work does now and then: lets Ctrl-C end it, and tells how many boards are done.
auto attending(const nb::object& progress) {
    return [&progress](std::size_t done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done);
    };
}

nb::dict columns(Batch&& batch, bool solutions) {
    nb::dict result;
    result["verdicts"] = array(std::move(batch.verdicts));
    result["limits_hit"] = array(std::move(batch.limits_hit));
    result["reasons"] = texts(batch.reasons);
    result["pushes"] = array(std::move(batch.pushes));
    result["moves"] = array(std::move(batch.moves));
    result["boxes_at_once"] = array(std::move(batch.boxes_at_once));
    result["expanded"] = array(std::move(batch.expanded));
    result["seconds"] = array(std::move(batch.seconds));
    result["setup"] = array(std::move(batch.setup));
    result["rebuilding"] = array(std::move(batch.rebuilding));
    result["solutions"] = solutions ? nb::object(texts(batch.solutions)) : nb::none();
    return result;
}

nb::dict solve_boards(const Boards& boards, int mode, std::int64_t states, std::size_t megabytes, double seconds,
                      std::size_t threads, bool solutions, const nb::object& progress, std::uint32_t without) {
    const Limits limits{states, megabytes, seconds, without};
    return columns([&] {
        const nb::gil_scoped_release no_gil;
        return run_batch(boards.shape(0), limits, threads, solutions, attending(progress),
                         [&](std::size_t i, Worker& worker, const Poll& poll) {
                             return solve(grid_of(boards, i), static_cast<Mode>(mode), limits, worker, poll);
                         });
    }(), solutions);
}

nb::dict optimize_boards(const Boards& boards, const std::vector<std::string>& solutions, bool by_moves,
                         std::int64_t states, double seconds, std::size_t threads, const nb::object& progress) {
    const Limits limits{states, 0, seconds, 0};
    return columns([&] {
        const nb::gil_scoped_release no_gil;
        return run_batch(boards.shape(0), limits, threads, true, attending(progress),
                         [&](std::size_t i, Worker&, const Poll& poll) {
                             return optimize(grid_of(boards, i), solutions.at(i), by_moves, limits, poll);
                         });
    }(), true);
}

nb::object find_dead_cells(const OneBoard& board) {
    const std::size_t height = board.shape(0), width = board.shape(1);
    auto dead = array(dead_cells({board.data(), static_cast<int>(height), static_cast<int>(width)}));
    return dead.attr("view")("bool").attr("reshape")(height, width);
}

nb::object find_dead_by_rules(const Boards& boards) {
    std::vector<std::uint8_t> rules;
    for (std::size_t i = 0; i < boards.shape(0); ++i) rules.push_back(dead_by_rules(grid_of(boards, i)));
    return array(std::move(rules));
}

nb::object find_nearest(const FlatBoards& boards, const FlatBoards& corpus, const std::string& registers,
                        std::size_t threads, const nb::object& progress) {
    const std::size_t n = boards.shape(0), cells = boards.shape(1);
    if (corpus.shape(0) == 0 || corpus.shape(1) != cells)
        throw std::invalid_argument("the corpus must hold boards, of as many cells as those compared");
    const Least least_of = least_with(registers, words_for(cells));
    return array([&] {
        const nb::gil_scoped_release no_gil;
        const Corpus packed(corpus.data(), corpus.shape(0), cells);
        return nearest(boards.data(), n, cells, packed, least_of, threads, attending(progress));
    }());
}

// Tokens of n boards, one after the other; none where one of them cannot be made.
nb::object synthesize(std::size_t n, int height, int width, int boxes, double walls, std::uint64_t seed,
                      std::uint64_t first, std::size_t threads, const nb::object& progress) {
    const synth::Recipe recipe{height, width, boxes, walls};
    return array([&] {
        const nb::gil_scoped_release no_gil;
        const std::size_t cells = static_cast<std::size_t>(height) * width;
        std::vector<std::uint8_t> boards(n * cells);
        std::atomic<std::size_t> next{0}, done{0};
        std::atomic<bool> failed{false};
        const auto work = [&](const Poll& poll) {
            Worker worker{Limits{}};
            for (std::size_t i; !failed && (i = next.fetch_add(1)) < n; ++done) {
                const auto board = synth::make(recipe, seed, first + i, worker, poll);
                if (board.empty()) failed = true;
                std::copy(board.begin(), board.end(), boards.begin() + static_cast<std::ptrdiff_t>(i * cells));
            }
        };
        on_threads(std::min(threads, n), work, [&, attend = attending(progress)] { attend(done.load()); });
        if (failed) boards.clear();
        return boards;
    }());
}

nb::list find_unplayable(const Boards& boards) {
    nb::list reasons;
    for (std::size_t i = 0; i < boards.shape(0); ++i) reasons.append(environment::unplayable(grid_of(boards, i)));
    return reasons;
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native core of maskoban.";
    m.def("solve_boards", &solve_boards, nb::arg("boards"), nb::arg("mode"), nb::arg("states"), nb::arg("megabytes"),
          nb::arg("seconds"), nb::arg("threads"), nb::arg("solutions"), nb::arg("progress").none(),
          nb::arg("without") = 0);
    m.def("optimize_boards", &optimize_boards, nb::arg("boards"), nb::arg("solutions"), nb::arg("by_moves"),
          nb::arg("states"), nb::arg("seconds"), nb::arg("threads"), nb::arg("progress").none());
    m.def("dead_cells", &find_dead_cells, nb::arg("board"));
    m.def("dead_by_rules", &find_dead_by_rules, nb::arg("boards"));
    m.def("registers", &registers);
    m.def("nearest", &find_nearest, nb::arg("boards"), nb::arg("corpus"), nb::arg("registers"), nb::arg("threads"),
          nb::arg("progress").none());
    m.def("unplayable", &find_unplayable, nb::arg("boards"));
    m.def("synthesize", &synthesize, nb::arg("n"), nb::arg("height"), nb::arg("width"), nb::arg("boxes"),
          nb::arg("walls"), nb::arg("seed"), nb::arg("first"), nb::arg("threads"), nb::arg("progress").none());
    environment::bind_games(m);
}
