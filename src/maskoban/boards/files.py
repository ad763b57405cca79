"""Reading and writing level files of every registered format."""

from __future__ import annotations

import io
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TypedDict, TypeVar, Unpack, cast

import numpy as np

from maskoban._util.files import atomic_file, check_can_write, file_errors
from maskoban._util.signals import terminate_as_interrupt
from maskoban.boards.collection import Collection
from maskoban.boards.formats import FORMATS, Format, Source, by_suffix, detect, suffixes
from maskoban.boards.formats.registry import Prefixed
from maskoban.boards.geometry import group_by_shape
from maskoban.boards.level import Level
from maskoban.boards.tiles import MAX_LEVEL_SIDE, Tokens
from maskoban.errors import FileError, MaskobanError

T = TypeVar("T")

#: Boards in one file of Boxoban.
BOARDS_A_FILE = 1000

_HEAD_BYTES = 4096
_MAX_PIPE_BYTES = 1 << 32
_MAX_CELLS = 1 << 31
_MAX_BOARDS = 20_000_000
_NO_LEVEL = "no level in it; expected at least one board"
_EXPORT = "maskoban bulk export"


class ReadOptions(TypedDict, total=False):
    """How level files are read.

    ``strict`` raises what is a warning otherwise. ``tiles`` maps the letters of a file with other tiles to those of
    docs/formats.md: ``{"x": "#", "o": "$"}``. ``on_warning`` gets every warning, as a ``FileError`` with the file and
    the line; without it they are ``LevelFileWarning``.
    """

    strict: bool
    tiles: Mapping[str, str]
    on_warning: Callable[[FileError], None]


def stream(
    path: str | os.PathLike[str], format: str | None = None, **options: Unpack[ReadOptions]
) -> Iterator[Level]:
    """The levels of a file one after the other, in bounded memory; "-" is standard input.

    A folder stands for the level files in it, in the order of their names. What cannot be read raises ``FileError``
    when the reading gets there. What is wrong with one level or line is a warning, and the reading goes on;
    ``ReadOptions`` change that.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.sok", [Level.parse("#@#"), Level.parse("#+$")])
    ...     [str(level) for level in stream(folder + "/two.sok")]
    ['#@#', '#+$']
    """
    chosen = FORMATS[format] if format else None
    return _levels(_files(os.fspath(path)), chosen, options, [])


def stream_collection(
    path: str | os.PathLike[str], format: str | None = None, **options: Unpack[ReadOptions]
) -> Collection:
    """Like :func:`stream`, with what the file says about all of its levels, which are an iterator.

    A folder of several files has levels only.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.sok", Collection([Level.parse("#@#")], title="My set"))
    ...     stream_collection(folder + "/two.sok").title
    'My set'
    """
    chosen, names = FORMATS[format] if format else None, _files(os.fspath(path))
    sources: list[Source] = []
    levels = _levels(names, chosen, options, sources)
    first = next(levels)  # a reader knows the collection before its first level
    found = sources[0].collection if len(names) == 1 else Collection()
    return found.with_levels(itertools.chain([first], levels))


def stream_file(
    file: IO[bytes],
    name: str,
    max_side: int = MAX_LEVEL_SIDE,
    on_warning: Callable[[FileError], None] | None = None,
) -> Iterator[Level]:
    """The levels of an open file that can seek; ``name`` is used in messages.

    Levels with more than ``max_side`` rows or columns are skipped with a warning.

    >>> [str(level) for level in stream_file(io.BytesIO(b"#@#"), "upload")]
    ['#@#']
    """
    head = file.read(_HEAD_BYTES)
    file.seek(-len(head), os.SEEK_CUR)
    source = Source(file, name, max_side=max_side, on_warning=on_warning)
    return _at_least_one(detect(head, name).read(source), source)


def read(
    path: str | os.PathLike[str], format: str | None = None, **options: Unpack[ReadOptions]
) -> list[Level]:
    """All levels of a file, of a folder of level files, or of standard input ("-"); options as of :func:`stream`.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.xsb", [Level.parse("#@#")])
    ...     read(folder + "/one.xsb")[0].shape
    (1, 3)
    """
    return list(stream(path, format, **options))


def read_collection(
    path: str | os.PathLike[str], format: str | None = None, **options: Unpack[ReadOptions]
) -> Collection:
    """Like :func:`stream_collection`, with a list of the levels.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.sok", Collection([Level.parse("#@#")], author="Ann"))
    ...     read_collection(folder + "/two.sok").levels[0].author
    'Ann'
    """
    found = stream_collection(path, format, **options)
    return found.with_levels(list(found))


