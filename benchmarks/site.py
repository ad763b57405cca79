"""The static site against Python: the solver's verdicts and speed, the sampler's boards, and the times of the page.

    maskoban site build public
    python benchmarks/site.py solver public
    python benchmarks/site.py sampler public
    python benchmarks/site.py operators public
    python benchmarks/site.py page public

`solver`, `sampler` and `operators` run the site's modules in Node and compare CPU seconds of one thread. `page` opens
the site in Chromium, so it needs a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from maskoban.boards import MASK, Level, Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.loading import graph_file, load, model_folder
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import Commit, SamplerConfig
from maskoban.solving import Limits, solve_many


class Node:
    """The site's modules in a process of Node."""

    def __init__(self, site: Path, folder: Path) -> None:
        for file in site.iterdir():
            if file.suffix in (".js", ".json", ".wasm"):
                shutil.copyfile(file, folder / file.name)
        (folder / "files").symlink_to((site / "files").resolve())
        (folder / "package.json").write_text('{"type": "module"}')
        command = ["node", str(Path(__file__).with_suffix(".mjs")), str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, kind: str, **job: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, **job}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def some_boards(n: int) -> Tokens:
    """Boards, half of them with another wall, so that many are unsolvable."""
    boards = synthesize(n, seed=1)
    rng = np.random.default_rng(2)
    for board in boards[::2]:
        floor = np.argwhere(board == 1)
        board[tuple(floor[rng.integers(len(floor))])] = 0
    return boards


def compare_solvers(node: Node, n: int, states: int) -> None:
    """Verdicts of all modes, and the ratio of CPU seconds; batch by batch, native and WebAssembly in turn."""
    boards = some_boards(n)
    verdicts = ("solved", "unsolvable", "unknown", "malformed")
    for mode in ("any", "pushes", "effort"):
        different, native, wasm, counts = 0, 0.0, 0.0, dict.fromkeys(verdicts, 0)
        for first in range(0, n, 1000):
            part = boards[first : first + 1000]
            start = time.thread_time()
            found = solve_many(part, mode, threads=1, limits=Limits(states=states, megabytes=256))
            native += time.thread_time() - start
            answer = node("solve", boards=[str(Level(board)) for board in part], mode=mode, states=states)
            wasm += answer["seconds"]
            for result, other in zip(found, answer["results"], strict=True):
                counts[result.verdict] += 1
                lengths = (result.pushes, result.moves) if result.solved else (None, None)
                different += other != [result.verdict, *lengths, result.expanded]
        print(
            f"{mode}: {n:,} boards ({', '.join(f'{k} {v:,}' for k, v in counts.items() if v)}), {different} different; "
            f"native {native:.2f} s, WebAssembly {wasm:.2f} s: {native / wasm:.2f} of the native speed",
            flush=True,
        )


Steps = list[list[Any]]


def sampled(model: Model, seed: int, config: SamplerConfig) -> tuple[list[int], Steps]:
    """Board 0 of a seed, and how it came about: commits with cells, tiles and probabilities, and ends of attempts."""
    steps: Steps = []
    for step in model.steps(model.start(1), seed, config):
        if isinstance(step, Commit):
            steps.append(["commit", step.cell.tolist(), step.tile.tolist(), step.probabilities.tolist()])
        else:
            steps.append(["attempt", step.accepted.tolist()])
            board = step.boards[0]
    return board.ravel().tolist(), steps


def parting(ours: Steps, theirs: Steps) -> tuple[int | None, list[float]]:
    """The first step that differs, or None; and the largest difference of a probability at every step up to there.

    >>> parting([["commit", [3], [1], [[0.4, 0.6]]]], [["commit", [3], [0], [[0.5, 0.5]]]])
    (0, [0.1])
    """
    differences = []
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one[0] == other[0] == "commit":
            differences.append(round(float(np.abs(np.subtract(one[3], other[3])).max()), 7))
        if one[:3] != other[:3]:
            return place, differences
    return None, differences


