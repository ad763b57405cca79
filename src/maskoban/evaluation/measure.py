"""Every measure of one generator's boards, in stages.

What cannot be measured (no probabilities in the file, no corpus on this machine, no model) is left out, with a
sentence in ``notes`` that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

import maskoban
from maskoban._util.progress import bar
from maskoban.boards import Tokens
from maskoban.boards.synth import synthesize
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.evaluation import gallery
from maskoban.evaluation.measures.board_measures import RATED, BoardMeasures, measure_boards
from maskoban.evaluation.measures.culprits import measure_culprits
from maskoban.evaluation.measures.difficulty import Difficulty, measure_difficulty
from maskoban.evaluation.measures.distances import (
    Distances,
    measure_distances,
    nearest_distances,
    same_puzzles,
    training_levels,
)
from maskoban.evaluation.measures.diversity import count_duplicates, measure_diversity
from maskoban.evaluation.measures.patterns import SIZES, PatternMatch, count_tiles, measure_patterns
from maskoban.evaluation.measures.repairs import Mending, measure_repairs, mend
from maskoban.evaluation.measures.samplers import Setting, explicit, measure_setting, sampler_configs
from maskoban.evaluation.measures.solvability import measure_solvability
from maskoban.evaluation.measures.training import Training, read_training
from maskoban.evaluation.reference import Reference
from maskoban.evaluation.report import Corpus, Gallery, Plate, Report, Source
from maskoban.evaluation.sample import Sample, identity, random_boards, read_sample, sample_model
from maskoban.evaluation.stages import Stages, fingerprint
from maskoban.solving import Limits, Results, solve_many
from maskoban.solving.rating import DECOMPOSED_STATES, summarise

#: A search that is not through after so many states counts as unknown; no board of Boxoban's kind comes near.
LIMITS = Limits(states=20_000_000)

#: Rows and columns of the levels whose numbers ship, and of synthetic and random boards.
SIDE = 10

#: Levels of a corpus of one's own whose difficulty is measured.
CORPUS_LEVELS = 5_000

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """What to measure, beyond the boards themselves."""

    samples: int = 50_000
    seed: int = 0
    sampler: str | SamplerConfig = "best"
    sweep: int = 1_000  # boards for each other sampler; 0 leaves the comparisons out
    corpus: str = "boxoban-medium-train"
    held_out: str | None = None  # of that corpus; without, boards are compared with Boxoban's
    log: str | Path | None = None
    axes: tuple[tuple[str, str], ...] = (("walls", "effort"), ("pushes", "box_changes"))


@dataclass(frozen=True)
class Generator:
    """What makes boards: a model with its sampler, a file of them, or a rule."""

    name: str
    source: Model | Path | Literal["synth", "random"]
    sampler: str | SamplerConfig = "best"


@dataclass(frozen=True, eq=False)
class Work:
    """The boards of a generator, and where and against what they are measured."""

    generator: Generator
    sample: Sample
    plan: Plan
    reference: Reference
    stages: Stages
    progress: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> Model | None:
        """The model, where the generator is one."""
        return self.generator.source if isinstance(self.generator.source, Model) else None

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """What every measure depends on."""
        reference = fingerprint(
            *self.reference.patterns,
            np.array(list(self.reference.held_out_jsd.values())),
            np.array(self.reference.held_out_distances.histogram),
        )
        return {
            "boards": self.sample.fingerprint,
            "maskoban": maskoban.__version__,
            "reference": reference,
        }

    def value(self, name: str, kind: type[T], make: Callable[[], T], **inputs: Any) -> T:
        """A measure, made once."""
        return self.stages.value(name, self.inputs | inputs, kind, make)

    def noted(self, name: str, make: Callable[[], T]) -> T | None:
        """What ``make`` returns, or a note with the reason why it cannot be measured."""
        try:
            return make()
        except MaskobanError as error:
            self.notes[name] = str(error)
            return None

    def solve(self, name: str, boards: Tokens, mode: str, limits: Limits) -> Results:
        """The solver's results, without solutions, made once."""
        columns = [each.name for each in fields(Results) if each.name != "solutions"]

        def make() -> dict[str, Any]:
            with bar("solving", self.progress) as show:
                results = solve_many(boards, mode, None, limits, solutions=False, on_progress=show)
            return {name: np.array(getattr(results, name)) for name in columns}

        inputs = {"mode": mode, "columns": columns, "limits": limits}
        kept: dict[str, Any] = self.stages.arrays(name, self.inputs | inputs, make)
        return Results(**kept | {"reasons": kept["reasons"].tolist()}, solutions=None)


