"""``.slc``: levels as XML, read with nothing of XML's dangerous half.

The parser is expat with no way to fetch anything. A document type may be named, as many real collections
do, but neither declare entities nor bring a subset of its own; depth and text are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from ..errors import LevelFileError, MaskobanError
from ..level import Level
from ..rows import rows_of_tokens, tokens_of_rows
from ..tiles import MAX_SIDE
from .limits import MAX_DEPTH, MAX_NOTE_LETTERS

_CHUNK = 1 << 16

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<SokobanLevels>
  <Title></Title>
  <Description></Description>
  <LevelCollection>
"""
_TAIL = """  </LevelCollection>
</SokobanLevels>
"""


def write_slc(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels as XML; comments and solutions in elements of their own, which other programs pass over.

    >>> import io
    >>> write_slc(out := io.BytesIO(), [Level.parse("#@#")])
    >>> b"<L>#@#</L>" in out.getvalue()
    True
    """
    out.write(_HEAD.encode("utf-8"))
    for level in levels:
        out.write("".join(_element(level)).encode("utf-8"))
    out.write(_TAIL.encode("utf-8"))


def _element(level: Level) -> Iterator[str]:
    attributes = {"Id": level.title, "Width": str(level.width), "Height": str(level.height)}
    if level.author:
        attributes["Copyright"] = level.author
    yield "    <Level" + "".join(f" {name}={quoteattr(text)}" for name, text in attributes.items()) + ">\n"
    for row in rows_of_tokens(level.tokens):
        yield f"      <L>{row}</L>\n"
    if level.comment:
        yield f"      <Comment>{escape(level.comment)}</Comment>\n"
    for solution in level.solutions:
        yield f"      <Solution>{solution}</Solution>\n"
    yield "    </Level>\n"


def read_slc(source: BinaryIO, path: str) -> Iterator[Level]:
    """The levels of an XML collection, one after the other.

    >>> import io
    >>> xml = b'<SokobanLevels><Level Id="a"><L>#@#</L></Level></SokobanLevels>'
    >>> [level.title for level in read_slc(io.BytesIO(xml), "maze.slc")]
    ['a']
    """
    reader = _Reader(path)
    while True:
        chunk = source.read(_CHUNK)
        reader.take(chunk)
        yield from reader.levels
        reader.levels.clear()
        if not chunk:
            return


@dataclass
class _Open:
    """A ``<Level>`` whose end has not been seen."""

    line: int
    title: str
    author: str
    rows: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    solutions: list[str] = field(default_factory=list)


class _Reader:
    """Hears what expat finds, and gathers finished levels in ``levels``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.levels: list[Level] = []
        self.names: list[str] = []  # of the elements that are open
        self.text: list[str] = []  # inside the innermost of them
        self.where = (0, 0)  # line and column where that text begins
        self.letters = 0
        self.level: _Open | None = None
        self.author = ""
        self.collection: list[str] = []  # said of the whole collection, before the first level
        self.fed = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped

    def take(self, chunk: bytes) -> None:
        try:
            self.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
            raise LevelFileError(self.path, problem, error.lineno, error.offset + 1) from None
        except LevelFileError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise LevelFileError(
                self.path, f"an encoding that cannot be read ({error}); expected UTF-8", 1
            ) from None
        # Expat holds a tag in memory until it ends; one that never does must not fill it.
        self.fed += len(chunk)
        if self.fed - self.parser.CurrentByteIndex > MAX_NOTE_LETTERS:
            raise self._fail("a tag without an end; expected >")

    def _fail(self, problem: str, column: bool = True) -> LevelFileError:
        line, place = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return LevelFileError(self.path, problem, line, place if column else None)

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:
        if has_subset:
            raise self._fail(
                "a document type with declarations of its own; expected none, for safety", column=False
            )

    def _entity(self, *_: object) -> None:
        raise self._fail("an entity declaration; expected none, for safety")

    def _skipped(self, name: str, _: bool) -> None:
        raise self._fail(f"the unknown entity &{name};; expected &amp; &lt; &gt; &quot; or &apos;")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if not self.names and name != "SokobanLevels":
            raise self._fail(f"a file of <{name[:40]}>; expected <SokobanLevels>")
        if len(self.names) == MAX_DEPTH:
            raise self._fail(f"elements nested deeper than {MAX_DEPTH}")
        if name == "Level":
            if self.level:
                raise self._fail("a <Level> inside a <Level>; expected </Level>")
            self.level = _Open(
                self.parser.CurrentLineNumber,
                attributes.get("Id", ""),
                attributes.get("Copyright", self.author),
            )
            self.letters = 0
        elif name == "LevelCollection":
            self.author = attributes.get("Copyright", "")
        elif name == "L" and not self.level:
            raise self._fail("an <L> outside of a <Level>")
        self.names.append(name)
        self.text.clear()
        self.where = (0, 0)

    def _characters(self, text: str) -> None:
        if not self.text:
            self.where = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        self.letters += len(text)
        if self.letters > MAX_NOTE_LETTERS:
            raise self._fail("too much text in one level", column=False)
        self.text.append(text)

    def _end(self, name: str) -> None:
        name = self.names.pop()
        text = "".join(self.text)
        self.text.clear()
        if name == "Level":
            self._close()
        elif self.level is None:
            if name in ("Title", "Description", "Email", "Url") and text.strip():
                self.collection.append(text.strip() if name == "Description" else f"{name}: {text.strip()}")
        elif name == "L":
            if len(self.level.rows) == MAX_SIDE:
                raise self._fail(f"more than {MAX_SIDE} rows in a board")
            if text:
                line, column = self.where
                try:
                    tokens_of_rows([text], self.path, line)
                except LevelFileError as error:
                    raise LevelFileError(
                        self.path, error.problem, line, column + (error.column or 1) - 1
                    ) from None
            self.level.rows.append(text)
        elif name == "Comment":
            self.level.comment.append(text)
        elif name == "Solution":
            self.level.solutions.append("".join(text.split()))

    def _close(self) -> None:
        assert self.level is not None
        level, self.level = self.level, None
        comment = [*self.collection, *level.comment]
        self.collection = []
        try:
            tokens = tokens_of_rows(level.rows, self.path, level.line)
            text = "\n".join(comment)
            self.levels.append(Level(tokens, level.title, level.author, text, tuple(level.solutions)))
        except LevelFileError:
            raise
        except MaskobanError as error:
            raise LevelFileError(self.path, str(error), level.line) from None
