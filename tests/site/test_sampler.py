"""The sampler in JavaScript: the same numbers and boards as Python's, for networks that compute the same."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from numpy.typing import NDArray

from maskoban.boards import MASK, WALL, Tokens
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.rng import uniforms
from maskoban.diffusion.sampler import SAMPLERS, AttemptEnd, SamplerConfig, sample_steps
from tests.site.conftest import Node


def _sums(tokens: Tokens) -> NDArray[np.int64]:
    return (tokens.astype(np.int64) * np.arange(1, tokens.shape[1] + 1)).sum(1) % 1009


class Dummy:
    """The network and critic of harness.mjs."""

    height, width, margin, steps, schedule, batch, overlap = 6, 7, 1, 20, "linear", 3, 1

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        place = _sums(tokens)[:, None, None] + 31 * cells[..., None] + 17 * np.arange(7)
        return (place % 13 / 4).astype(np.float32)

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return (_sums(tokens) % 9 / 4 - 1).astype(np.float32)


def boards_of(start: Tokens, seed: int, config: SamplerConfig, numbers: list[int]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [{} for _ in numbers]
    for event in sample_steps(Dummy(), start, seed, config, numbers, Dummy(), 3.0):
        if isinstance(event, AttemptEnd):
            for i in event.accepted.nonzero()[0]:
                board = event.boards[i].ravel().tolist()
                found[event.board[i]] = {"attempt": int(event.attempt[i]), "cells": board}
    return found


@pytest.mark.parametrize(
    ("seed", "board", "stream"), [(0, 0, 0), (2**53 - 1, 3, 1), (7, 10**9, 5 * 2**20 - 1)]
)
def test_uniforms_are_bit_for_bit_those_of_python(node: Node, seed: int, board: int, stream: int) -> None:
    expected = uniforms(seed, np.array([board]), stream, 70)[0].tolist()
    assert node("uniforms", seed=seed, board=board, stream=stream, count=70) == expected


@pytest.mark.parametrize("given", [0, 9])
@pytest.mark.parametrize(
    "config",
    [
        SamplerConfig(),
        SamplerConfig(steps=6),
        SamplerConfig(temperature=0.5, sweeps=2),
        SamplerConfig(sweeps=1, critic=True),
    ],
    ids=["plain", "six steps", "two sweeps", "critic"],
)
def test_boards_are_those_of_python(node: Node, config: SamplerConfig, given: int) -> None:
    board = np.full((6, 7), WALL, np.uint8)
    inside = interior_cells(Dummy())
    board.reshape(-1)[inside] = MASK
    board.reshape(-1)[inside[:given]] = 1
    numbers = [4, 0, 17, 5, 6]
    expected = boards_of(np.repeat(board[None], len(numbers), axis=0), 11, config, numbers)
    job = {
        "start": board.ravel().tolist(),
        "inside": inside.tolist(),
        "config": asdict(config),
        "numbers": numbers,
    }
    for batch in (1, 3):
        assert node("sample", **job, seed=11, bound=3.0, batch=batch) == expected


@pytest.mark.parametrize(
    "changes",
    [{}, {"temperature": 0.7}, {"sweeps": 3}, {"steps": 9}, {"steps": 9, "critic": True}, {"critic": False}],
    ids=str,
)
def test_changes_of_a_config_turn_off_what_python_turns_off(node: Node, changes: dict[str, float]) -> None:
    for name in SAMPLERS:
        config = SAMPLERS[name]
        expected = config.change(**changes)
        assert node("change", config=asdict(config), changes=changes) == asdict(expected)
        assert node("cost", config=asdict(expected), cells=64) == expected.cost(64)
