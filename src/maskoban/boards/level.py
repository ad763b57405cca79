"""A level: an immutable board with its title, author, comment, solutions and saved games."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from maskoban.boards.geometry import group_by_shape
from maskoban.boards.identity import exact_ids, ids
from maskoban.boards.tiles import MASK, MAX_LEVEL_SIDE, Tokens, format_rows, parse_rows
from maskoban.errors import MaskobanError

#: Characters in a title, an author or a comment, and moves in one solution.
MAX_TEXT = MAX_MOVES = 100_000

#: Solutions of one level, and saved games.
MAX_SOLUTIONS = 20

# Cells and letters of the levels that are taken at once.
_BATCH_LETTERS = 8_000_000


class Moves(str):
    """Moves in LURD, with the name a file gives them: a string that knows its ``name``.

    >>> Moves("rrU", "found by Ann").name, Moves("rrU") == "rrU"
    ('found by Ann', True)
    """

    name: str

    def __new__(cls, moves: str, name: str = "") -> Moves:
        made = super().__new__(cls, moves)
        made.name = one_line("solution's name", name)
        return made

    def __repr__(self) -> str:
        return f"Moves({str(self)!r}, {self.name!r})" if self.name else super().__repr__()

    def __reduce__(self) -> tuple[type[Moves], tuple[str, str]]:
        return Moves, (str(self), self.name)


@dataclass(frozen=True, eq=False)
class Level:
    """A board with its title, author, comment, known solutions and saved games.

    ``tokens`` is a read-only ``uint8`` array ``(height, width)``. Title and author are one line each, the
    comment any number; blanks around them are dropped. A solution is a string of ``lurdLURD``; empty
    ones are left out, and a single string is one solution. A saved game is a string of moves too, which may end
    anywhere. ``Moves`` gives a solution or a saved game a name.

    >>> level = Level.parse('''
    ... #####
    ... #@$.#
    ... #####
    ... ''')
    >>> level.shape
    (3, 5)
    >>> level == Level(level.tokens)
    True
    """

    tokens: Tokens
    title: str = ""
    author: str = ""
    comment: str = ""
    solutions: tuple[str, ...] = ()
    savegames: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fields = {
            "tokens": board(self.tokens),
            "title": one_line("level's title", self.title),
            "author": one_line("level's author", self.author),
            "comment": lines("level's comment", self.comment),
            "solutions": _plays("solution", self.solutions),
            "savegames": _plays("saved game", self.savegames),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str) -> Level:
        """The level that ``text`` draws, a row a line; blank lines above and below do not count.

        >>> Level.parse("####\\n#@$.").shape
        (2, 4)
        """
        rows = text.replace("\r\n", "\n").split("\n")
        filled = [i for i, row in enumerate(rows) if row.strip()]
        first, last = (filled[0], filled[-1]) if filled else (0, -1)
        return cls(parse_rows(rows[first : last + 1], "board", first + 1))

    @property
    def height(self) -> int:
        """How many rows the board has."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """How many columns the board has."""
        return self.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        height, width = self.tokens.shape
        return height, width

    @property
    def letters(self) -> int:
        """Cells of the board and characters of all texts: the memory the level needs, roughly."""
        texts = (self.title, self.author, self.comment, *self.solutions, *self.savegames)
        return self.tokens.size + sum(map(len, texts))

    @cached_property
    def id(self) -> str:
        """32 hexadecimal digits, the same for every drawing of the same puzzle; see ``identity``.

        >>> Level.parse("@$.").id == Level.parse("####\\n#.##\\n#$##\\n#@##\\n####").id
        True
        """
        return ids(self.tokens[None])[0]

    @cached_property
    def exact_id(self) -> str:
        """Like ``id``, but another one for a turned or mirrored board.

        >>> Level.parse("@$.").exact_id == Level.parse(".$@").exact_id
        False
        """
        return exact_ids(self.tokens[None])[0]

    def __str__(self) -> str:
        return "\n".join(format_rows(self.tokens))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        plays = [(moves, name_of(moves)) for moves in (*self.solutions, *self.savegames)]
        texts = self.title, self.author, self.comment, len(self.solutions), tuple(plays)
        return self.shape, self.tokens.tobytes(), *texts

    def __reduce__(self) -> tuple[object, ...]:
        # NumPy forgets on pickling that an array is read-only; building anew does not.
        return Level, (self.tokens, self.title, self.author, self.comment, self.solutions, self.savegames)


def name_of(moves: str) -> str:
    """The name of a solution or of a saved game; "" if it has none.

    >>> name_of("rrU"), name_of(Moves("rrU", "best"))
    ('', 'best')
    """
    return moves.name if isinstance(moves, Moves) else ""


def board(tokens: ArrayLike) -> Tokens:
    """``tokens`` as a read-only board, or the sentence that says why it is none.

    >>> board([[0, 1], [2, 7]]).dtype
    dtype('uint8')
    """
    try:
        array = np.asarray(tokens)
    except ValueError:
        raise MaskobanError("a board is a two-dimensional array; its rows have different lengths") from None
    if array.ndim != 2 or array.dtype.kind not in "iu":
        kind = f"{array.ndim}-dimensional {array.dtype}"
        raise MaskobanError(f"a board is a two-dimensional array of whole numbers, not {kind}")
    if not all(1 <= side <= MAX_LEVEL_SIDE for side in array.shape):
        raise MaskobanError(
            f"a board of {array.shape[0]}x{array.shape[1]}; expected 1x1 to {MAX_LEVEL_SIDE}x{MAX_LEVEL_SIDE}"
        )
    if array.min() < 0 or array.max() > MASK:
        raise MaskobanError(f"a board holds tokens 0 to {MASK}, not {array.min()} to {array.max()}")
    frozen = array.astype(np.uint8)
    frozen.flags.writeable = False
    return frozen


def one_line(name: str, text: str) -> str:
    """``text`` without blanks around it, if it is one printable line.

    >>> one_line("level's title", " a ")
    'a'
    """
    if "\n" in _text(name, text).strip():
        raise MaskobanError(f"a {name} is one line, not {text.count(chr(10)) + 1}")
    return _printable(name, text.strip())


def lines(name: str, text: str) -> str:
    """``text`` without blank lines around it and blanks at the ends of its lines, if it is printable.

    >>> lines("level's comment", "\\na \\n")
    'a'
    """
    if not _text(name, text):
        return text
    stripped = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    kept = "\n".join(stripped).strip("\n")
    _printable(name, kept.replace("\n", " "))
    return kept


def is_control(letter: str) -> bool:
    """Whether a letter is one that not every file format can hold.

    >>> is_control("\\x85"), is_control("\\t")
    (True, False)
    """
    return letter != "\t" and (unicodedata.category(letter) in ("Cc", "Cs") or letter in "\ufffe\uffff")


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise MaskobanError(f"a {name} is text, not {type(text).__name__}")
    return text


def _printable(name: str, text: str) -> str:
    """``text``, if every file format can hold it: not too long, and without control characters."""
    if len(text) > MAX_TEXT:
        raise MaskobanError(f"a {name} of {len(text)} characters; expected at most {MAX_TEXT}")
    if not text.isprintable():
        for letter in filter(is_control, text):
            raise MaskobanError(f"the control character U+{ord(letter):04X} in a {name}; expected text")
    return text


def _plays(name: str, plays: tuple[str, ...]) -> tuple[str, ...]:
    """Solutions or saved games, checked."""
    if plays == ():
        return plays
    given = (plays,) if isinstance(plays, str) else plays
    if not isinstance(given, Iterable):
        raise MaskobanError(f"a level's {name}s are strings of moves, not {type(given).__name__}")
    kept = tuple(moves for moves in given if _text(f"level's {name}", moves))
    if len(kept) > MAX_SOLUTIONS:
        raise MaskobanError(f"{len(kept)} {name}s of one level; expected at most {MAX_SOLUTIONS}")
    for moves in kept:
        if len(moves) > MAX_MOVES:
            raise MaskobanError(f"a {name} of {len(moves)} moves; expected at most {MAX_MOVES}")
        wrong = re.search("[^lurdLURD]", moves)
        if wrong:
            raise MaskobanError(
                f"{wrong[0]!r} is no move (step {wrong.start() + 1} of a {name}); expected one of lurdLURD"
            )
    return kept


def take(levels: Iterator[Level], count: int = 512) -> list[Level]:
    """The next ``count`` levels; fewer where their texts are so long that they would need much memory.

    >>> len(take(iter([Level.parse("#@#")] * 5), 2))
    2
    """
    batch: list[Level] = []
    letters = 0
    for level in levels:
        batch.append(level)
        letters += level.letters
        if len(batch) == count or letters >= _BATCH_LETTERS:
            break
    return batch


def level_ids(levels: Sequence[Level]) -> list[str]:
    """The ids of levels of any sizes, faster than one by one.

    >>> level_ids([Level.parse("@$.")]) == [Level.parse(".$@").id]
    True
    """
    found = np.empty(len(levels), object)
    for indices, boards in group_by_shape([level.tokens for level in levels]):
        found[indices] = ids(boards)
    return list(found)


def unique_levels(levels: Iterable[Level]) -> Iterator[Level]:
    """The first level of each puzzle; turned, mirrored and shifted copies have the same id.

    >>> [str(level) for level in unique_levels(map(Level.parse, ("@$.", ".$@", "@ $.")))]
    ['@$.', '@ $.']
    """
    seen: set[str] = set()
    remaining = iter(levels)
    while batch := take(remaining):
        for level, level_id in zip(batch, level_ids(batch), strict=True):
            if level_id not in seen:
                seen.add(level_id)
                yield level
