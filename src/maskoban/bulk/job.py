"""What is to be made: every number of a bulk job in one frozen value, and how it is cut into shards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from maskoban.boards.errors import MaskobanError
from maskoban.diffusion.model import RAREST, How
from maskoban.diffusion.sampler import Drawing
from maskoban.solving.picking import Wishes

#: The default number of boards in a shard: as many as make this many shards of the whole, within these bounds.
SHARDS, SMALLEST, LARGEST = 256, 64, 65_536


@dataclass(frozen=True)
class Shard:
    """Boards ``first`` to ``first + count - 1`` of a seed's sequence: what is made, written and lost together.

    >>> Shard(seed=7, first=0, count=512).name
    'seed7-000000000000-000000000512.parquet'
    """

    seed: int
    first: int
    count: int

    @property
    def name(self) -> str:
        """The name of its file, which says what is in it."""
        return f"seed{self.seed}-{self.first:012}-{self.first + self.count:012}.parquet"


@dataclass(frozen=True)
class Origin:
    """Who drew: the model's name, a hash of its weights, and the version of maskoban."""

    model: str
    weights: str
    version: str


@dataclass(frozen=True)
class Job:
    """All that decides what is in the dataset; who does the work, and with how many workers, does not.

    ``count`` boards are made. With ``only_solvable``, ``difficulty`` or ``boxes`` they are the first of the seed's
    sequence that pass. ``states`` is where a search gives up: time limits would make verdicts
    depend on the machine.

    >>> Job(count=1000).shard_size
    64
    """

    count: int
    seed: int = 0
    device: str = "cpu"
    precision: Literal["fp32", "int8"] = "fp32"
    temperature: float = 1.0
    steps: int | None = None
    polish: int = 0
    critic: bool = False
    repair: bool = False
    only_solvable: bool = False
    difficulty: str | None = None
    boxes: int | None = None
    states: int = 10_000_000
    shard_size: int = 0  # 0: chosen from the count

    def __post_init__(self) -> None:
        if self.count < 1:
            raise MaskobanError(f"the number of boards must be at least 1, not {self.count}")
        if not -(2**63) <= self.seed < 2**63:
            raise MaskobanError(f"a seed is a whole number of 64 bits, not {self.seed}")
        if self.shard_size < 0:
            raise MaskobanError(f"a shard holds at least 1 board, not {self.shard_size}")
        if self.shard_size == 0:
            object.__setattr__(self, "shard_size", default_shard_size(self.count))
        # These say what is wrong with them.
        Wishes(self.only_solvable, self.difficulty, self.boxes)
        Drawing(temperature=self.temperature, steps=self.steps, polish=self.polish)

    @property
    def how(self) -> How:
        """How to draw."""
        return {
            "temperature": self.temperature,
            "steps": self.steps,
            "polish": self.polish,
            "critic": self.critic,
        }

    @property
    def filtered(self) -> bool:
        """Whether some of the boards drawn are left out."""
        return bool(self.wishes)

    @property
    def wishes(self) -> Wishes:
        """Which boards are kept."""
        return Wishes(self.only_solvable, self.difficulty, self.boxes)

    @property
    def most_shards(self) -> int:
        """How many shards are drawn at most."""
        boards = RAREST * self.count if self.filtered else self.count
        return -(-boards // self.shard_size)

    def too_few(self, rows: int) -> str:
        """What is said where so many boards are all that is as asked of the most that are drawn.

        >>> Job(count=1, difficulty="hard").too_few(0)
        'only 0 of 512 boards drawn were as asked (hard)'
        """
        drawn = self.most_shards * self.shard_size
        return f"only {rows:,} of {drawn:,} boards drawn were as asked ({self.wishes})"

    def shard(self, index: int) -> Shard:
        """The shard of this index.

        >>> Job(count=1000).shard(15)
        Shard(seed=0, first=960, count=40)
        """
        first = index * self.shard_size
        count = self.shard_size if self.filtered else min(self.shard_size, self.count - first)
        return Shard(self.seed, first, count)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


def default_shard_size(count: int) -> int:
    """A power of two that makes about 256 shards, of 64 to 65,536 boards each.

    >>> [default_shard_size(count) for count in (9, 100_000, 1_000_000, 10**9)]
    [64, 512, 4096, 65536]
    """
    size = SMALLEST
    while size < LARGEST and size * SHARDS < count:
        size *= 2
    return size


def difference(kept: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """What two sets of settings differ in, in words; None where they are the same.

    >>> difference({"seed": 1, "steps": None}, {"seed": 2, "steps": None})
    'seed 1, not 2'
    """
    for name in [*kept, *(name for name in wanted if name not in kept)]:
        if kept.get(name) != wanted.get(name):
            return f"{name.replace('_', ' ')} {_said(kept.get(name))}, not {_said(wanted.get(name))}"
    return None


def _said(value: object) -> str:
    return "none" if value is None else str(value)
