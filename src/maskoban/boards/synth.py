"""Synthetic boards: solvable by construction, made without a model. The work is done in ``native/synth.hpp``.

A room is carved, boxes stand on its goals, and a beam search pulls them away. Every pull reversed is a legal push.
Small boards keep any positions of a nearly breadth-first search; on large ones the beam keeps those whose boxes block
each other and are far from the goals. Trivial boards are passed over: fewer than 2.5 pushes a box in the solver's
solution, and most of those whose boxes can be delivered one after the other.
"""

from __future__ import annotations

from maskoban._util.cpu import cpu_count
from maskoban._util.progress import OnProgress
from maskoban.boards.tiles import MAX_SIDE, Tokens
from maskoban.errors import MaskobanError


def synthesize(
    n: int,
    height: int = 10,
    width: int = 10,
    boxes: int = 4,
    seed: int = 0,
    *,
    walls: float | None = None,
    first: int = 0,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Tokens:
    """``n`` solvable boards ``(n, height, width)`` with a border of wall.

    ``walls`` is the mean share of wall inside the border, by default :func:`wall_share`. It is lower where the boxes
    need the room. Boards are numbered from ``first``, and a board depends only on its number and the seed.

    >>> synthesize(1000, height=8, width=8, boxes=2, seed=7).shape
    (1000, 8, 8)
    """
    from maskoban import _core  # here, because machines that only train need no native core

    if n < 0 or first < 0:
        raise MaskobanError(f"cannot make {n} boards from number {first}: neither may be negative")
    if walls is not None and not 0 <= walls < 1:
        raise MaskobanError(f"the share of walls must be at least 0 and below 1, not {walls}")
    if boxes < 1:
        raise MaskobanError(f"a board needs at least 1 box, not {boxes}")
    if max(height, width) > MAX_SIDE:
        raise MaskobanError(f"a {height}x{width} board is too large: at most {MAX_SIDE} rows and columns")
    inside = max(height - 2, 0) * max(width - 2, 0)
    count = "1 box" if boxes == 1 else f"{boxes} boxes"
    if inside < 2 * boxes + 1:
        raise MaskobanError(
            f"a {height}x{width} board has {inside} cells inside its border; "
            f"with {count} it takes at least {2 * boxes + 1}"
        )
    share = wall_share(height, width) if walls is None else walls
    progress = None if on_progress is None else lambda done: on_progress(done, n)
    made = _core.synthesize(
        n, height, width, boxes, share, seed % 2**64, first, threads or cpu_count(), progress
    )
    if len(made) < n:
        raise MaskobanError(
            f"cannot make a {height}x{width} board with {count}: no room has space to move one"
        )
    return made.reshape(n, height, width)


def most_boxes(height: int, width: int) -> int:
    """The most boxes that a corpus of many sizes puts on a board: one for every 7 cells inside the border.

    >>> most_boxes(5, 5), most_boxes(7, 7), most_boxes(10, 10)
    (1, 3, 9)
    """
    return max((height - 2) * (width - 2) // 7, 1)


def wall_share(height: int, width: int) -> float:
    """The share of wall inside the border: Boxoban's at 10x10, less on small boards, more on large ones.

    >>> round(wall_share(10, 10), 2), round(wall_share(6, 6), 2), round(wall_share(14, 14), 2)
    (0.52, 0.39, 0.61)
    """
    inside = (height - 2) * (width - 2)
    share: float = 0.52 * (inside / 64) ** 0.2
    return min(share, 0.7)