def read_boards(path: str | os.PathLike[str]) -> Tokens:
    """The boards ``(n, h, w)`` of a collection of one size, without titles and solutions: the fast way to many.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/two.xsb", [Level.parse("#@#"), Level.parse("#+#")])
    ...     read_boards(folder + "/two.xsb").shape
    (2, 1, 3)
    """
    parts: list[Tokens] = []
    count = cells = 0
    for name in _files(os.fspath(path)):
        with _opened(name) as (source, found):
            batches = found.read_boards(source) if found.read_boards else _batches(found.read(source))
            for boards in _at_least_one(batches, source):
                if parts and boards.shape[1:] != parts[0].shape[1:]:
                    sizes = [f"{h}x{w}" for h, w in (parts[0].shape[1:], boards.shape[1:])]
                    raise FileError(name, f"boards of {sizes[0]} and of {sizes[1]}; expected one size")
                parts.append(boards)
                count, cells = count + len(boards), cells + boards.size
                if count > _MAX_BOARDS or cells > _MAX_CELLS:
                    raise FileError(name, f"more than {_MAX_BOARDS:,} boards or {_MAX_CELLS:,} cells")
    return np.concatenate(parts)


def has_metadata(path: str | os.PathLike[str]) -> bool:
    """Whether a collection holds more than boards and the numbers of Boxoban; True if only reading it would tell.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.xsb", [Level.parse("#@#")])
    ...     write(folder + "/two.xsb", [Level(Level.parse("#@#").tokens, title="two")])
    ...     has_metadata(folder + "/one.xsb"), has_metadata(folder + "/two.xsb")
    (False, True)
    """
    for name in _files(os.fspath(path)):
        with _opened(name) as (source, found):
            if not found.has_metadata or found.has_metadata(source):
                return True
    return False


def write(
    path: str | os.PathLike[str],
    levels: Iterable[Level] | Collection | Level | Tokens,
    format: str | None = None,
) -> None:
    """Write levels, a collection, or a batch of boards, in the given format or that of the suffix.

    The file appears whole or not at all. "-" is standard output, in XSB by default. A folder (an existing one, or a
    name that ends with "/") is filled with Boxoban files; one that holds level files already is refused.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/one.slc", [Level.parse("#@#")])
    ...     os.listdir(folder)
    ['one.slc']
    """
    name = os.fspath(path)
    given = [levels] if isinstance(levels, Level) else levels
    each = (level if isinstance(level, Level) else Level(level) for level in given)
    first = next(each, None)
    if first is None:
        raise MaskobanError(f"no levels to write to {name}")
    kept: Iterable[Level] = itertools.chain([first], each)
    if isinstance(levels, Collection):
        kept = levels.with_levels(kept)
    if _is_folder(name):
        _write_folder(name, iter(kept), format)
        return
    chosen = _format_to_write(name, format)
    if name == "-":
        if sys.stdout is None:
            raise FileError("-", "standard output is closed")
        chosen.write(sys.stdout.buffer, kept)
        sys.stdout.buffer.flush()
        return
    with atomic_file(name) as out:
        chosen.write(out, kept)


