"""One shard made from end to end: what both engines hand to their workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from maskoban.boards import MaskobanError, Tokens
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


@contextmanager
def travelling() -> Iterator[None]:
    """What goes wrong in a worker, as an error that reaches the first process: subclasses do not travel well."""
    try:
        yield
    except MemoryError:
        raise MaskobanError("memory ran out in a worker; fewer --workers need less") from None
    except MaskobanError as error:
        raise MaskobanError(str(error)) from None
