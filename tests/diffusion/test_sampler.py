"""Algorithm 2, completion and polish, against denoisers of known distribution."""

from __future__ import annotations

import math
from itertools import pairwise
from threading import Barrier, current_thread, main_thread

import numpy as np
import pytest
from numpy.typing import NDArray

from maskoban.boards import Level, Tokens
from maskoban.boards.tiles import MASK, TILES, WALL
from maskoban.diffusion.denoiser import blank_boards, interior
from maskoban.diffusion.rng import uniforms
from maskoban.diffusion.sampler import (
    AttemptEnd,
    SamplerConfig,
    UnmaskStep,
    lowest,
    register_order,
    sample_steps,
    sample_tiles,
    softmax,
)
from maskoban.diffusion.schedule import masked_share
from maskoban.diffusion.trajectory import Trajectory, sample_boards
from maskoban.errors import MaskobanError
from tests.diffusion.dummies import Dummy, Joint, agrees, giving_up


def some_distributions(cells: int) -> NDArray[np.float64]:
    """A different distribution a cell, over seven tiles, some of them impossible."""
    p = np.random.default_rng(cells).dirichlet(np.ones(TILES), size=cells)
    p[::3, 5] = 0
    return p / p.sum(1, keepdims=True)


def recorded(
    dummy: Dummy | Joint, boards: Tokens, seed: int, config: SamplerConfig | None = None
) -> tuple[Tokens, Trajectory]:
    sampled = sample_boards(dummy, boards, seed, config, record=True)
    return sampled.boards, sampled


# -- what is sampled


@pytest.mark.parametrize("steps", [None, 4, 1])
def test_every_cell_follows_its_distribution(steps: int | None) -> None:
    p = some_distributions(9)
    dummy = Dummy(p, 3, 3)
    boards = sample_boards(
        dummy, blank_boards(dummy, 20_000), seed=1, config=SamplerConfig(steps=steps)
    ).boards
    for cell in range(9):
        counts = np.bincount(boards.reshape(-1, 9)[:, cell], minlength=TILES)
        assert agrees(counts, p[cell])


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_raises_probabilities_to_its_inverse(temperature: float) -> None:
    p = some_distributions(1)
    dummy = Dummy(p, 1, 1)
    boards = sample_boards(
        dummy, blank_boards(dummy, 20_000), seed=2, config=SamplerConfig(temperature=temperature)
    ).boards
    sharpened = p[0] ** (1 / temperature)
    assert agrees(np.bincount(boards.ravel(), minlength=TILES), sharpened / sharpened.sum())


def test_the_coldest_drawing_takes_the_most_probable_tile() -> None:
    p = some_distributions(1)
    dummy = Dummy(p, 1, 1)
    boards = sample_boards(
        dummy, blank_boards(dummy, 9), seed=2, config=SamplerConfig(temperature=1e-310)
    ).boards
    assert (boards == p[0].argmax()).all()


def test_one_cell_at_a_time_samples_a_joint_distribution_exactly() -> None:
    joint = Joint(0)
    boards = sample_boards(joint, blank_boards(joint, 40_000), seed=3).boards
    assert agrees(joint.counts(boards), joint.p)


def test_all_cells_at_once_does_not() -> None:
    """Cells of one step do not see each other: the price of fewer steps, and proof that the test above can fail."""
    joint = Joint(0)
    boards = sample_boards(joint, blank_boards(joint, 40_000), seed=3, config=SamplerConfig(steps=1)).boards
    assert not agrees(joint.counts(boards), joint.p)


def test_polish_leaves_the_models_distribution_in_place() -> None:
    joint = Joint(1)
    for sweeps in (1, 3):
        boards = sample_boards(
            joint, blank_boards(joint, 40_000), seed=4, config=SamplerConfig(sweeps=sweeps)
        ).boards
        assert agrees(joint.counts(boards), joint.p)


def test_polish_mends_what_too_few_steps_broke() -> None:
    joint = Joint(2)

    def distance(sweeps: int) -> float:
        boards = sample_boards(
            joint, blank_boards(joint, 40_000), seed=5, config=SamplerConfig(steps=1, sweeps=sweeps)
        ).boards
        return 0.5 * float(np.abs(joint.counts(boards) / 40_000 - joint.p).sum())

    assert distance(4) < 0.3 * distance(0)


