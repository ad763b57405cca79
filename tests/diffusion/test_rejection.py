"""Rejection sampling with a critic: which boards it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from maskoban.boards import Tokens
from maskoban.boards.tiles import MASK
from maskoban.diffusion import sampler
from maskoban.diffusion.denoiser import blank_boards
from maskoban.diffusion.rng import uniforms
from maskoban.diffusion.sampler import SamplerConfig, acceptance, sample_tiles, softmax
from maskoban.diffusion.trajectory import sample_boards
from maskoban.errors import MaskobanError
from tests.diffusion.dummies import Joint, agrees, giving_up


class Taste:
    """Has a score for each of the 81 boards of :class:`Joint`, most of them poor."""

    def __init__(self, seed: int = 0) -> None:
        self.table = np.random.default_rng(seed).normal(-0.5, 1.0, 81).astype(np.float32)
        self.evaluated = 0

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        self.evaluated += len(tokens)
        return self.table[tokens @ np.array([27, 9, 3, 1])]


class Never:
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.full(len(tokens), -np.inf, np.float32)


class Always:
    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.full(len(tokens), 50, np.float32)


# -- which boards are kept


@pytest.mark.parametrize(("c", "overlap", "sweeps"), [(1.0, 1, 0), (4.0, 1, 1), (1.0, 2, 1), (4.0, 2, 0)])
def test_kept_boards_follow_the_reweighed_distribution(c: float, overlap: int, sweeps: int) -> None:
    """q(x) min(exp(score), c), polished or not, and each board takes as many attempts as it should."""
    joint, taste = Joint(0), Taste()
    joint.batch, joint.overlap = 3000, overlap
    sampled = sample_boards(
        joint,
        blank_boards(joint, 40_000),
        3,
        SamplerConfig(critic=True, sweeps=sweeps),
        critic=taste,
        bound=c,
    )
    weight = joint.p * np.minimum(np.exp(taste.table.astype(float)), c)
    assert agrees(joint.counts(sampled.boards), weight / weight.sum())
    assert not agrees(joint.counts(sampled.boards), joint.p)

    kept = weight.sum() / c  # of all attempts; the number of attempts is geometric
    most = int(sampled.attempts.max())
    geometric = kept * (1 - kept) ** np.arange(most)
    geometric[-1] = 1 - geometric[:-1].sum()
    last = int(np.argmax(40_000 * geometric < 20))
    counts = np.bincount(np.minimum(sampled.attempts - 1, last), minlength=last + 1)
    assert agrees(counts, np.append(geometric[:last], 1 - geometric[:last].sum()))


def test_a_board_is_what_one_attempt_after_the_other_gives() -> None:
    """The slow and obvious way: a board at a time, a cell at a time and then once more, until the critic keeps it."""
    joint, taste, c, seed = Joint(1), Taste(1), 2.0, 9
    sampled = sample_boards(
        joint, blank_boards(joint, 60), seed, SamplerConfig(critic=True, sweeps=1), critic=taste, bound=c
    )

    def numbers(board: int, purpose: int, count: int) -> NDArray[np.float64]:
        return uniforms(seed, np.array([board]), purpose, count)[0]

    for board in range(60):
        for attempt in range(1000):
            fresh = attempt * 2**20
            tokens = np.full((1, 4), MASK, np.uint8)
            for purpose in (fresh, fresh + 2):  # the reveal, the sweep
                order, u = numbers(board, purpose, 4), numbers(board, purpose + 1, 4)
                for cell in np.argsort(order):
                    tokens[0, cell] = MASK
                    left = np.array([(tokens == MASK).sum()])
                    p = softmax(joint.logits(tokens, left, np.array([[cell]])), 1.0)[0, 0]
                    tokens[0, cell] = sample_tiles(p, u[cell])
            if numbers(board, fresh + 2**20 - 1, 1)[0] < min(1, np.exp(taste.scores(tokens)[0]) / c):
                break
        assert (sampled.boards[board].ravel() == tokens).all()
        assert sampled.attempts[board] == attempt + 1
    assert sampled.attempts.max() > 3


def test_another_attempt_has_other_candidates() -> None:
    joint = Joint(1)
    sampled = sample_boards(
        joint,
        blank_boards(joint, 300),
        9,
        SamplerConfig(critic=True, order="confidence"),
        critic=Taste(1),
        bound=2.0,
    )
    assert 3 < sampled.attempts.max() < 100


def test_a_board_is_kept_with_probability_e_to_its_score_over_c() -> None:
    scores = np.log(np.array([0.5, 1, 3, 1e30], dtype=np.float32))
    assert acceptance(scores, 3.0) == pytest.approx([1 / 6, 1 / 3, 1, 1])
    assert acceptance(np.array([-np.inf], np.float32), 3.0) == [0]


def test_a_board_kept_at_once_is_the_board_sampled_without_a_critic() -> None:
    joint = Joint(2)
    plain = sample_boards(joint, blank_boards(joint, 100), 5, SamplerConfig(sweeps=1))
    kept = sample_boards(
        joint, blank_boards(joint, 100), 5, SamplerConfig(sweeps=1, critic=True), critic=Always()
    )
    assert (kept.boards == plain.boards).all()
    assert (kept.attempts == 1).all()
    some = sample_boards(
        joint, blank_boards(joint, 100), 5, SamplerConfig(sweeps=1, critic=True), critic=Taste(), bound=2.0
    )
    at_once = some.attempts == 1
    assert 5 < at_once.sum() < 95
    assert (some.boards[at_once] == plain.boards[at_once]).all()


def test_a_critic_that_is_off_is_not_evaluated() -> None:
    joint, taste = Joint(2), Taste()
    for record in (True, False):
        sampled = sample_boards(
            joint, blank_boards(joint, 10), 5, SamplerConfig(sweeps=1), record=record, critic=taste
        )
        assert (sampled.attempts == 1).all()
    assert taste.evaluated == 0


def test_a_critic_judges_the_polished_board() -> None:
    joint, config = Joint(3), SamplerConfig(sweeps=2, critic=True)
    taste = Taste()
    taste.table = np.where(joint.states[:, 0] == 0, 0, -np.inf).astype(
        np.float32
    )  # a wall in the corner, or nothing
    sampled = sample_boards(joint, blank_boards(joint, 200), 4, config, critic=taste)
    assert (sampled.boards[:, 0, 0] == 0).all()
    assert sampled.attempts.max() > 3


# -- the same boards, whatever the batch


@pytest.mark.parametrize(
    "config",
    [
        SamplerConfig(critic=True),
        SamplerConfig(critic=True, sweeps=2),
        SamplerConfig(critic=True, steps=3, sweeps=1),
    ],
)
def test_boards_and_attempts_do_not_depend_on_the_batch(config: SamplerConfig) -> None:
    joint, taste = Joint(5), Taste()
    boards = blank_boards(joint, 41)
    boards[::3, 0, 1] = 2  # some with a cell given, so that batches mix long and short drawings
    whole = sample_boards(joint, boards, 11, config, critic=taste, bound=4.0)
    assert whole.attempts.max() > 4
    assert (whole.boards[::3, 0, 1] == 2).all()
    for batch, overlap in ((1, 1), (7, 1), (7, 2), (64, 1), (64, 2), (500, 2)):
        joint.batch, joint.overlap = batch, overlap
        for record in (False, True):
            parts = sample_boards(joint, boards, 11, config, record=record, critic=taste, bound=4.0)
            assert (parts.boards == whole.boards).all()
            assert (parts.attempts == whole.attempts).all()
    late = sample_boards(joint, boards[30:], 11, config, numbers=range(30, 41), critic=taste, bound=4.0)
    assert (late.boards == whole.boards[30:]).all()
    late = sample_boards(joint, boards[30:], 11, config, numbers=range(30, 41), critic=taste, bound=4.0)
    assert (late.boards == whole.boards[30:]).all()
    assert (late.attempts == whole.attempts[30:]).all()


def test_a_record_has_the_commits_of_the_attempt_that_was_kept() -> None:
    joint, config = Joint(5), SamplerConfig(critic=True, sweeps=1)
    plain = sample_boards(joint, blank_boards(joint, 41), 11, config, critic=Taste(), bound=4.0)
    sampled = sample_boards(
        joint, blank_boards(joint, 41), 11, config, record=True, critic=Taste(), bound=4.0
    )
    commits = sampled
    assert commits.cell.shape == (41, 8)
    assert (commits.step == np.arange(8)).all()
    frames = commits.frames()
    assert (frames[0] == MASK).all()
    assert (frames[-1] == plain.boards).all()
    assert (np.sort(commits.cell[:, :4], axis=1) == np.arange(4)).all()

    for batch, overlap in ((15, 1), (15, 2), (200, 2)):
        joint.batch, joint.overlap = batch, overlap
        parts = sample_boards(
            joint, blank_boards(joint, 41), 11, config, record=True, critic=Taste(), bound=4.0
        )
        for name in ("start", "step", "cell", "tile", "probabilities"):
            np.testing.assert_array_equal(getattr(parts, name), getattr(commits, name))


# -- when it ends, and the config


@pytest.mark.parametrize("overlap", [1, 2])
def test_a_board_no_critic_would_keep_is_kept_in_the_end(
    overlap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "MAX_ATTEMPTS", 5)
    joint = Joint(0)
    joint.overlap = overlap
    sampled = sample_boards(joint, blank_boards(joint, 20), 1, SamplerConfig(critic=True), critic=Never())
    assert (sampled.attempts == 5).all()
    assert (sampled.boards != MASK).all()


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("config", [SamplerConfig(critic=True), SamplerConfig(critic=True, sweeps=2)])
def test_progress_never_falls_and_ends_at_the_end(config: SamplerConfig, record: bool) -> None:
    joint = Joint(5)
    for batch, overlap in ((15, 1), (15, 2), (200, 2)):
        joint.batch, joint.overlap = batch, overlap
        reported = list[tuple[int, int]]()
        note = reported.append
        sample_boards(
            joint, blank_boards(joint, 41), 1, config, critic=Taste(), bound=4.0, record=record,
            on_progress=lambda *at, note=note: note(at),
        )  # fmt: skip
        done = [boards for boards, _ in reported]
        assert done == sorted(done)
        assert len(set(done)) > 3  # all along the way
        assert reported[-1] == (41, 41)


@pytest.mark.parametrize("overlap", [1, 2])
def test_giving_up_ends_the_seeking_soon(overlap: int) -> None:
    joint, seen = Joint(5), list[int]()
    joint.batch, joint.overlap = 15, overlap

    with pytest.raises(KeyboardInterrupt):
        sample_boards(
            joint,
            blank_boards(joint, 600),
            1,
            SamplerConfig(critic=True),
            on_progress=giving_up(seen),
            critic=Never(),
        )
    assert len(seen) < 40


def test_no_boards_at_all() -> None:
    joint = Joint(0)
    sampled = sample_boards(joint, blank_boards(joint, 0), 1, SamplerConfig(critic=True), critic=Taste())
    assert sampled.boards.shape == (0, 2, 2)
    assert sampled.attempts.shape == (0,)


def test_a_config_with_a_critic_needs_one() -> None:
    joint = Joint(0)
    with pytest.raises(MaskobanError, match="the sampler config asks for a critic, but none is given"):
        sample_boards(joint, blank_boards(joint, 2), 1, SamplerConfig(critic=True))
