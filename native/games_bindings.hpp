// maskoban._core.Games: the games of an environment. NumPy arrays come in by name and are kept.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "games.hpp"

namespace maskoban::environment {

namespace nb = nanobind;

// The memory of the array of this name, which must have this type and so many elements.
template <class T>
T* memory(const nb::dict& arrays, const char* name, std::size_t size) {
    const auto found = nb::cast<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(arrays[name], false);
    if (found.size() != size)
        throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(size) + " elements, got " +
                                    std::to_string(found.size()));
    return found.data();
}

// The memory of an int64 array of one or two dimensions, straight from the buffer protocol, as every step needs it.
class Actions {
public:
    Actions(nb::handle object, int dimensions, std::size_t n) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
        const char* const format = view_.format;
        if (view_.itemsize == 8 && (format[0] == 'l' || format[0] == 'q') && format[1] == 0 &&
            view_.ndim == dimensions && view_.shape[dimensions - 1] == static_cast<Py_ssize_t>(n))
            return;
        PyBuffer_Release(&view_);
        throw nb::type_error("actions: expected an array of int64");
    }
    Actions(const Actions&) = delete;
    ~Actions() { PyBuffer_Release(&view_); }
    const std::int64_t* data() const { return static_cast<const std::int64_t*>(view_.buf); }
    std::size_t rows() const { return static_cast<std::size_t>(view_.shape[0]); }

private:
    Py_buffer view_;
};

class GamesObject {
public:
    GamesObject(nb::dict arrays, nb::dict infos, nb::dict final_infos, int kind, int pixels,
                std::vector<std::uint8_t> tiles, std::vector<std::uint8_t> directions, std::int32_t limit, int mode,
                std::size_t threads)
        : arrays_(std::move(arrays)), infos_(std::move(infos)), final_infos_(std::move(final_infos)) {
        const auto tokens = nb::cast<nb::ndarray<std::uint8_t, nb::ndim<3>, nb::c_contig>>(arrays_["tokens"], false);
        const int height = static_cast<int>(tokens.shape(1)), width = static_cast<int>(tokens.shape(2));
        n_ = tokens.shape(0), cells_ = tokens.shape(1) * tokens.shape(2);
        Look look{static_cast<Kind>(kind), pixels, std::move(tiles)};
        const std::size_t bytes = n_ * look.bytes(height * width);
        if (look.tiles.size() != static_cast<std::size_t>(7 * 3 * pixels * pixels) || directions.empty() || threads < 1)
            throw std::invalid_argument("tiles, directions or threads: not what an environment passes");
        for (const std::uint8_t direction : directions)
            if (direction >= DIRECTIONS) throw std::invalid_argument("directions: expected 0 to 4");
        Arrays a{};
        a.tokens = tokens.data();
        a.observations = memory<std::uint8_t>(arrays_, "observations", bytes);
        a.levels = memory<std::uint8_t>(arrays_, "levels", n_ * cells_);
        a.games = reinterpret_cast<Game*>(memory<std::int32_t>(arrays_, "games", n_ * GAME));
        a.level_facts = reinterpret_cast<LevelFacts*>(memory<std::int32_t>(arrays_, "level_facts", n_ * LEVEL));
        a.results = {memory<double>(arrays_, "rewards", n_), memory<bool>(arrays_, "terminated", n_),
                     memory<bool>(arrays_, "truncated", n_)};
        a.ended = memory<bool>(arrays_, "ended", n_);
        a.began = memory<bool>(arrays_, "began", n_);
        a.seeds = memory<std::uint64_t>(arrays_, "seeds", n_);
        if (mode == SAME_STEP) {
            a.final_observations = memory<std::uint8_t>(arrays_, "final_observations", bytes);
            a.final_games = reinterpret_cast<Game*>(memory<std::int32_t>(arrays_, "final_games", n_ * GAME));
            a.final_level_facts =
                reinterpret_cast<LevelFacts*>(memory<std::int32_t>(arrays_, "final_level_facts", n_ * LEVEL));
        }
        games_ = std::make_unique<Games>(n_, height, width, a, std::move(look), std::move(directions), limit,
                                         static_cast<Autoreset>(mode), threads);
        observations_ = arrays_["observations"], rewards_ = arrays_["rewards"];
        terminated_ = arrays_["terminated"], truncated_ = arrays_["truncated"];
    }

    void set_levels(const nb::dict& levels, std::int64_t window, std::int64_t reuse) {
        const std::size_t rows = nb::len(nb::object(levels["numbers"]));
        Supply supply;
        supply.boards = memory<const std::uint8_t>(levels, "boards", rows * cells_);
        supply.numbers = memory<const std::int32_t>(levels, "numbers", rows);
        if (levels.contains("optimal_pushes"))
            supply.optimal_pushes = memory<const std::int32_t>(levels, "optimal_pushes", rows);
        if (levels.contains("cumulative")) supply.cumulative = memory<const double>(levels, "cumulative", rows);
        supply.plays = memory<std::int32_t>(levels, "plays", rows);
        supply.ended = memory<std::int32_t>(levels, "ended", rows);
        supply.solved = memory<std::int32_t>(levels, "solved", rows);
        supply.progress = reinterpret_cast<Progress*>(memory<std::int64_t>(levels, "progress", 5));
        supply.rows = static_cast<std::int64_t>(rows), supply.window = window, supply.reuse = reuse;
        games_->supply = supply;
        levels_ = levels;
    }

