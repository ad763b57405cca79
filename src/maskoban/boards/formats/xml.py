"""``.slc``: levels as XML, without the dangerous parts of XML.

The parser is expat, which fetches nothing. A document type may be named, as many collections do, but declare
nothing; depth and text are bounded. The XML of other programs is read where its structure is plain: elements for
levels, and in them elements for rows, by any of the names in ``_NAMES``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from maskoban.boards.collection import Collection, collection_of
from maskoban.boards.formats.registry import Format, Source, register
from maskoban.boards.level import Level, Moves, is_control, name_of
from maskoban.boards.tiles import format_rows, parse_rows
from maskoban.errors import FileError, MaskobanError

_CHUNK = 1 << 16
_MAX_LETTERS = 4_000_000  # of one level
_MAX_BYTES = 20_000_000  # between the ends of two levels
_MAX_DEPTH = 16

#: What an element is called in the XML of other programs, in small letters, and in ``.slc``.
_NAMES = {
    **dict.fromkeys(("level", "puzzle", "maze"), "Level"),
    **dict.fromkeys(("l", "line", "row"), "L"),
    **dict.fromkeys(("title", "name"), "Title"),
    **dict.fromkeys(("author", "copyright"), "Author"),
    **dict.fromkeys(("comment", "comments", "description", "note", "notes"), "Comment"),
    **dict.fromkeys(("moves", "steps"), "Moves"),
    **dict.fromkeys(("email", "e-mail"), "Email"),
    "solution": "Solution",
}

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<SokobanLevels>
  <Title>{title}</Title>
  <Description>{comment}</Description>
{email}  <LevelCollection{author}>
"""
_TAIL = """  </LevelCollection>
</SokobanLevels>
"""


def write_slc(out: BinaryIO, levels: Iterable[Level]) -> None:
    """Levels as XML; comments, solutions and saved games are elements of their own, which other programs ignore.

    >>> import io
    >>> write_slc(out := io.BytesIO(), [Level.parse("#@#")])
    >>> b"<L>#@#</L>" in out.getvalue()
    True
    """
    collection = collection_of(levels)
    head = _HEAD.format(
        title=escape(collection.title),
        comment=escape(collection.comment),
        email=f"  <Email>{escape(collection.email)}</Email>\n" if collection.email else "",
        author=f" Copyright={quoteattr(collection.author)}" if collection.author else "",
    )
    out.write(head.encode("utf-8"))
    for level in collection:
        out.write("".join(_element(level, collection.author)).encode("utf-8"))
    out.write(_TAIL.encode("utf-8"))


def _element(level: Level, author: str) -> Iterator[str]:
    attributes = {"Id": level.title, "Width": str(level.width), "Height": str(level.height)}
    if level.author and level.author != author:
        attributes["Copyright"] = level.author
    yield "    <Level" + "".join(f" {name}={quoteattr(text)}" for name, text in attributes.items()) + ">\n"
    for row in format_rows(level.tokens):
        yield f"      <L>{row}</L>\n"
    if level.comment:
        yield f"      <Comment>{escape(level.comment)}</Comment>\n"
    for element, plays in (("Solution", level.solutions), ("Savegame", level.savegames)):
        for moves in plays:
            name = f" Name={quoteattr(name_of(moves))}" if name_of(moves) else ""
            yield f"      <{element}{name}>{moves}</{element}>\n"
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
    """A ``<Level>`` before its end tag; ``problem`` is why it is skipped."""

    line: int
    title: str
    author: str
    parent: int = 0  # which element holds the rows
    rows: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    solutions: list[Moves] = field(default_factory=list)
    savegames: list[Moves] = field(default_factory=list)
    problem: FileError | None = None


