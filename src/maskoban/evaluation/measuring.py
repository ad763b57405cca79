"""Every measure of a report, in stages.

What cannot be measured (no probabilities in the file, no corpus on this machine, no model to draw with) is left
out, with a sentence in ``notes`` that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import maskoban
from maskoban._util.progress import bar
from maskoban.boards import Tokens
from maskoban.boards import corpus as corpora
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.evaluation import gallery
from maskoban.evaluation.culprits import culprit_probabilities, measure_culprits
from maskoban.evaluation.difficulty import efforts_unknown, measure_difficulty
from maskoban.evaluation.duplicates import count_duplicates
from maskoban.evaluation.neighbours import measure_distances, nearest_distances, same_puzzles, training_levels
from maskoban.evaluation.paper import PAPER
from maskoban.evaluation.patterns import SIZES, measure_patterns
from maskoban.evaluation.reference import Reference, load_reference, measure_reference
from maskoban.evaluation.repairs import Mending, measure_repairs, mend
from maskoban.evaluation.sample import draw_sample, identity, read_sample
from maskoban.evaluation.solvability import measure_solvability
from maskoban.evaluation.stages import Stages, fingerprint, plain
from maskoban.evaluation.sweeps import explicit, measure_setting, settings
from maskoban.evaluation.tiles import count_tiles
from maskoban.evaluation.training_log import read_training
from maskoban.solving import Limits, Results, solve_many

#: A search that is not through after so many states counts as unknown; no board of Boxoban's kind comes near.
LIMITS = Limits(states=20_000_000)

#: Rows and columns of the levels whose numbers ship.
BOXOBAN_SIDE = 10

#: Levels of a corpus of one's own whose efforts are looked for.
CORPUS_LEVELS = 5_000

#: Bars of the histogram of commit probabilities.
BARS = 25


@dataclass(frozen=True)
class Plan:
    """What to measure, beyond the boards themselves."""

    samples: int = 50_000
    seed: int = 0
    sampler: str | SamplerConfig = "best"
    sweep: int = 1_000  # boards for each way of drawing; 0 leaves the comparisons out
    corpus: str = "boxoban-medium-train"
    # Of that corpus; what boards are read against is Boxoban's where there are none.
    held_out: str | None = None
    log: str | None = None


class Measuring:
    """One report in the making: ``report`` grows stage by stage."""

    def __init__(
        self,
        source: Model | str | Path,
        plan: Plan,
        stages: Stages,
        progress: bool = False,
    ) -> None:
        self.model = source if isinstance(source, Model) else None
        self.plan, self.stages, self.progress = plan, stages, progress
        self.measures: dict[str, Any] = {}
        self.gallery: dict[str, Any] = {}
        self.notes: dict[str, str] = {}
        self.reference = self._reference()
        # What every measure depends on besides the boards.
        self._yardstick = {
            "maskoban": maskoban.__version__,
            "reference": fingerprint(
                *self.reference.patterns,
                np.array(list(self.reference.held_out_jsd.values())),
                np.array(self.reference.held_out_distances.histogram),
            ),
        }
        self.read_log()
        if isinstance(source, Model):
            self.config = source.sampler(plan.sampler)
            self.sample = draw_sample(
                source, plan.samples, plan.seed, self.config, stages, "boards", progress
            )
            self.source = {
                "name": source.name,
                "model": identity(source) | {k: v for k, v in source.card.items() if k != "name"},
                "seed": plan.seed,
                **self._drawing(source),
            }
        else:
            self.sample = read_sample(source)
            self.source = {"name": Path(source).stem, "file": Path(source).name}
        n, height, width = self.sample.boards.shape
        self.source |= {"boards": n, "height": height, "width": width, "fingerprint": self.sample.fingerprint}

    def report(self) -> dict[str, Any]:
        """All stages, and what they found."""
        self.judge()
        self.compare_with_corpus()
        self.show()
        self.compare_ways_of_drawing()
        return {
            "maskoban": maskoban.__version__,
            "source": self.source,
            "measures": self.measures,
            "corpus": {"tiles": self.reference.tiles, "held_out_tiles": self.reference.held_out_tiles},
            "paper": plain(PAPER),
            "gallery": self.gallery,
            "notes": self.notes,
        }

    def _reference(self) -> Reference:
        """What boards are read against: the shipped numbers, or those of a corpus and its held-out levels."""
        if self.plan.held_out is None:
            return load_reference()
        corpus, held_out = training_levels(self.plan.corpus), corpora.load(self.plan.held_out)
        return measure_reference(corpus, held_out, self.progress)

    def judge(self) -> None:
        """Solvability, repair, culprits, difficulty."""
        boards = self.sample.boards
        self.results = self._solved("verdicts", boards, "any")
        self._measure("solvability", lambda: measure_solvability(boards, self.results))
        kept = self.stages.arrays(
            "mending",
            self._inputs(),
            lambda: self._mended(boards),
        )
        self.mending = Mending(**kept)
        self._measure("repairs", lambda: measure_repairs(self.mending))
        if self.sample.probabilities is None:
            self.notes["culprits"] = "the boards come without the probabilities with which they were drawn"
        else:
            self._measure("culprits", self._culprits)
        efforts = self._solved("efforts", boards[self.results.solved], "effort")
        try:
            corpus = self._corpus_efforts()
            against = None if corpus is None else fingerprint(corpus.expanded, corpus.pushes, corpus.solved)
            self._measure("difficulty", lambda: measure_difficulty(efforts, True, corpus), against=against)
            self._check_efforts(efforts)
        except MaskobanError as error:
            self.notes["difficulty"] = str(error)

    def _corpus_efforts(self) -> Results | None:
        """How hard levels of a corpus of one's own are."""
        if self.plan.held_out is None:
            return None
        levels = training_levels(self.plan.corpus)[:CORPUS_LEVELS]
        return self._solved("corpus-efforts", levels, "effort", of=fingerprint(levels))

    def _check_efforts(self, efforts: Results) -> None:
        """Say so where the effort of boards that were solved is not known."""
        unknown = int(efforts_unknown(efforts).sum())
        if unknown:
            quarters = self.measures["difficulty"]["quarters"].values()
            expert = sum(share["count"] for share in quarters) - int(efforts.solved.sum())
            self.notes["efforts"] = (
                f"the effort of {unknown:,} of the {len(efforts):,} solved boards is not known, for the search for it "
                f"hit its limit (expert all the same: {expert:,}); effort and pushes are those of the other "
                f"{len(efforts) - unknown:,}"
            )

    def compare_with_corpus(self) -> None:
        """Tiles, patterns, neighbours, duplicates."""
        boards = self.sample.boards
        self._measure("tiles", lambda: count_tiles(boards))
        try:
            self._measure(
                "patterns",
                lambda: measure_patterns(boards, self.reference.patterns, self.reference.held_out_jsd),
            )
        except MaskobanError as error:
            self.notes["patterns"] = str(error)
        ratios = self.measures.get("patterns", {}).get("ratio", {})
        same = [f"{int(size):,}" for size, ratio in ratios.items() if ratio is None]
        if same:
            self.notes["pattern ratio"] = (
                f"there is no ratio at {' or '.join(same)} boards, for as many held-out levels have exactly the "
                "patterns of the corpus"
            )
        self._measure("duplicates", lambda: count_duplicates(boards))
        if boards.shape[1:] != (BOXOBAN_SIDE, BOXOBAN_SIDE):
            self._check_yardstick(boards)
        try:
            levels = training_levels(self.plan.corpus)
            self._check_yardstick(levels)
            inputs = {"corpus": fingerprint(levels), "held_out_same": self.reference.held_out_same.count}
            self._measure("distances", lambda: self._distances(levels), **inputs)
        except MaskobanError as error:
            self.notes["distances"] = str(error)

    def _check_yardstick(self, levels: Tokens) -> None:
        """Say so where the levels at hand are not those that boards are read against."""
        if self.plan.held_out is not None:
            ours, theirs = ("x".join(map(str, each.shape[1:])) for each in (self.sample.boards, levels))
            if ours != theirs:
                self.notes["reference"] = (
                    f"boards of {ours} are read against levels of {theirs}, and already the size makes their patterns "
                    "and tiles differ"
                )
            return
        means = count_tiles(levels).means
        if not np.allclose(list(means.values()), list(self.reference.tiles.values()), atol=1e-6):
            self.notes["reference"] = (
                "patterns, tiles and held-out levels are those of Boxoban's medium set, 10x10, and not of these "
                "levels: --corpus and --held-out compare with a corpus of your own"
            )

    def show(self) -> None:
        """The boards to be drawn."""
        chosen = gallery.first_solved(self.results)
        boards = self.sample.boards[chosen]
        if self.model is None:
            self.notes["denoising"] = "only finished boards were given, so how they were drawn is not known"
        elif chosen:
            model = self.model
            self.gallery |= self.stages.numbers(
                "denoising",
                self._inputs(),
                lambda: gallery.denoising(model, chosen, self.plan.seed, self.config, LIMITS),
            )
        if chosen:
            self.gallery["solutions"] = self.stages.numbers(
                "solutions", self._inputs(), lambda: gallery.solutions(boards, LIMITS)
            )
        self.gallery["repaired"] = self.stages.numbers(
            "repaired", self._inputs(), lambda: gallery.repaired(self.sample, self.mending)
        )

    def compare_ways_of_drawing(self) -> None:
        """Temperatures, reveal orders, steps, sweeps, and with the critic."""
        if self.model is None or not self.plan.sweep:
            why = (
                "only finished boards were given"
                if self.model is None
                else "it was not asked for (--sweep 0)"
            )
            self.notes["drawing"] = f"other ways of drawing were not tried: {why}"
            return
        for comparison, configs in settings(self.model).items():
            found = self.measures[comparison] = [self._setting(self.model, config) for config in configs]
            if any(each["solvable"]["count"] and each["median_effort"] is None for each in found):
                self.notes["median effort"] = (
                    "where it is a dash, the searches for the efforts of too many boards hit their limits"
                )
            if any(each["jsd_boards"] is None for each in found):
                self.notes["JSD ratio"] = (
                    f"a divergence needs {SIZES[0]} boards of each way (--sweep), and as many held-out levels"
                )

    def read_log(self) -> None:
        """Training curves; first of all, for a log that cannot be read is better refused before the work."""
        log = self.plan.log
        if log is None:
            self.notes["training"] = "no log of a training run was given (--log)"
            return
        beside = sorted(path.name for path in Path(log).parent.glob("*.npy"))
        self.measures["training"] = self.stages.numbers(
            "training",
            {"log": _contents(Path(log)), "beside": beside, "maskoban": maskoban.__version__},
            lambda: read_training(log, LIMITS),
        )

    def _drawing(self, model: Model) -> dict[str, Any]:
        """How the boards were drawn, and what that took."""
        cells = len(interior_cells(model.denoiser))
        return {
            "polish": self.config.sweeps,
            "critic": model.card["critic"] if self.config.critic else None,
            "attempts": self.sample.mean_attempts,
            "evaluations": self.config.cost(cells, self.sample.mean_attempts),
        }

    def _setting(self, model: Model, config: SamplerConfig) -> Any:
        cells, n = len(interior_cells(model.denoiser)), self.plan.sweep
        config = explicit(config, cells)
        name = f"drawn-{config.temperature:g}-{config.order}-{config.steps}-{config.sweeps}"
        if config.critic:
            name += "-critic"
        if config == explicit(self.config, cells) and n <= self.plan.samples:
            sample = self.sample.first(n)
        else:
            # Two comparisons may share a way of drawing, and then its boards.
            sample = draw_sample(model, n, self.plan.seed, config, self.stages, name, self.progress)
        bound = model.card["critic"] if config.critic else None
        return self.stages.numbers(
            name,
            {"boards": sample.fingerprint, "sampler": config, **self._yardstick},
            lambda: measure_setting(
                sample.boards, config, cells, self.reference, LIMITS, sample.mean_attempts, bound
            ),
        )

    def _culprits(self) -> dict[str, Any]:
        sample, edges = self.sample, np.linspace(0, 1, BARS + 1)
        assert sample.probabilities is not None
        probabilities = culprit_probabilities(sample.boards, sample.probabilities, self.mending)
        culprits, others = (np.histogram(each, edges)[0] for each in probabilities)
        medians = measure_culprits(sample.boards, sample.probabilities, self.mending)
        return {**vars(medians), "edges": edges, "histogram": culprits, "other_histogram": others}

    def _distances(self, levels: Tokens) -> dict[str, Any]:
        distances = nearest_distances(self.sample.boards, levels, progress=self.progress)
        return {
            **vars(measure_distances(distances)),
            "same_puzzle": same_puzzles(self.sample.boards, levels),
            "held_out_same_puzzle": self.reference.held_out_same,
            "corpus_levels": len(levels),
            "held_out": self.reference.held_out_distances,
        }

    def _mended(self, boards: Tokens) -> dict[str, Any]:
        with bar("repairing", self.progress) as show:
            return vars(mend(boards, self.results, limits=LIMITS, on_progress=show))

    def _solved(self, name: str, boards: Tokens, mode: str, **inputs: Any) -> Results:
        def make() -> dict[str, Any]:
            with bar("solving", self.progress) as show:
                results = solve_many(boards, mode, None, LIMITS, solutions=False, on_progress=show)
            found = {key: value for key, value in vars(results).items() if key != "solutions"}
            return found | {"reasons": np.array(results.reasons)}

        kept = self.stages.arrays(
            name,
            self._inputs() | {"mode": mode, "columns": [field.name for field in fields(Results)]} | inputs,
            make,
        )
        return Results(**kept | {"reasons": kept["reasons"].tolist()}, solutions=None)

    def _measure(self, name: str, make: Callable[[], Any], **inputs: Any) -> None:
        self.measures[name] = self.stages.numbers(name, self._inputs() | inputs, make)

    def _inputs(self) -> dict[str, Any]:
        return {"boards": self.sample.fingerprint, **self._yardstick}


def _contents(file: Path) -> str:
    """A hash of a file; nothing where there is none, which its reader will say."""
    return sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else ""
