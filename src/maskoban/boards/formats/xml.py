"""``.slc``: levels as XML, without the dangerous parts of XML.

The parser is expat, which fetches nothing. A document type may be named, as many collections do, but declare
nothing; depth and text are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from maskoban.boards.formats.registry import Format, Source, register
from maskoban.boards.level import Level
from maskoban.boards.tiles import MAX_SIDE, format_rows, parse_rows
from maskoban.errors import FileError, MaskobanError

_CHUNK = 1 << 16
_MAX_LETTERS = 4_000_000  # of one level
_MAX_BYTES = 20_000_000  # between the ends of two levels
_MAX_DEPTH = 16

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
    """Levels as XML; comments and solutions are elements of their own, which other programs ignore.

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
    for row in format_rows(level.tokens):
        yield f"      <L>{row}</L>\n"
    if level.comment:
        yield f"      <Comment>{escape(level.comment)}</Comment>\n"
    for solution in level.solutions:
        yield f"      <Solution>{solution}</Solution>\n"
    yield "    </Level>\n"


def read_slc(source: Source) -> Iterator[Level]:
    """The levels of an XML collection.

    >>> import io
    >>> xml = io.BytesIO(b'<SokobanLevels><Level Id="a"><L>#@#</L></Level></SokobanLevels>')
    >>> [level.title for level in read_slc(Source(xml, "maze.slc"))]
    ['a']
    """
    parser = _Parser(source)
    while True:
        chunk = source.file.read(_CHUNK)
        parser.feed(chunk)
        yield from parser.levels
        parser.levels.clear()
        if not chunk:
            return


@dataclass
class _OpenLevel:
    """A ``<Level>`` before its end tag."""

    line: int
    title: str
    author: str
    rows: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    solutions: list[str] = field(default_factory=list)


class _Parser:
    """Collects finished levels in ``levels``."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.levels: list[Level] = []
        self.names: list[str] = []  # of the open elements
        self.text: list[str] = []  # inside the innermost of them
        self.where = (0, 0)  # line and column where that text begins
        self.letters = 0
        self.level: _OpenLevel | None = None
        self.author = ""
        self.header: list[str] = []  # about the collection, before the first level
        self.fed = self.last_level = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped

    def feed(self, chunk: bytes) -> None:
        try:
            self.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
            raise self.source.error(problem, error.lineno, error.offset + 1) from None
        except FileError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            problem = f"an encoding that cannot be read ({error}); expected UTF-8"
            raise self.source.error(problem, 1) from None
        # Expat keeps a tag in memory until it ends; one that never ends must not fill it.
        self.fed += len(chunk)
        if self.fed - self.parser.CurrentByteIndex > _MAX_LETTERS:
            raise self._error("a tag without an end; expected >")
        if self.fed - self.last_level > _MAX_BYTES:
            raise self._error(f"more than {_MAX_BYTES:,} bytes without a level", column=False)

    def _error(self, problem: str, column: bool = True) -> FileError:
        line, place = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return self.source.error(problem, line, place if column else None)

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:
        if has_subset:
            raise self._error("a document type with declarations; expected none, for safety", column=False)

    def _entity(self, *_: object) -> None:
        raise self._error("an entity declaration; expected none, for safety")

    def _skipped(self, name: str, _: bool) -> None:
        raise self._error(f"the unknown entity &{name};; expected &amp; &lt; &gt; &quot; or &apos;")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if not self.names and name != "SokobanLevels":
            raise self._error(f"a file of <{name[:40]}>; expected <SokobanLevels>")
        if len(self.names) == _MAX_DEPTH:
            raise self._error(f"elements nested deeper than {_MAX_DEPTH}")
        if name == "Level":
            if self.level:
                raise self._error("a <Level> inside a <Level>; expected </Level>")
            title, author = attributes.get("Id", ""), attributes.get("Copyright", self.author)
            self.level = _OpenLevel(self.parser.CurrentLineNumber, title, author)
            self.letters = 0
        elif name == "LevelCollection":
            self.author = attributes.get("Copyright", "")
        elif name == "L" and not self.level:
            raise self._error("an <L> outside of a <Level>")
        self.names.append(name)
        self.text.clear()

    def _characters(self, text: str) -> None:
        if not self.text:
            self.where = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        self.letters += len(text)
        if self.letters > _MAX_LETTERS:
            raise self._error("too much text in one level", column=False)
        self.text.append(text)

    def _end(self, name: str) -> None:
        name = self.names.pop()
        text = "".join(self.text)
        self.text.clear()
        if name == "Level":
            self._finish_level()
        elif self.level is None:
            if name in ("Title", "Description", "Email", "Url") and text.strip():
                self.header.append(text.strip() if name == "Description" else f"{name}: {text.strip()}")
        elif name == "L":
            self._add_row(text)
        elif name == "Comment":
            self.level.comment.append(text)
        elif name == "Solution":
            self.level.solutions.append("".join(text.split()))

    def _add_row(self, text: str) -> None:
        assert self.level is not None
        if len(self.level.rows) == MAX_SIDE:
            raise self._error(f"more than {MAX_SIDE} rows in a board")
        if text:
            line, column = self.where
            try:
                parse_rows([text], self.source.path, line)
            except FileError as error:
                raise self.source.error(error.problem, line, column + (error.column or 1) - 1) from None
        self.level.rows.append(text)

    def _finish_level(self) -> None:
        assert self.level is not None
        level, self.level = self.level, None
        self.last_level = self.fed
        comment = "\n".join([*self.header, *level.comment])
        self.header = []
        try:
            tokens = parse_rows(level.rows, self.source.path, level.line)
            self.levels.append(Level(tokens, level.title, level.author, comment, tuple(level.solutions)))
        except FileError:
            raise
        except MaskobanError as error:
            raise self.source.error(str(error), level.line) from None


# XML may be UTF-16, in which every other byte is zero.
_START = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<")

register(
    Format(
        "slc",
        suffixes=[".slc"],
        sniff=lambda head: _START.match(head) is not None,
        read=read_slc,
        write=write_slc,
    )
)