def compare_samplers(node: Node, seeds: range, sampler: str, precision: str) -> None:
    """Board 0 of every seed in Python and in the page, and where their samplings part."""
    model = load(threads=1)
    config = replace(model.sampler(sampler), precision=precision)
    job = {
        "start": model.start(1)[0].ravel().tolist(),
        "inside": interior_cells(model.denoiser).tolist(),
        "config": asdict(config),
    }
    different: list[int] = []
    partings: list[tuple[int, int, float]] = []
    differences: list[float] = []
    critic = page = python = 0.0
    for done, seed in enumerate(seeds, 1):
        began = time.process_time()
        board, ours = sampled(model, seed, config)
        python += time.process_time() - began
        answer = node("sample", **job, seed=seed, numbers=[0])
        page += answer["seconds"]
        place, found = parting(ours, answer["steps"])
        differences += found
        if place is not None and ours[place][0] == "commit":
            partings.append((seed, place, found[-1]))
        elif place is not None:
            critic += 1
        if answer["boards"][0] != board:
            different.append(seed)
        if done % 10 == 0:
            print(
                f"{sampler} {precision}: {done} seeds, {len(different)} different; CPU seconds a board: "
                f"Python {python / done:.2f}, page {page / done:.2f}",
                flush=True,
            )
    print(f"{sampler} {precision}: {len(seeds)} seeds, {len(different)} boards differ: {different}")
    print(
        f"{len(partings)} samplings part at a tile, {critic:.0f} at the critic; of them "
        f"{len(partings) + critic - len(different):.0f} end in the same board"
    )
    quantiles = np.quantile(differences, (0.5, 0.9, 0.99, 1))
    print(
        f"largest difference of a probability in {len(differences):,} evaluations of the same cells: "
        + ", ".join(f"{q:.2g}" for q in quantiles)
        + " (median, 90 %, 99 %, all); at "
        f"{np.mean(np.array(differences) > 1e-4):.1%} above 0.0001"
    )
    for seed, place, difference in partings:
        print(f"  seed {seed}: step {place}, where a probability differs by {difference:.2g}")


def compare_operators(node: Node, folder: Path, seeds: range) -> None:
    """Which operators of the int8 graph round differently in the page although their inputs are the same."""
    import onnx
    import onnxruntime

    graph_path = graph_file(model_folder("best"), "int8")
    proto = onnx.load(str(graph_path), load_external_data=False)
    moving = {each.name for each in proto.graph.input}
    nodes = []
    for each in proto.graph.node:
        if moving.intersection(each.input) and each.op_type != "Shape":
            moving.update(each.output)
            nodes.append(each)
    names = [each.output[0] for each in nodes if each.output[0] != "logits"]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    names.append("logits")
    traced = folder / "traced.onnx"
    onnx.save(proto, str(traced))
    shutil.copyfile(graph_path.with_name("model.safetensors"), folder / "model.safetensors")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(traced), options, providers=["CPUExecutionProvider"])
    model = load(threads=1)
    origins: Counter[str] = Counter()
    firsts: Counter[str] = Counter()
    levels: list[float] = []
    for seed in seeds:
        # Half of the cells of a sampled board are masked.
        row = (
            model.sample(1, seed=seed, sampler="fast")[0]
            .ravel()[interior_cells(model.denoiser)]
            .astype(np.int64)
        )
        masked = np.random.default_rng(seed).permutation(64)[:32]
        row[masked] = MASK
        cells = masked[:1].astype(np.int64)
        ours = dict(zip(names, session.run(names, {"tokens": row[None], "cells": cells[None]}), strict=True))
        out = folder / "outputs"
        node(
            "outputs", graph=str(traced), names=names, tokens=row.tolist(), cells=cells.tolist(), out=str(out)
        )
        content, place = out.read_bytes(), 0
        changed: dict[str, float] = {}
        for name in names:
            theirs = np.frombuffer(content, ours[name].dtype, ours[name].size, place)
            place += theirs.nbytes
            changed[name] = float(np.mean(theirs != ours[name].ravel()))
        here = [
            each.op_type
            for each in nodes
            if changed[each.output[0]] and not any(changed.get(name) for name in each.input)
        ]
        firsts.update(here[:1])
        origins.update(here)
        levels += [changed[name] for name in names if name.startswith("QuantizeLinear")]
    print(f"{len(seeds)} boards; the first operator that rounds differently: {dict(firsts)}")
    print(f"all that round differently from equal inputs: {dict(origins)}")
    print(
        f"activations as int8 in another level: {np.mean(levels):.3%}, in the worst layer {max(levels):.3%}"
    )


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    """A plain file server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


_VISITOR = """(() => {
  // Somebody who presses Next as soon as there is a page, and sees the board and then its par, which proves it.
  const seen = (window.seen = {}), text = (id) => document.getElementById(id)?.textContent ?? "";
  const look = () => {
    if (document.documentElement?.dataset.ready && !seen.pressed) {
      seen.pressed = performance.now();
      document.getElementById("next").click();
    }
    if (text("board-name").includes("best ")) seen.board ??= performance.now();
    if (seen.board && Number(text("par")) > 0) seen.par ??= performance.now();
  };
  const all = { subtree: true, childList: true, attributes: true, characterData: true };
  new MutationObserver(look).observe(document, all);
})()"""

_PAINTED = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
  const before = performance.getEntriesByType("resource").filter((each) => each.responseEnd <= paint);
  const [page] = performance.getEntriesByType("navigation");
  return { ...seen, paint, bytes: before.reduce((sum, each) => sum + each.encodedBodySize, page.encodedBodySize) };
}"""


