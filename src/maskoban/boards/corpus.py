"""A corpus: many boards of one size, packed from level files, described, and loaded by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import MASK, WALL, Tokens, read_boards, write
from maskoban.boards.download import SPLITS, cache_folder, downloaded
from maskoban.boards.files import level_files
from maskoban.boards.tiles import NAMES, object_counts, tile_counts
from maskoban.errors import FileError, MaskobanError

#: The splits of Boxoban by the names of their corpora: "boxoban-medium-train" and so on.
BOXOBAN = {f"boxoban-{split.replace('/', '-')}": split for split in SPLITS}


@dataclass(frozen=True)
class Spread:
    """Minimum, mean and maximum over all boards."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True)
class CorpusInfo:
    """A summary of a corpus; means are per board."""

    boards: int
    distinct: int
    height: int
    width: int
    border_is_wall: bool  # on every board
    tile_means: dict[str, float]
    boxes: Spread
    goals: Spread
    players: Spread

    def __str__(self) -> str:
        border = "all wall" if self.border_is_wall else "not always wall"
        lines = [f"{self.boards:,} boards of {self.height}x{self.width}, {self.distinct:,} distinct"]
        lines += [f"border: {border}"]
        lines += [f"{name}: {mean:.3f} a board" for name, mean in self.tile_means.items() if mean]
        for name in ("boxes", "goals", "players"):
            spread = getattr(self, name)
            lines += [f"{name}: {spread.least} to {spread.most}, mean {spread.mean:.3f}"]
        return "\n".join(lines)


def pack(levels: str | Path, out: str | Path) -> CorpusInfo:
    """Pack a file or a folder of level files into one ``.npz``, and return its summary.

    All boards must have one size and be playable: one player, and as many boxes as goals.

    >>> pack("boxoban-levels/medium/valid", "valid.npz").boards  # doctest: +SKIP
    50000
    """
    if Path(out).suffix != ".npz":
        raise MaskobanError(f"{out}: a packed corpus is an npz file, so its name must end in .npz")
    boards = _read(Path(levels))
    write(out, boards)
    return info(boards)


def load(corpus: str | Path) -> Tokens:
    """The boards of a corpus ``(n, height, width)``.

    ``corpus`` is a packed file, any file or folder of levels, "-" for standard input, or the name of a packed
    corpus in the cache. A downloaded split of Boxoban ("boxoban-medium-train") is packed when it is first loaded.

    >>> load("boxoban-medium-train").shape  # doctest: +SKIP
    (450000, 10, 10)
    """
    path = Path(corpus)
    if str(corpus) == "-" or path.exists():
        return _read(path)
    packed = cache_folder() / f"{corpus}.npz"
    if not packed.exists():
        split = BOXOBAN.get(str(corpus))
        folder = downloaded(split) if split else None
        if folder is None:
            known = sorted(path.stem for path in cache_folder().glob("*.npz"))
            raise MaskobanError(
                f"no corpus '{corpus}': it is neither a file or folder nor packed in {cache_folder()} "
                f"({', '.join(known) or 'none yet'}); `maskoban corpus fetch` downloads Boxoban"
            )
        pack(folder, packed)
    return _read(packed)


def info(boards: Tokens) -> CorpusInfo:
    """Describe boards of one size.

    >>> board = np.array([[0, 0, 0, 0, 0], [0, 2, 3, 4, 0], [0, 0, 0, 0, 0]], np.uint8)
    >>> info(board[None]).tile_means["wall"]
    12.0
    """
    boards = np.ascontiguousarray(boards)  # for the view that makes every board one key
    n, height, width = boards.shape
    if n == 0:
        raise MaskobanError("there are no boards to describe")
    counts = tile_counts(boards)
    boxes, goals, players = object_counts(counts)
    inner = boards[:, 1:-1, 1:-1]
    border_walls = counts[WALL].sum() - np.count_nonzero(inner == WALL)
    return CorpusInfo(
        boards=n,
        distinct=len(set(boards.reshape(n, -1).view(f"V{height * width}").ravel().tolist())),
        height=height,
        width=width,
        border_is_wall=bool(border_walls == boards.size - inner.size),
        tile_means={name: float(counts[tile].mean()) for tile, name in enumerate(NAMES)},
        boxes=_spread(boxes),
        goals=_spread(goals),
        players=_spread(players),
    )


def _read(path: Path) -> Tokens:
    """The boards of a file or folder; a malformed one is an error."""
    boards = read_boards(path)
    counts = tile_counts(boards)
    boxes, goals, players = object_counts(counts)
    malformed = (players != 1) | (boxes == 0) | (boxes != goals) | (counts[MASK] > 0)
    if malformed.any():
        first = int(malformed.argmax())
        file, number = _place(path, first)
        found = boxes[first], goals[first], players[first], counts[MASK][first]
        raise FileError(str(file), f"level {number} is malformed: {_problem(*map(int, found))}")
    return boards


def _problem(boxes: int, goals: int, players: int, masked: int) -> str:
    """Why a board with these counts is malformed, in the solver's words."""
    if masked:
        return "masked cells left"
    if players != 1:
        return f"{players} players" if players else "no player"
    if boxes == 0:
        return "no boxes"
    return f"{boxes} box{'es' if boxes > 1 else ''} but {goals} goal{'s' if goals != 1 else ''}"


def _place(path: Path, index: int) -> tuple[Path, int]:
    """The file that holds board ``index`` of ``path``, and the board's number there, counted from 1."""
    if path.is_dir():
        for file in level_files(str(path)):
            count = len(read_boards(file))
            if index < count:
                return Path(file), index + 1
            index -= count
    return path, index + 1


def _spread(values: NDArray[np.int64]) -> Spread:
    return Spread(int(values.min()), float(values.mean()), int(values.max()))