def sample_generator(generator: Generator, plan: Plan, stages: Stages, progress: bool = False) -> Sample:
    """The boards of a generator."""
    if isinstance(generator.source, Model):
        config = generator.source.sampler(generator.sampler)
        return sample_model(generator.source, plan.samples, plan.seed, config, stages, "boards", progress)
    if isinstance(generator.source, Path):
        return read_sample(generator.source)
    if generator.source == "synth":
        with bar("making", progress) as show:
            return Sample(synthesize(plan.samples, SIDE, SIDE, seed=plan.seed, on_progress=show))
    return Sample(random_boards(plan.samples, SIDE, SIDE, seed=plan.seed))


def measure(work: Work, training: Training | None = None, count: int | None = None) -> Report:
    """Every measure; diversity is of the first ``count`` boards."""
    sample, reference, boards = work.sample, work.reference, work.sample.boards
    results = work.solve("verdicts", boards, "any", LIMITS)
    mending = _mending(work, results)
    if sample.probabilities is None:
        work.notes["culprits"] = "the boards come without the probabilities with which they were sampled"
    if boards.shape[1:] != (SIDE, SIDE):
        _check_reference(work, boards)
    board_measures = _board_measures(work, min(count or len(boards), RATED))
    return Report(
        maskoban=maskoban.__version__,
        source=source_of(work),
        corpus=Corpus(reference.tiles, reference.held_out_tiles),
        held_out=reference.held_out_distances,
        solvability=measure_solvability(boards, results),
        repairs=measure_repairs(mending),
        culprits=None
        if sample.probabilities is None
        else measure_culprits(boards, sample.probabilities, mending),
        difficulty=work.noted("difficulty", lambda: _difficulty(work, results)),
        tiles=count_tiles(boards),
        patterns=work.noted("patterns", lambda: _patterns(work)),
        duplicates=count_duplicates(boards),
        distances=work.noted("distances", lambda: _distances(work)),
        board_measures=board_measures,
        diversity=measure_diversity(boards, reference.patterns, board_measures),
        **_samplers(work),
        training=training,
        gallery=_gallery(work, results, mending),
        notes=work.notes,
    )


def source_of(work: Work) -> Source:
    """What the boards are, and what they took."""
    n, height, width = work.sample.boards.shape
    made_by, seed = work.generator.source, work.plan.seed
    source = Source(work.generator.name, n, height, width, work.sample.fingerprint)
    if isinstance(made_by, Path):
        return replace(source, file=made_by.name)
    if isinstance(made_by, str):
        return replace(source, rule=made_by, seed=seed)
    config, attempts = made_by.sampler(work.generator.sampler), work.sample.mean_attempts
    return replace(
        source,
        model=identity(made_by) | made_by.card | {"name": made_by.name},
        seed=seed,
        sampler=asdict(config),
        sweeps=config.sweeps,
        critic=made_by.card["critic"] if config.critic else None,
        attempts=attempts,
        evaluations=config.cost(len(interior_cells(made_by.denoiser)), attempts),
    )


def read_log(plan: Plan, stages: Stages) -> Training | None:
    """The training curves of the plan's log, where it has one."""
    if plan.log is None:
        return None
    log = Path(plan.log)
    contents = sha256(log.read_bytes()).hexdigest()[:16] if log.is_file() else ""
    beside = sorted(path.name for path in log.parent.glob("*.npy"))
    inputs = {"log": contents, "beside": beside, "maskoban": maskoban.__version__}
    return stages.value("training", inputs, Training, lambda: read_training(log, LIMITS))


def _mending(work: Work, results: Results) -> Mending:
    def make() -> dict[str, Any]:
        with bar("repairing", work.progress) as show:
            return vars(mend(work.sample.boards, results, limits=LIMITS, on_progress=show))

    return Mending(**work.stages.arrays("mending", work.inputs, make))


def _difficulty(work: Work, results: Results) -> Difficulty:
    boards, plan = work.sample.boards[results.solved], work.plan
    decomposed_limits = Limits(states=min(LIMITS.states or DECOMPOSED_STATES, DECOMPOSED_STATES))
    efforts = work.solve("efforts", boards, "effort", LIMITS)
    decomposed = work.solve("decomposed", boards, "decomposed", decomposed_limits)
    corpus = None
    if plan.held_out is not None:
        levels = training_levels(plan.corpus)[:CORPUS_LEVELS]
        corpus = work.value(
            "corpus-difficulty",
            dict[str, Any],
            lambda: summarise(levels, limits=LIMITS),
            of=fingerprint(levels),
        )
    found = measure_difficulty(efforts, True, corpus, decomposed)
    unknown = int((efforts.limits_hit > 0).sum())
    if unknown:
        expert = sum(share.count for share in found.quarters.values()) - int(efforts.solved.sum())
        work.notes["efforts"] = (
            f"the effort of {unknown:,} of the {len(efforts):,} solved boards is not known, because the search for it "
            f"hit its limit (expert all the same: {expert:,}); effort and pushes are those of the other "
            f"{len(efforts) - unknown:,}"
        )
    return found


