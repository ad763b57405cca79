"""The shipped model of boards of any size, with the ONNX graphs that ship."""

from __future__ import annotations

import numpy as np
import pytest

from maskoban.boards.tiles import WALL, object_counts, tile_counts
from maskoban.diffusion.loading import load
from maskoban.diffusion.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return load("any")


@pytest.mark.parametrize(("size", "boxes"), [((5, 5), 1), ((16, 16), 8), ((5, 16), 3), ((16, 7), 4)])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_boards_of_the_smallest_and_the_largest_sizes(
    model: Model, size: tuple[int, int], boxes: int, precision: str
) -> None:
    told = model.given(size, boxes)
    boards = told.sample(2, 3, told.sampler("fast", precision=precision))
    assert boards.shape == (2, *size)
    assert (boards[:, [0, -1]] == WALL).all()
    assert (boards[:, :, [0, -1]] == WALL).all()


def test_by_default_it_samples_with_its_critic(model: Model) -> None:
    told = model.given((7, 7), 2)
    config = told.sampler("best")
    assert (config.sweeps, config.critic) == (1, True)
    made = told.trajectory(12, seed=2)
    assert 1 < made.attempts.mean() < 3
    assert (object_counts(tile_counts(made.boards)).boxes == 2).all()
    assert told.critic is not None
    boards = made.boards[:, 1:-1, 1:-1].reshape(12, -1)
    noise = np.random.default_rng(0).permuted(boards, axis=1)  # the same tiles in random places
    critic = told.denoiser.critic(told.critic)  # type: ignore[attr-defined]
    assert critic.scores(noise).max() < critic.scores(boards).min()