    // Begin episodes in the slots of the mask: on levels of the supply, or on these boards, one for each.
    void reset(const nb::ndarray<const bool, nb::ndim<1>, nb::c_contig>& mask,
               const std::optional<nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig>>& boards) {
        if (mask.shape(0) != n_) throw std::invalid_argument("mask: expected one value for each game");
        const auto slots = static_cast<std::size_t>(std::count(mask.data(), mask.data() + n_, true));
        if (boards && (boards->shape(0) != slots || boards->size() != slots * cells_))
            throw std::invalid_argument("boards: expected one for each slot");
        games_->clear(mask.data());
        const std::uint8_t* board = boards ? boards->data() : nullptr;
        for (std::size_t i = 0; i < n_; ++i) {
            if (!mask.data()[i]) continue;
            if (board) games_->begin_on(static_cast<std::int32_t>(i), board), board += cells_;
            else games_->begin(static_cast<std::int32_t>(i));
        }
    }

    // (observations, rewards, terminated, truncated, infos) after one step; None where the supply is to be refreshed.
    nb::object step(nb::handle object) {
        const Actions actions(object, 1, n_);
        if (games_->refresh_due()) return nb::none();
        games_->check_ended();
        games_->check(actions.data(), n_);
        if (n_ < UNLOCKED) {
            games_->step(actions.data());
        } else {
            const nb::gil_scoped_release no_gil;
            games_->step(actions.data());
        }
        return nb::steal(PyTuple_Pack(5, observations_.ptr(), rewards_.ptr(), terminated_.ptr(), truncated_.ptr(),
                                      infos().ptr()));
    }

    // The infos of the last step. The dictionary is a copy, because wrappers add to it; the arrays are the same.
    nb::object infos() const {
        const nb::dict& infos = games_->any_final() ? final_infos_ : infos_;
        return nb::steal(PyDict_Copy(infos.ptr()));
    }

    // Several steps, of which `done` are taken already: actions (k, n), or None for random ones; all else (k, n), too.
    // Returns how many are taken now; fewer than k where the supply is to be refreshed.
    std::size_t step_many(std::size_t done, const nb::object& object,
                          const nb::ndarray<double, nb::ndim<2>, nb::c_contig>& rewards,
                          const nb::ndarray<bool, nb::ndim<2>, nb::c_contig>& terminated,
                          const nb::ndarray<bool, nb::ndim<2>, nb::c_contig>& truncated) {
        const std::size_t k = rewards.shape(0);
        std::optional<Actions> actions;
        if (!object.is_none()) actions.emplace(object, 2, n_);
        const std::size_t given = actions ? actions->rows() * n_ : k * n_;
        for (const std::size_t size : {rewards.size(), terminated.size(), truncated.size(), given})
            if (size != k * n_) throw std::invalid_argument("step_many: expected arrays of one shape");
        if (actions) games_->check(actions->data(), k * n_);
        const nb::gil_scoped_release no_gil;
        for (; done < k && !games_->refresh_due(); ++done) {
            games_->check_ended();
            const std::size_t at = done * n_;
            games_->step(actions ? actions->data() + at : nullptr,
                         {rewards.data() + at, terminated.data() + at, truncated.data() + at});
        }
        return done;
    }

    // A step of the first game: (reward, terminated, boxes on goals, moves, pushes).
    nb::tuple step_first(std::int64_t action) {
        if (!games_->supply.progress) throw std::invalid_argument("reset the environment before its first step");
        games_->check(&action, 1);
        games_->step_first(action);
        const Game& game = games_->first();
        const bool solved = game.on_goals == game.boxes;
        return nb::make_tuple(games_->first_reward(), solved, game.on_goals, game.moves, game.pushes);
    }

private:
    static constexpr std::size_t UNLOCKED = 256;  // with fewer games, giving the GIL away costs more than it gains

    nb::dict arrays_, infos_, final_infos_, levels_;
    nb::object observations_, rewards_, terminated_, truncated_;
    std::size_t n_ = 0, cells_ = 0;
    std::unique_ptr<Games> games_;
};

inline void bind_games(nb::module_& m) {
    nb::class_<GamesObject>(m, "Games")
        .def(nb::init<nb::dict, nb::dict, nb::dict, int, int, std::vector<std::uint8_t>, std::vector<std::uint8_t>,
                      std::int32_t, int, std::size_t>(),
             nb::arg("arrays"), nb::arg("infos"), nb::arg("final_infos"), nb::arg("kind"), nb::arg("pixels"),
             nb::arg("tiles"), nb::arg("directions"), nb::arg("limit"), nb::arg("mode"), nb::arg("threads"))
        .def("set_levels", &GamesObject::set_levels, nb::arg("levels"), nb::arg("window"), nb::arg("reuse"))
        .def("reset", &GamesObject::reset, nb::arg("mask").noconvert(), nb::arg("boards").none())
        .def("step", &GamesObject::step, nb::arg("actions"))
        .def("infos", &GamesObject::infos)
        .def("step_many", &GamesObject::step_many, nb::arg("done"), nb::arg("actions").none(),
             nb::arg("rewards").noconvert(), nb::arg("terminated").noconvert(), nb::arg("truncated").noconvert())
        .def("step_first", &GamesObject::step_first, nb::arg("action"));
}

}  // namespace maskoban::environment
