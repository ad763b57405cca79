"""A job is cut into shards that cover it, and its settings can be told apart."""

from __future__ import annotations

import pytest

from maskoban.boards import MaskobanError
from maskoban.bulk.job import Job, default_shard_size, difference


@pytest.mark.parametrize(("count", "size"), [(1, 1), (64, 64), (65, 64), (1000, 7)])
def test_shards_cover_every_board_once(count: int, size: int) -> None:
    job = Job(count, seed=3, shard_size=size)
    numbers = []
    for index in range(job.most_shards):
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


def test_a_filter_draws_more_than_it_keeps() -> None:
    job = Job(100, only_solvable=True)
    assert job.shard(job.most_shards - 1).first + 64 >= 500 * 100
    assert job.shard(5).count == 64


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"count": 0}, "at least 1"),
        ({"count": 1, "seed": 2**63}, "64 bits"),
        ({"count": 1, "difficulty": "silly"}, "easy, medium, hard, expert"),
        ({"count": 1, "steps": 0}, "at least 1 step"),
        ({"count": 1, "temperature": 0.0}, "above 0"),
        ({"count": 1, "shard_size": -1}, "at least 1 board"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(MaskobanError, match=said):
        Job(**wrong)  # type: ignore[arg-type]


def test_the_difference_of_settings_is_named() -> None:
    assert difference({"a": 1}, {"a": 1}) is None
    assert difference({"shard_size": 64, "b": 2}, {"shard_size": 128, "b": 3}) == "shard size 64, not 128"
    assert difference({}, {"steps": 4}) == "steps none, not 4"
