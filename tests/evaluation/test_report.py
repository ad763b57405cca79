"""A report holds every measure, says what is missing, and comes out the same however often it was interrupted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban import errors
from maskoban.boards import Tokens, write
from maskoban.boards.corpus import load
from maskoban.boards.synth import synthesize
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.evaluation import measure
from maskoban.evaluation.evaluate import evaluate
from maskoban.evaluation.figures import FIGURES
from maskoban.evaluation.measure import Plan
from maskoban.evaluation.measures.distances import measure_distances, nearest_distances, same_puzzles
from maskoban.evaluation.measures.samplers import Setting
from maskoban.evaluation.page import render
from maskoban.evaluation.report import Report, read_report
from maskoban.evaluation.stages import from_plain
from maskoban.solving import Limits, solve_many
from tests.waiting import LIMIT

from .boards import EASY, EXPERT, NO_PLAYER, ONE_WALL, SOLVABLE, drawn
from .recall import recalling_model

#: Too small for a 3x3 pattern.
TINY = drawn("@$.#\n####")

Whole = tuple[Path, Report]


def contents(folder: Path) -> dict[str, bytes]:
    """What a reader gets: everything but the stages."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "stages"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_everything_is_there(whole_report: Whole) -> None:
    folder, made = whole_report
    assert set(made.notes) == {
        "reference",
        "JSD ratio",
    }  # its corpus and sweeps are small ones of the tests
    assert [field.name for field in fields(Report) if not getattr(made, field.name)] == []
    expected = {"report.html", "report.json"}
    names = [*FIGURES, "range-walls-effort", "range-pushes-box_changes"]
    expected |= {f"figures/{name}.{ending}" for name in names for ending in ("svg", "png", "json")}
    assert set(contents(folder)) == expected
    assert read_report(folder / "report.json") == made


def test_numbers_are_those_of_the_plain_functions(whole_report: Whole, plan: Plan) -> None:
    _, made = whole_report
    boards = recalling_model().sample(plan.samples, plan.seed, plan.sampler)
    solved = int(solve_many(boards).solved.sum())
    assert made.solvability.solvable.count == solved
    assert 0 < solved < plan.samples
    levels = load(plan.corpus)
    expected = measure_distances(nearest_distances(boards, levels), len(levels), same_puzzles(boards, levels))
    assert made.distances == expected
    assert sum(made.culprits.histogram) == made.culprits.walls
    assert [each.boards for each in made.temperature] == [plan.sweep] * 6


def test_what_a_board_takes_is_measured(whole_report: Whole, plan: Plan) -> None:
    folder, made = whole_report
    attempts = recalling_model().trajectory(plan.samples, plan.seed, plan.sampler).attempts
    assert attempts.max() > 1
    source = made.source
    assert (source.critic, source.attempts) == (1.0, attempts.mean())
    # In every attempt 25 cells are revealed and redrawn once, and the board is judged.
    assert source.evaluations == pytest.approx(51 * attempts.mean())
    page = (folder / "report.html").read_text()
    assert "one cell a step; then 1 Gibbs sweep; then rejection sampling with a critic" in page
    again = f"which rejects {1 - 1 / attempts.mean():.0%} of the boards and never saw a solver."
    assert again.replace("%", " %") in page
    told = f"A board takes {source.evaluations:.1f} evaluations of the network in {attempts.mean():.2f} attempts."
    assert told in page


