"""A collection: levels with the title, author, e-mail and comment that stand above them in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from maskoban.boards.level import Level, lines, one_line

#: What is known about a collection beside its levels.
COLLECTION_FIELDS = ("title", "author", "email", "comment")


@dataclass(frozen=True)
class Collection:
    """Levels, and what their file says about all of them.

    ``levels`` is a list of levels, or an iterator that reads them. The author is that of all levels that have none of
    their own; reading gives it to each of them.

    >>> [str(level) for level in Collection([Level.parse("#@$.#")], title="My set")]
    ['#@$.#']
    """

    levels: Iterable[Level] = ()
    title: str = ""
    author: str = ""
    email: str = ""
    comment: str = ""

    def __post_init__(self) -> None:
        for name in ("title", "author", "email"):
            object.__setattr__(self, name, one_line(f"collection's {name}", getattr(self, name)))
        object.__setattr__(self, "comment", lines("collection's comment", self.comment))

    def __iter__(self) -> Iterator[Level]:
        return iter(self.levels)

    def with_levels(self, levels: Iterable[Level]) -> Collection:
        """The same collection with other levels."""
        return replace(self, levels=levels)


def collection_of(levels: Iterable[Level]) -> Collection:
    """``levels`` as a collection, without a title if it is none.

    >>> collection_of([Level.parse("#@$.#")]).title
    ''
    """
    return levels if isinstance(levels, Collection) else Collection(levels)