def check_writable(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise now what :func:`write` would raise later about the name, the format or the place.

    >>> check_writable("boards.doc")
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: boards.doc: unknown suffix; expected .xsb, ...
    """
    name = os.fspath(path)
    if _is_folder(name):
        _check_folder(name, format)
        return
    _format_to_write(name, format)
    if name != "-":
        check_can_write(name)


def level_files(folder: str) -> list[str]:
    """The level files of a folder, in the order of their names."""
    files = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
    known = tuple(suffixes())
    return [file for file in files if file.lower().endswith(known)]


def _is_folder(name: str) -> bool:
    return name != "-" and (name.endswith(("/", os.sep)) or os.path.isdir(name))


def _format_to_write(name: str, format: str | None) -> Format:
    chosen = FORMATS[format or "xsb"] if format or name == "-" else by_suffix(name)
    if chosen is None:
        raise MaskobanError(f"{name}: unknown suffix; expected {', '.join(suffixes())}, or / for a folder")
    return chosen


def _files(name: str) -> list[str]:
    """The files that ``name`` stands for."""
    if name == "-" or not os.path.isdir(name):
        return [name]
    with file_errors(name, "read"):
        files = level_files(name)
    if files:
        return files
    if os.path.isfile(os.path.join(name, "job.json")):
        raise FileError(name, f"a dataset; {_EXPORT} {name} levels.sok makes a level file of it")
    if any(Path(name).glob("*.parquet")):
        raise FileError(name, f"a folder of Parquet files; {_EXPORT} makes level files of a dataset")
    raise FileError(name, f"no level files in this folder; expected names with {', '.join(suffixes())}")


def _levels(
    names: list[str], format: Format | None, options: ReadOptions, sources: list[Source]
) -> Iterator[Level]:
    """The levels of these files; their sources are added to ``sources`` when they are opened."""
    for name in names:
        with _opened(name, format, **options) as (source, found):
            sources.append(source)
            yield from _at_least_one(found.read(source), source)


def _at_least_one(items: Iterator[T], source: Source) -> Iterator[T]:
    first = next(items, None)
    if first is None:
        raise source.problem or FileError(source.path, _NO_LEVEL)
    yield first
    yield from items


def _batches(levels: Iterator[Level]) -> Iterator[Tokens]:
    boards = [level.tokens for level in levels]
    return (batch for _, batch in group_by_shape(boards))


@contextmanager
def _opened(
    name: str, format: Format | None = None, **options: Unpack[ReadOptions]
) -> Iterator[tuple[Source, Format]]:
    """A file and its format. A pipe is read as it comes, or copied into a file if the format seeks."""
    if name == "-" and sys.stdin is None:
        raise FileError("-", "standard input is closed")
    with file_errors(name, "read"), ExitStack() as stack:
        file: IO[bytes] = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))
        if file.seekable():
            start = file.tell()
            head = file.read(_HEAD_BYTES)
            file.seek(start)
        else:
            pipe = cast(io.BufferedReader, file)
            head = _first_bytes(pipe)
            file = io.BufferedReader(Prefixed(head, pipe))
        if head.startswith(b"PAR1") and b"\0" in head:
            raise FileError(name, f"a Parquet file; {_EXPORT} makes level files of a dataset")
        found = format or detect(head, name)
        if found.seeks and not file.seekable():
            copy = stack.enter_context(tempfile.TemporaryFile())
            while data := file.read(1 << 20):
                copy.write(data)
                if copy.tell() > _MAX_PIPE_BYTES:
                    raise FileError(name, f"more than {_MAX_PIPE_BYTES:,} bytes from a pipe; expected a file")
            copy.seek(0)
            file = copy
        tiles = str.maketrans(dict(options.get("tiles", {})))
        on_warning = options.get("on_warning")
        yield (
            Source(file, name, strict=options.get("strict", False), tiles=tiles, on_warning=on_warning),
            found,
        )


def _first_bytes(pipe: io.BufferedReader) -> bytes:
    """As much of a pipe as has arrived, and at least as much as tells the formats apart."""
    head = b""
    while len(head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n\v\f")) < 4 and len(head) < _HEAD_BYTES:
        part = pipe.read1(_HEAD_BYTES)
        if not part:
            break
        head += part
    return head


def _check_folder(folder: str, format: str | None) -> None:
    """Refuse a folder that cannot be filled, or that holds levels."""
    if format not in (None, "boxoban"):
        raise MaskobanError(f"{folder}: a folder holds Boxoban files, not {format}; expected a file name")
    there = Path(folder)
    with file_errors(folder, "written"):
        held = level_files(folder) if there.is_dir() else []
        if held:
            first = os.path.basename(held[0])
            raise FileError(folder, f"there are levels in this folder already ({first}); expected none")
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass


def _write_folder(folder: str, levels: Iterator[Level], format: str | None) -> None:
    """Fill a folder with files; they appear together when the last is written."""
    _check_folder(folder, format)
    with file_errors(folder, "written"):
        os.makedirs(folder, exist_ok=True)
    with (
        file_errors(folder, "written"),
        terminate_as_interrupt(),
        tempfile.TemporaryDirectory(suffix=".part", prefix=".maskoban-", dir=folder) as part,
    ):
        for number in itertools.count():
            batch = list(itertools.islice(levels, BOARDS_A_FILE))
            if not batch:
                break
            with open(os.path.join(part, f"{number:03}.txt"), "wb") as out:
                FORMATS["boxoban"].write(out, batch)
        for file in os.listdir(part):
            os.replace(os.path.join(part, file), os.path.join(folder, file))