def test_the_critic_is_compared(whole_report: Whole, plan: Plan) -> None:
    folder, made = whole_report
    ways = made.critic
    assert [(each.critic, each.sweeps) for each in ways] == [(None, 0), (None, 1), (1.0, 0), (1.0, 1)]
    assert [each.evaluations for each in ways[:2]] == [25, 50]
    for sweeps, way in enumerate(ways[2:]):
        attempts = (
            recalling_model()
            .trajectory(plan.sweep, plan.seed, SamplerConfig(sweeps=sweeps, critic=True))
            .attempts
        )
        assert way.attempts == attempts.mean()
        assert way.evaluations == pytest.approx((25 + 25 * sweeps + 1) * attempts.mean())
    # Every other comparison is made without it.
    others = (made.temperature, made.order, made.steps, made.sweeps)
    assert {each.critic for comparison in others for each in comparison} == {None}
    cost = json.loads((folder / "figures" / "cost.json").read_text())
    assert from_plain(list[Setting], cost["critic"]) == ways[2:]
    assert ", 1 sweep, critic</" in (folder / "report.html").read_text()


def test_drawings_with_and_without_the_critic_are_kept_apart(whole_report: Whole) -> None:
    stages = whole_report[0] / "stages"
    kept = {}
    for name in ("sampler-1-uniform-25-0", "sampler-1-uniform-25-0-critic"):
        with np.load(stages / f"{name}-000000.npz") as file:
            kept[name] = {key: file[key] for key in file}
    plain_way, critic_way = kept.values()
    assert (plain_way["attempts"] == 1).all()
    assert (critic_way["attempts"] > 1).any()
    at_once = critic_way["attempts"] == 1
    assert (plain_way["boards"] == critic_way["boards"])[at_once].all()
    assert (plain_way["boards"] != critic_way["boards"]).any()


def test_a_sampler_with_fewer_boards_says_so(whole_report: Whole) -> None:
    made = whole_report[1]
    assert "boards, JSD at" not in render(made, [])
    few, many = made.order
    page = render(replace(made, order=[few, replace(many, boards=1024, jsd_boards=1000)]), [])
    assert "confidence (1,024 boards, JSD at 1,000)" in page
    assert "uniform (" not in page


def test_without_a_critic_there_is_nothing_to_say_of_one(tmp_path: Path) -> None:
    made = evaluate(recalling_model(critic=False), tmp_path, Plan(samples=5, sweep=2, corpus="nowhere"))
    assert made.critic == []
    source = made.source
    assert (source.critic, source.attempts, source.evaluations) == (None, 1.0, 25.0)
    page = (tmp_path / "report.html").read_text()
    assert "at temperature 1, one cell a step.\nAll sampled boards" in page
    assert "A board takes 25 evaluations of the network." in page
    assert "critic tells" not in page
    assert json.loads((tmp_path / "figures" / "cost.json").read_text())["critic"] == []


def test_a_critic_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match="model 'recall' has no critic"):
        evaluate(recalling_model(critic=False), tmp_path, Plan(samples=5, sampler=SamplerConfig(critic=True)))


def test_a_second_run_makes_nothing_and_changes_nothing(whole_report: Whole, plan: Plan) -> None:
    folder, _ = whole_report
    before, said = contents(folder), []
    evaluate(recalling_model(), folder, plan, said.append)
    assert contents(folder) == before
    assert all(sentence.endswith("as before") or sentence.startswith("figure ") for sentence in said)