def _cpu_seconds() -> float:
    """CPU seconds of this process's descendants, which are the browser's processes (Linux)."""
    ticks, parents = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(pid, 0) for pid in family - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


CATEGORIES = ["toplevel", "__metadata"]


def _longest_task(trace: bytes) -> tuple[float, float]:
    """Milliseconds of the longest task on the thread of a page: by the clock, and of CPU."""
    events = json.loads(trace)["traceEvents"]
    main = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks = [each for each in events if (each["pid"], each["tid"]) in main and "dur" in each]
    return max(each["dur"] for each in tasks) / 1000, max(each.get("tdur", 0) for each in tasks) / 1000


def time_page(site: Path, visits: int, seconds: float = 600) -> None:
    """From the navigation to the first paint and to a proved board of the model; then six boards in Watch."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * seconds)
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context()
        context.set_default_timeout(1000 * seconds)
        context.add_init_script(_VISITOR)
        for visit in range(1, visits + 1):
            page = context.new_page()
            browser.start_tracing(page=page, categories=CATEGORIES)
            before = _cpu_seconds()
            page.goto(address)
            page.wait_for_function("() => seen.par")
            found, cost = page.evaluate(_PAINTED), _cpu_seconds() - before
            page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
            page.evaluate('import("./api.js").then(({ model }) => model()).then(() => 0)')
            longest, cpu = _longest_task(browser.stop_tracing())
            print(
                f"visit {visit}: first paint after {found['paint'] / 1000:.2f} s and {found['bytes']:,} bytes, a board "
                f"of the model after {found['board'] / 1000:.2f} s, its par after {found['par'] / 1000:.2f} s, "
                f"{cost:.1f} s of CPU; longest task {longest:.0f} ms, {cpu:.0f} ms of CPU",
                flush=True,
            )
            if visit < visits:
                page.close()
        browser.start_tracing(page=page, categories=CATEGORIES)
        start = time.perf_counter()
        page.click("[data-tab=watch]")
        expect(page.locator("#watch-boards .verdict b")).to_have_count(6)
        took = time.perf_counter() - start
        longest, cpu = _longest_task(browser.stop_tracing())
        print(
            f"Watch: six boards in {took:.1f} s; longest task {longest:.0f} ms, {cpu:.0f} ms of CPU",
            flush=True,
        )
        browser.close()


def main() -> None:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["solver", "sampler", "operators", "page"])
    parser.add_argument("site", type=Path)
    parser.add_argument("--boards", type=int, default=20_000)
    parser.add_argument("--states", type=int, default=100_000, help="State limit of a search.")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="The first seed, to compare in several runs.")
    parser.add_argument("--sampler", default="best")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--visits", type=int, default=3)
    given = parser.parse_args()
    if given.what == "page":
        time_page(given.site, given.visits)
        return
    with tempfile.TemporaryDirectory() as folder:
        node = Node(given.site, Path(folder))
        if given.what == "solver":
            compare_solvers(node, given.boards, given.states)
            return
        seeds = range(given.first, given.first + given.seeds)
        if given.what == "operators":
            compare_operators(node, Path(folder), seeds)
        else:
            compare_samplers(node, seeds, given.sampler, given.precision)


if __name__ == "__main__":
    main()
