// The whole face of the native core: maskoban._core, typed in src/maskoban/_core.pyi.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "batch.hpp"
#include "grid.hpp"
#include "nearest.hpp"
#include "play.hpp"

namespace nb = nanobind;
using namespace maskoban;

using Boards = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OneBoard = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

namespace {

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

nb::dict solve_boards(const Boards& boards, int mode, std::int64_t states, std::size_t megabytes, double seconds,
                      std::size_t threads, bool solutions, const nb::object& progress) {
    const Limits limits{states, megabytes, seconds};
    const auto attend = [&](std::size_t done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done);
    };
    Batch batch = [&] {
        const nb::gil_scoped_release no_gil;
        return solve_batch(boards.data(), boards.shape(0), static_cast<int>(boards.shape(1)),
                           static_cast<int>(boards.shape(2)), static_cast<Mode>(mode), limits, threads, solutions,
                           attend);
    }();
    nb::dict result;
    result["verdicts"] = array(std::move(batch.verdicts));
    result["reasons"] = texts(batch.reasons);
    result["pushes"] = array(std::move(batch.pushes));
    result["moves"] = array(std::move(batch.moves));
    result["expanded"] = array(std::move(batch.expanded));
    result["seconds"] = array(std::move(batch.seconds));
    result["setup"] = array(std::move(batch.setup));
    result["rebuilding"] = array(std::move(batch.rebuilding));
    result["solutions"] = solutions ? nb::object(texts(batch.solutions)) : nb::none();
    return result;
}

nb::object find_dead_cells(const OneBoard& board) {
    const std::size_t height = board.shape(0), width = board.shape(1);
    auto* dead = new std::vector<std::uint8_t>(
        dead_cells({board.data(), static_cast<int>(height), static_cast<int>(width)}));
    nb::capsule owner(dead, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
    return nb::cast(
        nb::ndarray<nb::numpy, bool, nb::ndim<2>>(reinterpret_cast<bool*>(dead->data()), {height, width}, owner));
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The native push solver of maskoban.";
    m.def("solve_boards", &solve_boards, nb::arg("boards"), nb::arg("mode"), nb::arg("states"), nb::arg("megabytes"),
          nb::arg("seconds"), nb::arg("threads"), nb::arg("solutions"), nb::arg("progress").none());
    m.def("dead_cells", &find_dead_cells, nb::arg("board"));
    bind_nearest(m);
    bind_play(m);
}