def _patterns(work: Work) -> PatternMatch:
    boards, reference = work.sample.boards, work.reference
    found = measure_patterns(boards, reference.patterns, reference.held_out_jsd)
    same = [f"{size:,}" for size, ratio in found.ratio.items() if ratio is None]
    if same:
        work.notes["pattern ratio"] = (
            f"there is no ratio at {' or '.join(same)} boards, because as many held-out levels have exactly the "
            "patterns of the corpus"
        )
    return found


def _distances(work: Work) -> Distances:
    boards, levels = work.sample.boards, training_levels(work.plan.corpus)
    _check_reference(work, levels)

    def make() -> Distances:
        with bar("comparing", work.progress) as show:
            found = nearest_distances(boards, levels, on_progress=show)
        return measure_distances(found, len(levels), same_puzzles(boards, levels))

    return work.value("distances", Distances, make, corpus=fingerprint(levels))


def _check_reference(work: Work, levels: Tokens) -> None:
    """Note where boards are compared with levels of another kind."""
    if work.plan.held_out is not None:
        ours, theirs = ("x".join(map(str, each.shape[1:])) for each in (work.sample.boards, levels))
        if ours != theirs:
            work.notes["reference"] = (
                f"boards of {ours} are compared with levels of {theirs}, and the size alone makes their patterns and "
                "tiles differ"
            )
        return
    means = count_tiles(levels).means
    if not np.allclose(list(means.values()), list(work.reference.tiles.values()), atol=1e-6):
        work.notes["reference"] = (
            "patterns, tiles and held-out levels are those of Boxoban's medium set, 10x10, and not of these "
            "levels: --corpus and --held-out compare with a corpus of your own"
        )


def _board_measures(work: Work, count: int) -> BoardMeasures:
    def make() -> BoardMeasures:
        with bar("rating", work.progress) as show:
            return measure_boards(work.sample.boards[:count], on_progress=show)

    return work.value("board-measures", BoardMeasures, make, rated=count)


def _gallery(work: Work, results: Results, mending: Mending) -> Gallery:
    sample, plan, model = work.sample, work.plan, work.model
    chosen, found = gallery.first_solved(results), Gallery()
    if model is None:
        work.notes["denoising"] = "only finished boards were given, so how they were sampled is not known"
    elif chosen:
        config = model.sampler(work.generator.sampler)
        found = work.value(
            "denoising", Gallery, lambda: gallery.denoising(model, chosen, plan.seed, config, LIMITS)
        )
    solutions = None
    if chosen:
        boards = sample.boards[chosen]
        solutions = work.value("solutions", Plate, lambda: gallery.solutions(boards, LIMITS))
    return replace(
        found,
        solutions=solutions,
        repaired=gallery.repaired(sample, mending),
        first=work.value("first", Plate, lambda: gallery.first_boards(sample.boards, LIMITS)),
    )


def _samplers(work: Work) -> dict[str, list[Setting]]:
    """Other samplers of the model: temperatures, orders, steps, Gibbs sweeps, and the critic."""
    if work.model is None or not work.plan.sweep:
        why = "only finished boards were given" if work.model is None else "--sweep 0"
        work.notes["samplers"] = f"other samplers were not tried: {why}"
        return {}
    found = {}
    for comparison, configs in sampler_configs(work.model).items():
        found[comparison] = [_setting(work, work.model, config) for config in configs]
        if any(each.solvable.count and each.median_effort is None for each in found[comparison]):
            work.notes["median effort"] = (
                "where it is a dash, the searches for the efforts of too many boards hit their limits"
            )
        if any(each.jsd_boards is None for each in found[comparison]):
            work.notes["JSD ratio"] = (
                f"a divergence needs {SIZES[0]} boards of each sampler (--sweep), and as many held-out levels"
            )
    return found


def _setting(work: Work, model: Model, config: SamplerConfig) -> Setting:
    cells, n = len(interior_cells(model.denoiser)), work.plan.sweep
    config = explicit(config, cells)
    name = (
        f"sampler-{config.temperature:g}-{config.order}-{config.steps}-{config.sweeps}"
        + "-critic" * config.critic
    )
    own = explicit(model.sampler(work.generator.sampler), cells)
    if config == own and n <= work.plan.samples:
        sample = work.sample.first(n)
    else:
        # Two comparisons may share a sampler, and then its boards.
        sample = sample_model(model, n, work.plan.seed, config, work.stages, name, work.progress)
    bound = model.card["critic"] if config.critic else None
    return work.value(
        name,
        Setting,
        lambda: measure_setting(
            sample.boards, config, cells, work.reference, LIMITS, sample.mean_attempts, bound
        ),
        boards=sample.fingerprint,
        sampler=config,
    )