def test_polish_redraws_every_cell_once_a_sweep_in_a_new_order() -> None:
    joint = Joint(0)
    _, commits = recorded(joint, blank_boards(joint, 200), 6, SamplerConfig(sweeps=2))
    reveal, first, second = commits.cell[:, :4], commits.cell[:, 4:8], commits.cell[:, 8:]
    for part in (reveal, first, second):
        assert (np.sort(part, axis=1) == np.arange(4)).all()
    assert (reveal != first).any(1).mean() > 0.8
    assert (first != second).any(1).mean() > 0.8


# -- in which order


def papers_counts(masked: int, steps: int) -> list[int]:
    """Algorithm 2's n = max(ceil(|M| / (T - step)), 1), step by step until nothing is masked."""
    counts = []
    for step in range(steps):
        if masked == 0:
            break
        n = max(math.ceil(masked / (steps - step)), 1)
        counts.append(n)
        masked -= n
    assert masked == 0
    return counts


@pytest.mark.parametrize("order", ["uniform", "confidence"])
@pytest.mark.parametrize("steps", [1, 2, 4, 5, 8, 9, 20])
def test_each_step_reveals_as_many_cells_as_algorithm_2_says(steps: int, order: str) -> None:
    dummy = Dummy(some_distributions(9), 3, 3)
    boards = blank_boards(dummy, 4)
    boards[1, 0] = WALL  # 6 masked
    boards[2, :2] = WALL  # 3 masked
    boards[3] = WALL  # none
    _, commits = recorded(dummy, boards, 1, SamplerConfig(steps=steps, order=order))  # type: ignore[arg-type]
    for i, masked in enumerate((9, 6, 3, 0)):
        mine = commits.step[i][commits.cell[i] >= 0]
        assert np.bincount(mine).tolist() == papers_counts(masked, steps)


def test_the_order_of_reveals_is_uniform() -> None:
    dummy = Dummy(some_distributions(9), 3, 3)
    _, commits = recorded(dummy, blank_boards(dummy, 18_000), 8)
    for place in (0, 4, 8):
        assert agrees(np.bincount(commits.cell[:, place], minlength=9), np.full(9, 1 / 9))
    pairs = np.bincount(commits.cell[:, 0] * 9 + commits.cell[:, 1], minlength=81).reshape(9, 9)
    assert agrees(pairs.ravel(), ((1 - np.eye(9)) / 72).ravel())