class _Parser:
    """Collects finished levels in ``levels``."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.levels: list[Level] = []
        self.names: list[str] = []  # of the open elements
        self.text: list[str] = []  # inside the innermost of them
        self.where = (0, 0)  # line and column where that text begins
        self.name = ""  # the attribute Name of the innermost of them
        self.numbers: list[int] = []  # of the open elements
        self.started = 0
        self.play: dict[str, str] | None = None  # the open solution of another program
        self.letters = 0
        self.level: _OpenLevel | None = None
        self.others = False  # the XML of another program
        self.header = {"Title": "", "Author": "", "Email": ""}  # about the collection
        self.comment: list[str] = []
        self.header_done = False
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
            error = self._error(f"a file of <{name[:40]}>; expected <SokobanLevels>")
            if self.source.strict:
                raise error
            self.others, self.source.problem = True, error  # of a file without levels
        if len(self.names) == _MAX_DEPTH:
            raise self._error(f"elements nested deeper than {_MAX_DEPTH}")
        if self.others:
            name = _NAMES.get(name.lower(), name)
            given = {key.lower(): value for key, value in attributes.items()}
            own = given.get("name", "")
            attributes = {"Id": given.get("title") or own or given.get("id", ""), "Name": own}
            author = given.get("copyright") or given.get("author")
            attributes |= {"Copyright": author} if author else {}
            if not self.names:
                self.header |= {"Title": own or given.get("title", ""), "Author": author or ""}
            elif name == "Author" and self.level is None:
                self.header["Email"] = self.header["Email"] or given.get("email", "")
            if name == "L" and self.level:
                self._start_row(self.level)
            elif name == "Solution" and self.level:
                self.play = {"Title": own}
        if name == "Level":
            if self.level:
                raise self._error("a <Level> inside a <Level>; expected </Level>")
            title, author = attributes.get("Id", ""), attributes.get("Copyright", self.header["Author"])
            self.level = _OpenLevel(self.parser.CurrentLineNumber, title, author)
            self.letters = 0
        elif name == "LevelCollection":
            self.header["Author"] = attributes.get("Copyright", "")
        elif name == "L" and not self.level and not self.others:
            raise self._error("an <L> outside of a <Level>")
        self.started += 1
        self.numbers.append(self.started)
        self.names.append(name)
        self.name = attributes.get("Name", "")
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
        self.numbers.pop()
        text = "".join(self.text)
        self.text.clear()
        if self.others and name in ("Author", "Email") and not text.strip():
            text = self.name
        if self.play is not None and self.level:
            self._end_in_solution(name, text, self.play, self.level)
        elif name == "Level":
            self._finish_level()
        elif self.level is None:
            if name in ("Description", "Comment", "Url") and text.strip():
                # Programs put the text on lines of its own, with blanks before them.
                shown = text.strip() if name == "Url" or text.startswith("\n") else text
                self.comment.append(f"Url: {shown}" if name == "Url" else shown)
            elif name in self.header and text.strip() and not self.header[name]:
                one = text.strip()
                self.header[name] = " ".join(one.split()) if "\n" in one else one
        elif name == "L":
            self._add_row(text)
        elif name == "Comment":
            self.level.comment.append(text)
        elif name in ("Solution", "Savegame"):
            self._add_moves(self.level, name, text, self.name)
        elif self.others and name == "Title":
            self.level.title = self.level.title or text.strip()
        elif self.others and name == "Author":
            self.level.author = text.strip() or self.level.author

    def _start_row(self, level: _OpenLevel) -> None:
        """A row of another program: rows inside of another element than those before are another level."""
        parent = self.numbers[-1]
        if level.rows and parent != level.parent:
            self._finish_level()
            level = self.level = _OpenLevel(self.parser.CurrentLineNumber, level.title, level.author)
        level.parent = parent

    def _end_in_solution(self, name: str, text: str, play: dict[str, str], level: _OpenLevel) -> None:
        """An element inside of a solution of another program, or the end of that."""
        if name in ("Title", "Moves", "Solution") and text.strip():
            play[name] = text.strip()
        elif name == "Comment":
            level.comment.append(text)
        if name == "Solution":
            self.play = None
            moves = play.get("Moves") or play.get("Solution", "")
            self._add_moves(level, name, moves, " ".join(play["Title"].split()))

    def _add_moves(self, level: _OpenLevel, element: str, text: str, name: str) -> None:
        try:
            moves = Moves("".join(text.split()), self._clean(name))
        except MaskobanError as error:  # its name is too long, or not printable
            level.problem = level.problem or self._error(str(error), column=False)
            return
        wrong = re.search("[^lurdLURD]", moves)
        if wrong:
            what = "solution" if element == "Solution" else "saved game"
            problem = f"{wrong[0]!r} is no move (step {wrong.start() + 1} of a {what})"
            refused = self._error(f"{problem}; expected one of lurdLURD", column=False)
            self.source.warn(refused, f"a {what} is kept as a comment: ")
            level.comment.append(f"{element}: {text}")
            return
        (level.solutions if element == "Solution" else level.savegames).append(moves)

    def _add_row(self, text: str) -> None:
        """Add a row to the open level, if it is good; else the level has a problem, and is skipped."""
        assert self.level is not None
        if self.level.problem:
            return
        row = text.translate(self.source.tiles) if self.source.tiles else text
        most = self.source.max_side
        if len(self.level.rows) == most:
            self.level.problem = self._error(f"more than {most} rows in a board")
        line, column = self.where
        if len(row) > most:
            problem = f"a row of {len(row)} cells; expected at most {most}"
            self.level.problem = self.source.error(problem, line, column + most)
        elif row:
            try:
                parse_rows([row], self.source.path, line)
            except FileError as error:
                place = column + (error.column or 1) - 1
                self.level.problem = self.source.error(error.problem, line, place)
        self.level.rows.append(row)

    def _clean(self, text: str) -> str:
        """``text`` without control characters, and with a warning if there were any."""
        if self.source.strict or text.isprintable():
            return text
        for letter in filter(is_control, text.replace("\n", "")):
            what = f"the control character U+{ord(letter):04X}; expected text"
            self.source.warn(self._error(what, column=False), "replaced: ")
            text = text.replace(letter, "\ufffd")
        return text

    def _finish_level(self) -> None:
        assert self.level is not None
        level, self.level = self.level, None
        self.last_level = self.fed
        if not self.header_done:
            self._finish_header()
        try:
            if level.problem:
                raise level.problem
            if self.others and not level.rows:
                raise self.source.error("expected rows as elements <l>, <line> or <row>", level.line)
            tokens = parse_rows(level.rows, self.source.path, level.line)
            title, author, comment = map(self._clean, (level.title, level.author, "\n".join(level.comment)))
            self.levels.append(
                Level(tokens, title, author, comment, tuple(level.solutions), tuple(level.savegames))
            )
        except FileError as error:
            self._skip(level, error)
        except MaskobanError as error:
            self._skip(level, self.source.error(str(error), level.line))

    def _skip(self, level: _OpenLevel, error: FileError) -> None:
        named = f" ({level.title[:80]!r})" if level.title else ""
        self.source.warn(error, f"a level{named} is skipped: ")

    def _finish_header(self) -> None:
        """Make the collection of what stands above the first level."""
        self.header_done = True
        title, author, email = map(self._clean, self.header.values())
        try:
            comment = self._clean("\n".join(self.comment))
            self.source.collection = Collection((), title, author, email, comment)
        except MaskobanError as error:
            what = "the text above the first level is left out: "
            self.source.warn(self._error(str(error), column=False), what)


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
