"""What a model thinks of boards, held against distributions that are known."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from maskoban.boards import Level
from maskoban.boards.tiles import MASK, WALL
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError
from tests.diffusion.dummies import Dummy, Joint


def test_the_likelihood_of_consistent_odds_is_minus_the_log_of_the_probability() -> None:
    joint = Joint(seed=3)
    boards = joint.states.reshape(-1, 2, 2)
    for orders in (1, 5):
        assert np.allclose(
            Model(joint, {}).surprise(boards, orders, seed=orders), -np.log(joint.p), atol=1e-5
        )


def test_the_odds_are_the_conditionals() -> None:
    joint = Joint(seed=4)
    board = np.array([[1, MASK], [MASK, 2]], np.uint8)
    fits = (joint.states[:, 0] == 1) & (joint.states[:, 3] == 2)
    given = joint.p[fits] / joint.p[fits].sum()
    odds = Model(joint, {}).odds(board)
    assert odds[0, 0].tolist() == np.eye(7)[1].tolist()
    for cell, place in ((1, (0, 1)), (2, (1, 0))):
        exact = np.bincount(joint.states[fits][:, cell], given, minlength=7)
        assert np.allclose(odds[place], exact, atol=1e-6)


class Lopsided(Joint):
    """Odds that depend on how much is hidden, so that every order gives a board another probability."""

    def logits(self, tokens: Any, t: Any, cells: Any) -> Any:
        return super().logits(tokens, t, cells) * (0.4 + 0.3 * (tokens == MASK).sum(1)[:, None, None])


def test_in_each_order_all_probabilities_add_up_to_one_and_the_mean_of_many_is_that_of_all() -> None:
    model = Model(Lopsided(seed=5), {})
    boards = model.denoiser.states.reshape(-1, 2, 2)  # type: ignore[attr-defined]
    for seed in range(3):
        assert np.exp(-model.negative_log_likelihood(boards, seed=seed)).sum() == pytest.approx(1, abs=1e-5)

    def nats(board: Any, order: tuple[int, ...]) -> float:
        tokens, total = np.full(4, MASK, np.uint8), 0.0
        for cell in order:
            total -= np.log(model.odds(tokens.reshape(2, 2)).reshape(4, 7)[cell, board[cell]])
            tokens[cell] = board[cell]
        return total

    some = boards[[0, 40, 77]]
    exact = [np.mean([nats(board.ravel(), order) for order in permutations(range(4))]) for board in some]
    found = model.negative_log_likelihood(some, 600, seed=1)
    assert np.allclose(found, exact, rtol=0.03)
    assert not np.allclose(model.negative_log_likelihood(some, 1, seed=1), exact, rtol=1e-4)


def test_a_border_that_is_given_is_wall_and_nothing_else() -> None:
    p = np.tile([0.25, 0.75, 0, 0, 0, 0, 0], (4, 1))
    model = Model(Dummy(p, 4, 4, margin=1), {})
    room = np.pad(np.ones((2, 2), np.uint8), 1)
    open_room = room.copy()
    open_room[0, 1] = 1
    assert model.negative_log_likelihood(np.stack([room, open_room])).tolist() == [
        pytest.approx(-4 * np.log(0.75)),
        np.inf,
    ]
    odds = model.odds(np.full((4, 4), MASK, np.uint8))
    assert np.array_equal(model.odds(np.full((3, 4, 4), MASK, np.uint8)), np.stack([odds] * 3))
    assert odds[0, 0, WALL] == 1
    assert np.allclose(odds[1, 1], p[0], atol=1e-6)


def test_the_shipped_model_prefers_what_it_samples_to_what_it_would_not() -> None:
    model = load()
    (sampled,) = model.generate(1, seed=7, sampler="plain")
    rng = np.random.default_rng(0)
    shuffled = sampled.tokens.copy()
    shuffled[1:-1, 1:-1] = rng.permutation(shuffled[1:-1, 1:-1].ravel()).reshape(8, 8)
    likely, unlikely = model.negative_log_likelihood([sampled, Level(shuffled)])
    assert likely < unlikely / 1.5
    assert (
        model.negative_log_likelihood(sampled).shape
        == model.negative_log_likelihood(sampled.tokens).shape
        == (1,)
    )
    assert model.negative_log_likelihood([]).shape == (0,)


def test_what_has_no_opinion_is_refused() -> None:
    model = Model(Joint(seed=3), {"name": "joint"})
    half, large = np.array([[1, MASK], [1, 1]], np.uint8), np.ones((3, 3), np.uint8)
    with pytest.raises(MaskobanError, match="board 1 has masked cells; expected finished boards"):
        model.negative_log_likelihood(np.stack([half.clip(0, 1), half]))
    for evaluated in (model.odds, model.negative_log_likelihood):
        with pytest.raises(MaskobanError, match="the board is 3x3, but model 'joint' samples 2x2 boards"):
            evaluated(large)
    with pytest.raises(MaskobanError, match="boards: expected at least one, got none"):
        model.odds(np.zeros((0, 2, 2), np.uint8))
    with pytest.raises(MaskobanError, match="orders: expected at least 1, got 0"):
        model.negative_log_likelihood(half, orders=0)