@pytest.mark.parametrize("steps", [4, 2])
def test_confidence_order_commits_the_most_probable_of_fresh_candidates(steps: int) -> None:
    """The slow and obvious way: a board at a time, a candidate for every cell in every step."""
    joint = Joint(3)
    sampled = sample_boards(
        joint, blank_boards(joint, 60), 9, SamplerConfig(order="confidence", steps=steps)
    ).boards
    for board in range(60):
        tokens = np.full((1, 4), MASK, np.uint8)
        for step in range(steps):
            u = uniforms(9, np.array([board]), 2**19 + step, 4)[0]
            p = softmax(joint.logits(tokens, np.array([4]), np.arange(4)[None]), 1.0)[0]
            candidates = [int(sample_tiles(p[cell], u[cell])) for cell in range(4)]
            masked = [cell for cell in range(4) if tokens[0, cell] == MASK]
            best = sorted(masked, key=lambda cell: -p[cell, candidates[cell]])
            for cell in best[: 4 // steps]:
                tokens[0, cell] = candidates[cell]
        assert (sampled[board].ravel() == tokens).all()


def test_confidence_order_drowns_boards_in_the_likeliest_tile() -> None:
    """With k cells left, one of k candidates is a wall with probability 1 - 0.4^k, and then a wall is committed."""
    dummy = Dummy(np.tile([0.6, 0.4, 0, 0, 0, 0, 0], (4, 1)), 2, 2)
    boards = sample_boards(dummy, blank_boards(dummy, 20_000), 5, SamplerConfig(order="confidence")).boards
    walls = np.ones(1)  # the distribution of their number
    for left in range(1, 5):
        walls = np.convolve(walls, [0.4**left, 1 - 0.4**left])
    assert agrees(np.bincount((boards == WALL).sum((1, 2)), minlength=5), walls)
    assert (boards == WALL).mean() > 0.8


def test_on_another_schedule_the_network_is_given_the_time_when_so_many_cells_are_masked() -> None:
    dummy = Dummy(np.full((9, TILES), 1 / TILES), 3, 3)
    dummy.steps, dummy.schedule = 1000, "cosine"
    sample_boards(dummy, blank_boards(dummy, 1), 1)
    hidden = masked_share("cosine", 1000)
    for left, t in zip(range(9, 0, -1), dummy.seen, strict=True):
        assert 9 * hidden[int(t[0])] == pytest.approx(left, abs=0.01)


def test_the_network_is_given_the_papers_time() -> None:
    dummy = Dummy(some_distributions(9), 3, 3)
    sample_boards(dummy, blank_boards(dummy, 2), seed=1)
    assert [t.tolist() for t in dummy.seen] == [[9 - step] * 2 for step in range(9)]

    dummy = Dummy(some_distributions(9), 3, 3)
    dummy.steps = 90  # trained with ten times as many
    sample_boards(dummy, blank_boards(dummy, 1), seed=1, config=SamplerConfig(steps=3, sweeps=1))
    assert [int(t[0]) for t in dummy.seen] == [90, 60, 30] + [10] * 9


# -- what stays


def test_nothing_revealed_is_ever_revised() -> None:
    dummy = Dummy(some_distributions(9), 3, 3)
    sampled, commits = recorded(dummy, blank_boards(dummy, 50), 3, SamplerConfig(steps=4))
    frames = commits.frames()
    assert frames.shape == (5, 50, 3, 3)
    for before, after in pairwise(frames):
        shown = before != MASK
        assert (after[shown] == before[shown]).all()
        assert (after != MASK).sum() > shown.sum()
    assert (frames[0] == MASK).all()
    assert (frames[-1] == sampled).all()


@pytest.mark.parametrize(
    "config", [SamplerConfig(), SamplerConfig(steps=3, sweeps=2), SamplerConfig(order="confidence", sweeps=1)]
)
def test_completion_keeps_every_given_cell_of_any_subset(config: SamplerConfig) -> None:
    rng = np.random.default_rng(4)
    dummy = Dummy(some_distributions(6), 4, 5, margin=1)
    boards = blank_boards(dummy, 200)
    given = rng.random(boards.shape) < rng.random((200, 1, 1))  # from hardly any to nearly all
    boards = np.where(given & (boards == MASK), rng.integers(0, TILES, boards.shape), boards).astype(np.uint8)
    assert {int(n) for n in (boards == MASK).sum((1, 2))} == set(range(7))
    kept = boards.copy()
    sampled, commits = recorded(dummy, boards, 5, config)
    assert (boards == kept).all()  # what the caller gave is not written to
    assert (sampled[boards != MASK] == boards[boards != MASK]).all()
    assert (sampled != MASK).all()
    assert np.isnan(commits.probability()[boards != MASK]).all()


def test_completion_follows_the_conditional_distribution() -> None:
    """Given "#?" over "? " of the joint toy, the rest is sampled from p(rest | given)."""
    joint = Joint(3)
    boards = np.broadcast_to(Level.parse("#?\n? ").tokens, (20_000, 2, 2)).copy()
    for config in (SamplerConfig(), SamplerConfig(sweeps=2)):
        sampled = sample_boards(joint, boards, seed=6, config=config).boards
        fits = (joint.states[:, 0] == 0) & (joint.states[:, 3] == 1)
        assert agrees(joint.counts(sampled), np.where(fits, joint.p, 0))


# -- the record


def test_the_record_tells_cells_tiles_and_probabilities() -> None:
    p = some_distributions(6)
    dummy = Dummy(p, 4, 5, margin=1)
    inside = [6, 7, 8, 11, 12, 13]
    sampled, commits = recorded(dummy, blank_boards(dummy, 30), 7, SamplerConfig(temperature=0.7, sweeps=1))
    assert (commits.start == blank_boards(dummy, 30)).all()
    assert commits.cell.shape == (30, 12)
    sharpened = p ** (1 / 0.7)
    sharpened /= sharpened.sum(1, keepdims=True)
    expected = sharpened[np.searchsorted(inside, commits.cell)]
    np.testing.assert_allclose(commits.probabilities, expected, rtol=1e-5, atol=1e-9)
    assert (commits.frames()[-1] == sampled).all()

    last = commits.probability().reshape(30, -1)
    assert np.isnan(np.delete(last, inside, axis=1)).all()
    tiles = sampled.reshape(30, -1)[:, inside]
    np.testing.assert_allclose(last[:, inside], sharpened[np.arange(6), tiles], rtol=1e-5)


def test_a_finished_board_needs_no_commit() -> None:
    dummy = Dummy(some_distributions(4), 2, 2)
    board = Level.parse("#@\n$.").tokens[None].copy()
    sampled, commits = recorded(dummy, board, 1, SamplerConfig(sweeps=3))
    assert (sampled == board).all()
    assert commits.cell.shape == (1, 0)
    assert (commits.frames() == board[None]).all()
    assert dummy.seen == []


# -- the same boards, whatever the batch


@pytest.mark.parametrize(
    "config", [SamplerConfig(), SamplerConfig(steps=3, sweeps=1), SamplerConfig(order="confidence")]
)
def test_boards_do_not_depend_on_the_batch(config: SamplerConfig) -> None:
    joint = Joint(5)
    boards = blank_boards(joint, 41)
    boards[::3, 0, 1] = 2  # some with a cell given, so that batches mix long and short drawings
    whole, commits = recorded(joint, boards, 11, config)
    for batch, overlap in ((1, 1), (7, 2), (64, 1)):
        joint.batch, joint.overlap = batch, overlap
        parts = sample_boards(joint, boards, 11, config, record=True)
        assert (parts.boards == whole).all()
        assert (parts.attempts == 1).all()
        np.testing.assert_array_equal(parts.probability(), commits.probability())
    late = sample_boards(joint, boards[30:], 11, config, numbers=range(30, 41)).boards
    assert (late == whole[30:]).all()


def test_the_stream_gives_every_commit_and_the_end_of_every_attempt() -> None:
    joint = Joint(5)
    joint.batch = 15
    start = blank_boards(joint, 41)
    board, finished = start.copy().reshape(41, 4), list[int]()
    for event in sample_steps(joint, start, 11, SamplerConfig(sweeps=1), range(3, 44)):
        if isinstance(event, AttemptEnd):
            finished += event.board[event.accepted].tolist()
            assert (event.boards.reshape(-1, 4) == board[event.board]).all()
        else:
            board[event.board, event.cell] = event.tile
            assert (event.attempt == 0).all()
    assert finished == list(range(41))
    whole = sample_boards(joint, start, 11, SamplerConfig(sweeps=1), range(3, 44)).boards
    assert (board.reshape(-1, 2, 2) == whole).all()


def test_the_network_is_evaluated_as_often_as_the_config_costs() -> None:
    for config in (SamplerConfig(), SamplerConfig(steps=3), SamplerConfig(order="confidence", sweeps=2)):
        dummy = Dummy(some_distributions(9), 3, 3)
        dummy.batch = 16
        sample_boards(dummy, blank_boards(dummy, 50), 3, config)
        assert len(dummy.seen) == 4 * config.cost(9)


def test_an_order_of_ones_own_is_registered_by_name() -> None:
    def by_rows(step: UnmaskStep) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cells = np.broadcast_to(np.arange(step.masked.shape[1]), step.masked.shape)
        return lowest(np.where(step.masked, cells, np.inf), step.count)

    with pytest.raises(MaskobanError, match="order: expected one of uniform, confidence, got 'by rows'"):
        SamplerConfig(order="by rows")
    register_order("by rows", by_rows)
    joint = Joint(4)
    boards, trajectory = recorded(joint, blank_boards(joint, 20_000), 1, SamplerConfig(order="by rows"))
    assert (trajectory.cell == np.arange(4)).all()
    assert agrees(joint.counts(boards), joint.p)


def test_where_one_batch_fails_the_other_ends_too() -> None:
    both, evaluated = Barrier(2), list[str]()

    class Failing(Joint):
        batch, overlap = 8, 2

        def logits(
            self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]
        ) -> NDArray[np.float32]:
            here = current_thread().name
            if current_thread() is not main_thread() and here not in evaluated:
                both.wait()
                if here.endswith("_1"):
                    raise MaskobanError("no more")
            evaluated.append(here)
            return super().logits(tokens, t, cells)

    failing = Failing(5)
    with pytest.raises(MaskobanError, match="no more"):
        sample_boards(failing, blank_boards(failing, 16), 1, SamplerConfig(sweeps=50_000))
    assert len(evaluated) < 200_000  # of 400,008: the other thread has time to notice


