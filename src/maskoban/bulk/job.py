"""A bulk job: every setting that decides what is in the dataset, and its division into shards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from maskoban.diffusion.conditions import Conditions
from maskoban.diffusion.model import RAREST
from maskoban.diffusion.sampler import SAMPLERS, SamplerConfig
from maskoban.errors import MaskobanError
from maskoban.solving.filters import BoardFilter

#: By default a dataset is divided into about this many shards, of at least and at most so many boards.
SHARDS, SMALLEST, LARGEST = 256, 64, 65_536

NO_FILTER = BoardFilter()


@dataclass(frozen=True)
class Shard:
    """Boards ``first`` to ``first + count - 1`` of a seed's sequence: they are made and written together.

    >>> Shard(seed=7, first=0, count=512).name
    'seed7-000000000000-000000000512.parquet'
    """

    seed: int
    first: int
    count: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"seed{self.seed}-{self.first:012}-{self.first + self.count:012}.parquet"


@dataclass(frozen=True)
class Origin:
    """What made the boards: the model's name, a hash of its weights, and the version of maskoban."""

    model: str
    weights: str
    version: str


@dataclass(frozen=True)
class Job:
    """The settings of a dataset of ``count`` boards. Engine and number of workers are not among them.

    ``conditions`` are for a conditional model; without, its boards have its usual size.
    With a ``board_filter`` the dataset holds the first ``count`` boards of the seed's sequence that match. Searches
    stop after ``states``; a time limit would make verdicts depend on the machine. ``shard_size`` 0 stands for
    :func:`default_shard_size`.

    >>> Job(count=1000).shard_size
    64
    """

    count: int
    seed: int = 0
    sampler: SamplerConfig = SAMPLERS["plain"]
    board_filter: BoardFilter = NO_FILTER
    repair: bool = False
    device: str = "cpu"
    states: int = 10_000_000
    shard_size: int = 0
    conditions: Conditions | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise MaskobanError(f"number of boards: expected at least 1, got {self.count}")
        if not -(2**63) <= self.seed < 2**63:
            raise MaskobanError(f"seed: expected a whole number of 64 bits, got {self.seed}")
        check_filter(self.board_filter)
        if self.shard_size < 0:
            raise MaskobanError(f"shard size: expected at least 1, got {self.shard_size}")
        if self.shard_size == 0:
            object.__setattr__(self, "shard_size", default_shard_size(self.count))

    @property
    def max_shards(self) -> int:
        """The shards of the whole dataset; with a filter, those after which the job gives up."""
        boards = RAREST * self.count if self.board_filter else self.count
        return -(-boards // self.shard_size)

    def shard(self, index: int) -> Shard:
        """The shard with this index.

        >>> Job(count=1000).shard(15)
        Shard(seed=0, first=960, count=40)
        """
        first = index * self.shard_size
        count = self.shard_size if self.board_filter else min(self.shard_size, self.count - first)
        return Shard(self.seed, first, count)

    def settings(self) -> dict[str, Any]:
        """The settings by name, as job.json holds them: those of sampler and filter stand beside the others."""
        others = asdict(self)
        del others["sampler"], others["board_filter"]
        if self.conditions is None:  # as in the datasets of models without conditions
            del others["conditions"]
        filters = {
            name: getattr(self.board_filter, name) for name in ("only_solvable", "difficulty", "boxes")
        }
        return asdict(self.sampler) | filters | others


def check_filter(board_filter: BoardFilter) -> None:
    """Refuse a difficulty that the column ``rating`` does not hold: it is by effort, against Boxoban's levels."""
    if board_filter.difficulty_by != "effort" or board_filter.quartiles is not None:
        raise MaskobanError(
            "a dataset is rated by effort against Boxoban's levels; expected such a difficulty"
        )


def default_shard_size(count: int) -> int:
    """A power of two that makes about 256 shards, of 64 to 65,536 boards each.

    >>> [default_shard_size(count) for count in (9, 100_000, 1_000_000, 10**9)]
    [64, 512, 4096, 65536]
    """
    size = SMALLEST
    while size < LARGEST and size * SHARDS < count:
        size *= 2
    return size


def current_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a job.json that an earlier version wrote, by their present names.

    >>> current_settings({"polish": 1, "solvable_only": False})
    {'order': 'uniform', 'sweeps': 1, 'only_solvable': False}
    """
    names = {"solvable_only": "only_solvable", "polish": "sweeps"}
    return {"order": "uniform"} | {names.get(name, name): value for name, value in settings.items()}


def difference(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """The first setting in which two jobs differ, in words; None where there is none."""
    for name in old | new:
        if old.get(name) != new.get(name):
            return f"{name.replace('_', ' ')} {old.get(name)}, got {new.get(name)}"
    return None
