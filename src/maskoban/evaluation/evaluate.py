"""Write the report of one generator or of several: ``report.html``, ``report.json`` and ``figures/``.

Stages are kept in ``stages/``, so an interrupted report resumes and comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import maskoban
from maskoban._util.files import atomic_file, file_errors
from maskoban._util.progress import bar
from maskoban.boards import corpus as corpora
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError, need
from maskoban.evaluation.measure import Generator, Plan, Work, measure, read_log, sample_generator
from maskoban.evaluation.measures.distances import training_levels
from maskoban.evaluation.reference import Reference, load_reference, measure_reference
from maskoban.evaluation.report import Comparison, Report, to_json
from maskoban.evaluation.stages import Stages

Say = Callable[[str], None]


def evaluate(
    source: Generator | Model | str | Path,
    out: str | Path,
    plan: Plan | None = None,
    say: Say = lambda line: None,
    progress: bool = False,
) -> Report:
    """Measure a model, or the boards of a file, and write the report.

    ``say`` gets a line for every stage; ``progress`` shows bars on the error stream.

    >>> evaluate("boards.npz", "report").solvability.solvable.share  # doctest: +SKIP
    0.827
    """
    plan, folder = plan or Plan(), check_output(out)
    if isinstance(source, Model):
        source = Generator(source.name, source, plan.sampler)
    elif not isinstance(source, Generator):
        source = Generator(Path(source).stem, Path(source))
    stages, reference = Stages(folder / "stages", say), reference_of(plan, progress)
    # First of all, because a log that cannot be read is better refused before the work.
    training = read_log(plan, stages)
    notes = {} if training else {"training": "no log of a training run was given (--log)"}
    sample = sample_generator(source, plan, stages, progress)
    report = measure(Work(source, sample, plan, reference, stages, progress, notes), training)
    write_report(report, folder, plan.axes, say=say)
    return report


def compare(
    generators: Sequence[Generator],
    out: str | Path,
    plan: Plan | None = None,
    say: Say = lambda line: None,
    progress: bool = False,
) -> Comparison:
    """Measure several generators and write one report in which they stand side by side.

    Diversity is that of as many boards of each as the smallest sample has.

    >>> compare([Generator("synth", "synth"), Generator("random", "random")], "report")  # doctest: +SKIP
    """
    plan, names = plan or Plan(), [each.name for each in generators]
    if len(set(names)) < len(names):
        raise MaskobanError(f"generators need different names, got {', '.join(names)}")
    folder, reference = check_output(out), reference_of(plan, progress)
    works = []
    for each in generators:
        stages = Stages(folder / "stages" / each.name, lambda line, name=each.name: say(f"{name}: {line}"))  # type: ignore[misc]
        sample = sample_generator(each, plan, stages, progress)
        works.append(Work(each, sample, plan, reference, stages, progress))
    count = min(len(work.sample.boards) for work in works)
    reports = {work.generator.name: measure(work, count=count) for work in works}
    comparison = Comparison(maskoban.__version__, reports)
    write_report(comparison, folder, plan.axes, say=say)
    return comparison


def reference_of(plan: Plan, progress: bool = False) -> Reference:
    """What boards are compared with: the shipped numbers, or those of a corpus and its held-out levels."""
    if plan.held_out is None:
        return load_reference()
    corpus, held_out = training_levels(plan.corpus), corpora.load(plan.held_out)
    with bar("comparing held-out levels", progress) as show:
        return measure_reference(corpus, held_out, show)


def check_output(out: str | Path) -> Path:
    """The folder of a report, made if need be. Raises before the long work what would stop the writing after it.

    >>> check_output("/dev/null/report")
    Traceback (most recent call last):
        ...
    maskoban.errors.FileError: /dev/null/report: cannot be written: Not a directory
    """
    need("a report", "report", "matplotlib", "jinja2")
    folder = Path(out)
    with file_errors(out, "written"):
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    for left_behind in folder.glob("**/.*.part"):  # by a process that was killed while it wrote
        left_behind.unlink()
    return folder


def write_report(
    report: Report | Comparison,
    folder: Path,
    axes: Sequence[tuple[str, str]] = Plan.axes,
    keep: Callable[[str], bool] = lambda file: True,
    numbers: bool = True,
    page: bool = True,
    say: Say = lambda line: None,
) -> None:
    """The ``page``, the ``numbers`` and the figures of a report; of the figures only the files to ``keep``."""
    from maskoban.evaluation.figures import draw_figures, is_figure, save_figure
    from maskoban.evaluation.page import render

    pictures = []
    for picture in draw_figures(report, axes):
        say(f"figure {picture.name}")
        save_figure(picture, folder / "figures", keep)
        pictures.append(picture)
    names = {picture.name for picture in pictures}
    for path in (folder / "figures").iterdir():  # of a report that was here before, and had more
        if path.stem not in names and is_figure(path.stem):
            path.unlink()
    texts = {"report.json": to_json(report)} if numbers else {}
    texts |= {"report.html": render(report, pictures)} if page else {}
    for name, text in texts.items():
        with atomic_file(folder / name) as file:
            file.write(text.encode())