def test_many_boards_are_counted_as_they_are_done() -> None:
    joint, seen = Joint(5), list[tuple[int, int]]()
    joint.batch = 15
    sample_boards(joint, blank_boards(joint, 41), 1, on_progress=lambda *at: seen.append(at))
    done = [boards for boards, _ in seen]
    assert done == sorted(done)
    assert {15, 30, 41} <= set(done)
    assert seen[-1] == (41, 41)


@pytest.mark.parametrize("overlap", [1, 2])
def test_giving_up_ends_the_drawing_soon(overlap: int) -> None:
    joint, seen = Joint(5), list[int]()
    joint.batch, joint.overlap = 15, overlap

    with pytest.raises(KeyboardInterrupt):
        sample_boards(joint, blank_boards(joint, 600), 1, on_progress=giving_up(seen))
    assert len(seen) < 40  # of 160 evaluations: a thread may have taken some before it heard


def test_the_seed_matters() -> None:
    joint = Joint(5)
    one, again, other = (sample_boards(joint, blank_boards(joint, 50), seed).boards for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


def test_no_boards_at_all() -> None:
    joint = Joint(0)
    assert sample_boards(joint, blank_boards(joint, 0), 1).boards.shape == (0, 2, 2)


# -- single samples


def test_a_tile_is_picked_where_the_cumulative_probability_passes_u() -> None:
    p = np.array([0.0, 0.25, 0.5, 0.0, 0.25, 0.0, 0.0])
    u = np.array([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999])
    assert sample_tiles(np.tile(p, (6, 1)), u).tolist() == [1, 1, 2, 2, 4, 4]


def test_probabilities_are_a_softmax_in_double_precision() -> None:
    logits = np.array([[1e4, 1e4 - 1, 0, 0, 0, 0, -1e4]], dtype=np.float32)
    p = softmax(logits, 1.0)
    assert p.dtype == np.float64
    assert p[0, :2] == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    assert p.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"temperature": 0}, "temperature: expected a number above 0, got 0"),
        ({"temperature": math.nan}, "temperature: expected a number above 0, got nan"),
        ({"steps": 0}, "steps: expected at least 1, got 0"),
        ({"sweeps": -1}, "sweeps: expected 0 or more, got -1"),
        ({"precision": "bf16"}, "precision: expected one of fp32, int8, got 'bf16'"),
    ],
)
def test_impossible_configs_are_refused(config: dict[str, object], sentence: str) -> None:
    with pytest.raises(MaskobanError) as refused:
        SamplerConfig(**config)  # type: ignore[arg-type]
    assert str(refused.value) == sentence


def test_the_sampled_part_of_boards_is_what_lies_inside_the_margin() -> None:
    dummy = Dummy(np.ones((6, TILES)) / TILES, 4, 5, margin=1)
    boards = np.arange(40, dtype=np.uint8).reshape(2, 4, 5)
    expected = [board[1:3, 1:4].ravel() for board in boards]
    assert (interior(boards, dummy, "the corpus", "the model") == expected).all()
    assert interior(boards[:0], dummy, "the corpus", "the model").shape == (0, 6)
    for others in (boards[:, 1:], boards[0], boards[..., None]):
        with pytest.raises(MaskobanError, match=r"^the corpus has [\dx]+ boards, but the model samples 4x5$"):
            interior(others, dummy, "the corpus", "the model")