def test_killed_at_every_stage_it_comes_out_the_same(
    whole_report: Whole, run_folder: Path, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "tests.evaluation.killed_again_and_again", tmp_path, run_folder],
        cwd=root, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stages = len(list((whole_report[0] / "stages").iterdir()))
    assert int(done.stdout) >= stages
    assert contents(tmp_path) == contents(whole_report[0])


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "b.npz", boards=drawn(SOLVABLE, ONE_WALL))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(measure, "mend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(tmp_path / "b.npz", tmp_path / "report")
    said: list[str] = []
    evaluate(tmp_path / "b.npz", tmp_path / "report", say=said.append)
    assert said[:2] == ["verdicts: as before", "mending ..."]


def test_figures_of_a_report_that_was_here_before_are_gone(tmp_path: Path) -> None:
    kept = tmp_path / "figures" / "mine.svg"
    kept.parent.mkdir()
    for name in ("training.svg", "temperature.json", "mine.svg"):
        (kept.parent / name).touch()
    np.savez(tmp_path / "boards.npz", boards=drawn(SOLVABLE, ONE_WALL))
    evaluate(tmp_path / "boards.npz", tmp_path)
    figures = {path.stem for path in kept.parent.iterdir()}
    assert figures & {"training", "temperature", "mine", "key"} == {"mine", "key"}


def test_boards_alone_are_measured_as_far_as_they_go(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", boards=drawn(SOLVABLE, ONE_WALL, NO_PLAYER))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report", Plan(corpus=str(tmp_path / "no-corpus")))
    assert made.source.name == "b"
    assert made.solvability.solvable.count == 1
    assert made.repairs.one_wall.count == 1
    assert set(made.notes) == {
        "culprits", "distances", "denoising", "samplers", "patterns", "reference", "training",
    }  # fmt: skip
    assert made.notes["patterns"] == "patterns need at least 250 boards, and there are 3"
    assert "tiles a board" in (tmp_path / "report" / "report.html").read_text()  # what can be measured stays
    assert "nearest neighbours need the levels" in made.notes["distances"]
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("Not measured: ") == len(made.notes) - 1
    assert page.count("Read with care: ") == 1


def test_a_corpus_that_turns_up_is_used(tmp_path: Path, run_folder: Path) -> None:
    model, corpus = recalling_model(), tmp_path / "corpus.npz"
    plan = Plan(samples=20, sweep=0, corpus=str(corpus))
    assert "distances" in evaluate(model, tmp_path / "report", plan).notes
    corpus.write_bytes((run_folder / "corpus.npz").read_bytes())
    assert evaluate(model, tmp_path / "report", plan).distances is not None


def test_a_corpus_that_grows_is_looked_through_again(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write(tmp_path / "boards.npz", drawn(SOLVABLE))
    for number, board in enumerate((ONE_WALL, SOLVABLE)):
        write(corpus / f"{number}.xsb", drawn(board))
        made = evaluate(tmp_path / "boards.npz", tmp_path / "report", Plan(corpus=str(corpus)))
        assert made.distances.corpus_levels == number + 1
        assert made.distances.exact == number


def test_boards_of_a_file_are_measured_like_those_of_the_model(whole_report: Whole, tmp_path: Path) -> None:
    folder, made = whole_report
    parts = [dict(np.load(path)) for path in sorted((folder / "stages").glob("boards-0*.npz"))]
    names = ("boards", "probabilities")
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    np.savez(tmp_path / "elsewhere.npz", **arrays)
    again = evaluate(tmp_path / "elsewhere.npz", tmp_path / "report")
    for name in ("solvability", "repairs", "culprits", "difficulty", "tiles", "patterns", "duplicates"):
        assert getattr(again, name) == getattr(made, name)
    assert again.gallery.repaired == made.gallery.repaired


def test_nothing_but_malformed_boards(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", boards=drawn(NO_PLAYER), probabilities=np.ones((1, 4, 7), np.float32))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report")
    assert made.notes["difficulty"] == "no board was solved, so none has a difficulty"
    assert made.culprits.median is None
    assert "No board here is repaired by one wall." in (tmp_path / "report" / "report.html").read_text()


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to solve the expert board, and to know that it is one, but not to find its effort."""
    monkeypatch.setattr(measure, "LIMITS", Limits(states=4_500))


@pytest.mark.usefixtures("small_limits")
def test_boards_whose_effort_is_unknown_are_counted_and_told_of(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", boards=drawn(EASY, EXPERT, EASY))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report")
    assert made.solvability.solvable.count == 3
    quarters = made.difficulty.quarters
    assert [share.count for share in quarters.values()] == [2, 0, 0, 1]
    told = (
        "the effort of 1 of the 3 solved boards is not known, because the search for it hit its limit "
        "(expert all the same: 1); effort and pushes are those of the other 2"
    )
    assert made.notes["efforts"] == told
    assert f"Read with care: {told}." in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.usefixtures("small_limits")
def test_a_report_without_any_known_effort_is_a_report(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", boards=drawn(EXPERT))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report")
    assert made.difficulty.quarters["expert"].count == 1
    figures = {path.stem for path in (tmp_path / "report" / "figures").iterdir()}
    assert figures & {"difficulty", "quarters"} == {"quarters"}


def test_where_not_even_a_quarter_is_known_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LIMITS", Limits(states=4_000))
    np.savez(tmp_path / "b.npz", boards=drawn(EXPERT))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report")
    why = "every search for an effort hit its limit, so no difficulty is known"
    assert made.notes["difficulty"] == why
    assert f"Not measured: {why}." in (tmp_path / "report" / "report.html").read_text()


def test_a_median_effort_that_is_unknown_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "LIMITS", Limits(states=12))
    made = evaluate(recalling_model(), tmp_path, Plan(samples=5, sweep=5, corpus="nowhere"))
    assert None in {each.median_effort for each in made.order}
    assert "hit their limits" in made.notes["median effort"]
    assert made.notes["median effort"] in (tmp_path / "report.html").read_text()


def test_a_sweep_too_small_for_a_divergence_says_so(tmp_path: Path) -> None:
    made = evaluate(recalling_model(), tmp_path, Plan(samples=5, sweep=5, corpus="nowhere"))
    assert {each.jsd_ratio for each in made.temperature} == {None}
    assert "a divergence needs 250 boards of each sampler" in made.notes["JSD ratio"]
    assert f"Not measured: {made.notes['JSD ratio']}." in (tmp_path / "report.html").read_text()


def test_a_place_that_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MaskobanError, match="cannot be written: Not a directory"):
        evaluate(tmp_path / "no-boards.npz", tmp_path / "file" / "report")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(MaskobanError, match=r"maskoban\[report\]"):
        evaluate(tmp_path / "no-boards.npz", tmp_path / "report")


def test_a_corpus_of_ones_own_is_what_boards_are_read_against(tmp_path: Path) -> None:
    levels = synthesize(900, height=7, width=9, boxes=2, seed=5)
    corpus, held_out = levels[:600], levels[600:]
    write(tmp_path / "corpus.npz", corpus)
    write(tmp_path / "held-out.npz", held_out)
    own = Plan(corpus=str(tmp_path / "corpus.npz"), held_out=str(tmp_path / "held-out.npz"))
    # Held-out levels as the generator: in every measure the floor itself.
    made = evaluate(tmp_path / "held-out.npz", tmp_path / "own", own)
    assert "reference" not in made.notes
    assert made.corpus.tiles["wall"] == pytest.approx((corpus == 0).sum((1, 2)).mean())
    assert made.patterns.ratio == {250: 1.0}
    assert made.distances.histogram == made.held_out.histogram
    efforts, pushes = (made.difficulty.effort, made.difficulty.pushes)
    theirs = solve_many(corpus, "effort")
    assert made.difficulty.against == "the corpus"
    assert efforts.corpus_mean == pytest.approx(theirs.expanded.mean(), abs=1e-4)
    # The quarters are the corpus's own, so about a quarter of levels like it is in each.
    assert all(0.15 < share.share < 0.35 for share in made.difficulty.quarters.values())
    assert pushes.corpus_percentiles[100] == theirs.pushes.max()
    assert "Read with care" not in (tmp_path / "own" / "report.html").read_text()

    other = evaluate(tmp_path / "held-out.npz", tmp_path / "boxoban", Plan(corpus=own.corpus))
    assert other.notes["reference"].startswith("patterns, tiles and held-out levels are those of Boxoban's")
    assert "Read with care" in (tmp_path / "boxoban" / "report.html").read_text()


def test_copies_that_were_turned_and_mirrored_are_found(tmp_path: Path) -> None:
    levels = synthesize(300, height=7, width=7, boxes=2, seed=5)
    write(tmp_path / "corpus.npz", levels[:200])
    boards = np.concatenate([levels[:20, :, ::-1], levels[20:30].transpose(0, 2, 1), levels[200:250]])
    np.save(tmp_path / "boards.npy", boards)
    plan = Plan(corpus=str(tmp_path / "corpus.npz"))
    distances = evaluate(tmp_path / "boards.npy", tmp_path / "report", plan).distances
    assert 30 <= distances.same_puzzle.count < 35
    assert distances.exact < 5
    assert "copies turned, mirrored or shifted too" in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.parametrize(("levels", "ratios"), [(250, {250: None}), (500, {250: 1.0, 500: None})])
def test_a_corpus_held_out_of_itself_leaves_a_dash_for_the_ratio(
    tmp_path: Path, levels: int, ratios: dict[int, float | None]
) -> None:
    corpus = str(tmp_path / "corpus.npz")
    write(corpus, synthesize(levels, height=7, width=7, boxes=1))
    nowhere = Plan(corpus=corpus, held_out=str(tmp_path / "nowhere.npz"))
    with pytest.raises(MaskobanError, match=r"^[^:]*nowhere"):  # and not for want of neighbours
        evaluate(corpus, tmp_path / "report", nowhere)
    made = evaluate(corpus, tmp_path / "report", Plan(corpus=corpus, held_out=corpus))
    assert made.patterns.ratio == ratios
    why = (
        f"there is no ratio at {levels} boards, because as many held-out levels have exactly the patterns of the "
        "corpus"
    )
    assert made.notes["pattern ratio"] == why
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"Read with care: {why}." in page
    (row,) = re.findall(rf'<tr><th scope="row">{levels}</th>.*?</tr>', page)
    assert row.endswith('<td class="number">–</td></tr>')


@pytest.mark.parametrize(
    ("boards", "own", "why"),
    [
        (synthesize(300, 7, 7, 1), synthesize(100, 7, 7, 1), "read against at least 250 held-out levels"),
        (np.repeat(TINY, 300, axis=0), None, "3x3 patterns need boards of at least 3x3, and these are 2x4"),
        (
            np.repeat(TINY, 300, axis=0),
            np.repeat(TINY, 300, axis=0),
            "3x3 patterns need boards of at least 3x3",
        ),
    ],
    ids=["few held-out levels", "small boards", "small levels"],
)
def test_patterns_that_cannot_be_measured_leave_a_note_in_a_report(
    tmp_path: Path, boards: Tokens, own: Tokens | None, why: str
) -> None:
    np.savez(tmp_path / "b.npz", boards=boards)
    plan = Plan(corpus="nowhere")
    if own is not None:
        write(tmp_path / "levels.npz", own)
        plan = Plan(corpus=str(tmp_path / "levels.npz"), held_out=str(tmp_path / "levels.npz"))
    made = evaluate(tmp_path / "b.npz", tmp_path / "report", plan)
    assert made.patterns is None
    assert why in made.notes["patterns"]
    assert made.notes["patterns"] in (tmp_path / "report" / "report.html").read_text()


def test_boards_read_against_levels_of_another_size_are_told_of(tmp_path: Path) -> None:
    np.savez(tmp_path / "b.npz", boards=synthesize(250, 7, 7, 1))
    write(tmp_path / "levels.npz", synthesize(300, 8, 9, 1))
    levels = str(tmp_path / "levels.npz")
    made = evaluate(tmp_path / "b.npz", tmp_path / "report", Plan(corpus=levels, held_out=levels))
    why = "boards of 7x7 are compared with levels of 8x9, and the size alone makes their patterns and tiles differ"
    assert made.notes["reference"] == why
    assert f"Read with care: {why}." in (tmp_path / "report" / "report.html").read_text()
