"""One shard made from end to end: what both engines hand to their workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from maskoban.boards import Tokens
from maskoban.bulk.dataset import Dataset, Receipt
from maskoban.bulk.job import Job, Origin, Shard
from maskoban.bulk.pipeline import judge
from maskoban.bulk.table import table

#: What an engine does: shards in, receipts out as they are finished, in any order.
Run = Callable[[Sequence[Shard]], Iterator[Receipt]]


@dataclass(frozen=True)
class Work:
    """All a worker needs to know: the job, the model to load, who is named as its maker, and where shards go.

    >>> Work(Job(9), "best", Origin("best", "0", "0"), "dataset").job.count
    9
    """

    job: Job
    source: str
    origin: Origin
    folder: str

    def judged(self, boards: Tokens, shard: Shard) -> Receipt:
        """The drawn boards of a shard judged and written."""
        rows = table(judge(boards, self.job, shard, self.origin))
        return Dataset(Path(self.folder)).put(shard.name, rows)
