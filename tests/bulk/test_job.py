"""The shards of a job cover it, and its settings can be compared."""

from __future__ import annotations

import pytest

from maskoban.bulk.job import Job, current_settings, default_shard_size, difference
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter
from tests.bulk.conftest import SOLVABLE


@pytest.mark.parametrize(("count", "size"), [(1, 1), (64, 64), (65, 64), (1000, 7)])
def test_shards_cover_every_board_once(count: int, size: int) -> None:
    job = Job(count, seed=3, shard_size=size)
    numbers = []
    for index in range(job.max_shards):
        shard = job.shard(index)
        assert 1 <= shard.count <= size
        numbers += range(shard.first, shard.first + shard.count)
    assert numbers == list(range(count))


def test_names_sort_as_numbers_do() -> None:
    job = Job(10**9)
    names = [job.shard(index).name for index in (0, 1, 9, 10, 15_258)]
    assert names == sorted(names)
    assert names[-1] == "seed0-000999948288-001000000000.parquet"


@pytest.mark.parametrize("count", [1, 63, 10_000, 123_456, 5_000_000, 10**9])
def test_default_shards_are_neither_tiny_nor_huge(count: int) -> None:
    size = default_shard_size(count)
    assert 64 <= size <= 65_536
    assert size == 65_536 or size * 256 >= count


def test_with_a_filter_more_boards_are_sampled_than_kept() -> None:
    job = Job(100, board_filter=SOLVABLE)
    assert job.shard(job.max_shards - 1).first + 64 >= 500 * 100
    assert job.shard(5).count == 64


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"count": 0}, "number of boards: expected at least 1, got 0"),
        ({"count": 1, "seed": 2**63}, "64 bits"),
        ({"count": 1, "shard_size": -1}, "shard size: expected at least 1, got -1"),
        (
            {"count": 1, "board_filter": BoardFilter(difficulty_by="decomposed")},
            "a dataset is rated by effort",
        ),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(MaskobanError, match=said):
        Job(**wrong)  # type: ignore[arg-type]


def test_the_difference_of_settings_is_named() -> None:
    assert difference({"a": 1}, {"a": 1}) is None
    assert difference({"shard_size": 64, "b": 2}, {"shard_size": 128, "b": 3}) == "shard size 64, got 128"
    assert difference({}, {"steps": 4}) == "steps None, got 4"


def test_settings_are_flat_and_those_of_earlier_versions_are_the_same() -> None:
    job = Job(9, 7, SamplerConfig(steps=3, sweeps=1), SOLVABLE)
    assert set(job.settings()) == {
        *("count", "seed", "device", "repair", "states", "shard_size"),
        *("steps", "order", "temperature", "sweeps", "critic", "precision"),
        *("only_solvable", "difficulty", "boxes"),
    }
    earlier = job.settings() | {"polish": 1, "solvable_only": True}
    for name in ("sweeps", "only_solvable", "order"):
        del earlier[name]
    assert difference(current_settings(earlier), job.settings()) is None
