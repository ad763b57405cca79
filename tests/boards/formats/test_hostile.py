"""Files made to cost time or memory: linear time, bounded memory, and an end even if the input has none.

Time is guarded twice: the lines of Python that reading runs are counted, which needs no clock; and the CPU times of
large inputs are compared, for what regular expressions and other C code do inside one line.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from maskoban.boards import FORMATS, Level, Source, detect, files, read, read_boards, stream, take
from maskoban.boards.formats.xml import read_slc
from maskoban.errors import FileError, MaskobanError

from .helpers import as_array, read_bytes


def header(kind, fortran, shape):
    """The beginning of an .npy file with this header."""
    np.lib.format.write_array_header_1_0(
        out := io.BytesIO(), {"descr": kind, "fortran_order": fortran, "shape": shape}
    )
    return out.getvalue()


def npz(**arrays):
    np.savez_compressed(out := io.BytesIO(), **arrays)
    return out.getvalue()


def blocks(notes):
    """A file of an earlier version with one level and these notes."""
    sizes, planes = np.array([1, 0, 0, 0, 1, 1], np.uint8), np.array([128, 0, 0, 0], np.uint8)
    return npz(**{"0.sizes": sizes, "0.planes": planes, "0.notes": as_array(json.dumps(notes))})


BOARD = np.zeros((1, 1, 1), np.uint8)

#: Inputs of a size that grows with n, for every reader.
GROWING: dict[str, Callable[[int], bytes]] = {
    "comment-end and blanks": lambda n: b"#@#\ncomment-end" + b" " * n + b"x",
    "comment and blanks": lambda n: b"#@#\ncomment" + b" " * n + b"x",
    "comment, blanks, colon, blanks": lambda n: (
        b"#@#\ncomment" + b" " * (n // 2) + b":" + b" " * (n // 2) + b"x"
    ),
    "title and blanks": lambda n: b"#@#\ntitle" + b" " * n + b"x",
    "solution and blanks": lambda n: b"#@#\nsolution" + b" " * n + b"x:x",
    "solution and slashes": lambda n: b"#@#\nsolution" + b"/ " * (n // 2) + b":x",
    "blanks before a key": lambda n: b"#@#\n" + b" " * n + b"title",
    "semicolons": lambda n: b"#@#\n" + b";" * n,
    "blanks and tabs": lambda n: b"#@#\n" + b" \t" * (n // 2) + b"x",
    "moves that are none": lambda n: b"#@#\n\nSolution\n" + b"r " * (n // 2) + b"x",
    "counts that are none": lambda n: b"#@#\n\nSolution\n" + b"1r" * (n // 2) + b"1\n",
    "a count": lambda n: b"###\n#" + b"9" * n + b"x\n",
    "counts": lambda n: b"###\n" + b"1#" * (n // 2) + b"x\n",
    "bars": lambda n: b"|" * n,
    "blanks behind a semicolon": lambda n: b"#@#\n;" + b" " * n + b"x\n",
    "digits behind a semicolon": lambda n: b"#@#\n; " + b"1" * n + b"x\n",
    "lines of blanks behind semicolons": lambda n: b"#@#\n" + (b";" + b" " * 98 + b"\n") * (n // 100),
    "blank lines": lambda n: b"#@#\n" + b"\n" * n,
    "blank lines behind semicolons": lambda n: b"#@#\n" + b";\n" * n,
    "blank lines in a comment": lambda n: b"#@#\nComment:\n" + b"\n" * n + b"Comment-End:\n",
    "headings of solutions": lambda n: b"#@#\n\n" + b"Solution\n" * n,
    "solutions": lambda n: b"#@#\n\n" + b"Solution\nr\n" * (n // 2),
    "comments": lambda n: b"#@#\n" + b"Comment: x\n" * n,
    "comments without an end": lambda n: b"#@#\nComment:\n\n" * (n // 4),
    "one comment without an end": lambda n: b"#@#\nComment:\n" + b"\n#@#\n" * (n // 4),
    "text and boards in a comment without an end": lambda n: b"#@#\n\n" + b"Comment:\n\nx\n#@#\n" * (n // 8),
    "a block above a board in a comment without an end": lambda n: (
        b"#@#\nComment:\n\n" + b"x\n" * (n // 2) + b"#@#\n"
    ),
    "rulers": lambda n: b"#@#\n" + b"---\n" * n,  # more of them than a board has rows
    "rulers around boards": lambda n: b"-----\n#@#\n-----\n\n" * (n // 16),
    "rows behind tabs": lambda n: b"\t###\n" + b"\t#@#\n" * (n // 4),
    "headings above blank lines": lambda n: b"#@#\n\n" + b"Solution\n\nrR\n\n" * (n // 14),
    "moves without a heading": lambda n: b"#@#\n\n" + b"lurdlurdlurd\n\n" * (n // 14),
    "numbered blocks": lambda n: b"*****\nMaze: 1\nx\n\n#@#\n\n" * (n // 24),
    "XML: solutions of another program": lambda n: (
        b"<a><Level><Row>#@#</Row>" + b"<Solution><Steps>r</Steps></Solution>" * (n // 32) + b"</Level></a>"
    ),
    "XML: maps of another program": lambda n: (
        b"<a><Level>" + b"<Map><Row>#@#</Row></Map>" * (n // 16) + b"</Level></a>"
    ),
    "blank lines in a comment without an end": lambda n: b"#@#\nComment:\n" + b"\n" * n + b"#@#\n",
    "boards in a comment without an end": lambda n: b"#@#\n\n" + b"Comment:\n\n#@#\n" * (n // 8),
    "titles that may belong to both": lambda n: b"Title: x\n\n" + b"#@#\n\nTitle: x\n\n" * (n // 8),
    "saved games": lambda n: b"#@#\n\n" + b"Snapshot\nr\n" * (n // 2),
    "headings": lambda n: b"#@#\nsolution(" + b"/(" * (n // 2) + b":",
    "damaged rows": lambda n: b"#@#\n\n" + b"#x#\n" * (n // 2),
    "damaged boards": lambda n: b"#@x#\n###x#\n\n" * (n // 8),
    "rows that are too long": lambda n: b"#@" + b"#" * n,
    "marks of boards": lambda n: b"Board:\n" * (n // 2) + b"#@#\n",
    "walls of other letters": lambda n: b"xxx\n" * (n // 2),
    "control characters": lambda n: b"#@#\n" + b"\x85".join([b"a"] * 10) + b"\n" * n,
    "XML: of another program": lambda n: b"<a>" + b"<Level><Row>#@#</Row></Level>" * (n // 8) + b"</a>",
    "dots": lambda n: b"#@#\n\n" + b"...\n\n" * (n // 2),
    "lines that look like rows": lambda n: b"#@#\n" + b"#@#\n\n" * (n // 2),
    "XML: empty comments": lambda n: xml("<Level><L>#@#</L>" + "<Comment/>" * n + "</Level>"),
    "XML: blank comments": lambda n: xml(f"<Level><L>#@#</L><Comment>{chr(10) * n}</Comment></Level>"),
    "XML: blanks in a title": lambda n: xml(f"<Level Id='{' ' * n}x'><L>#@#</L></Level>"),
    "XML: attributes": lambda n: xml("<Level " + " ".join(f"a{i}=''" for i in range(n // 4)) + "/>"),
    "XML: blanks in a row": lambda n: xml(f"<Level><L>{' ' * n}x</L></Level>"),
    "npz: newlines in a comment": lambda n: npz(
        boards=BOARD, notes=as_array(json.dumps({"level": 0, "comment": "\n" * n}))
    ),
    "npz: blanks in a title": lambda n: npz(
        boards=BOARD, notes=as_array(json.dumps({"level": 0, "title": " " * n + "x"}))
    ),
    "npz: digits": lambda n: npz(boards=BOARD, notes=as_array('{"level":' + "1" * n + "}")),
    "npz: newlines in a comment of earlier versions": lambda n: blocks({"comment": ["\n" * n]}),
    "npz: boards of two sizes": lambda n: written("npz", rooms(n // 16)),
    "npz: solutions": lambda n: written("npz", rooms(1, solutions=("R" * min(n, 10_000),) * 20)),
    "npz: notes": lambda n: written("npz", rooms(n // 32, title="x")),
    "npz: other arrays": lambda n: npz(boards=BOARD, **{f"a{i}": BOARD for i in range(n // 32)}),
    "npy: boards": lambda n: npy(np.zeros((n, 1, 1), np.uint8)),
    "npy: boards of wide numbers in Fortran order": lambda n: npy(np.zeros((n // 8, 2, 2), np.int64, "F")),
    "npy: blanks in the header": lambda n: header("|u1", False, (1, 1, 1))[:10] + b" " * n,
    "XML: levels": lambda n: written("slc", rooms(n // 32, title="x", solutions=("R",))),
    "levels": lambda n: written("sok", rooms(n // 32, title="x", author="y", comment="z", solutions=("R",))),
}


def written(format: str, levels: list[Level]) -> bytes:
    FORMATS[format].write(out := io.BytesIO(), levels)
    return out.getvalue()


def rooms(n: int, **known) -> list[Level]:
    """Levels of two sizes in turn."""
    two = [Level.parse(text).tokens for text in ("#@$.#", "#@ $.#")]
    return [Level(two[i % 2], **known) for i in range(n)]


def npy(boards: np.ndarray) -> bytes:
    np.save(out := io.BytesIO(), boards)
    return out.getvalue()


def xml(inside: str) -> bytes:
    return f"<SokobanLevels>{inside}</SokobanLevels>".encode()


def read_all(data: bytes) -> None:
    """Read in all ways that the format has."""
    format = detect(data[:4096])
    for strict in (False, True):
        for reader in (format.read, format.read_boards, format.has_metadata):
            source = Source(io.BytesIO(data), "file", strict=strict, on_warning=lambda _: None)
            with suppress(MaskobanError):
                found = reader(source) if reader else ()
                deque([found] if isinstance(found, bool) else found, maxlen=0)


def steps(data: bytes) -> int:
    """Calls, lines and returns of Python while a file is read."""
    count = 0

    def trace(*_: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read_all(data)
    finally:
        sys.settrace(before)
    return count


def grows_too_fast(make: Callable[[int], bytes]) -> bool:
    """Whether twice the input takes more than twice as many more steps: 4 times if quadratic; 3 is between."""
    small, middle, large = (steps(make(n)) for n in (500, 1000, 2000))
    return large - middle > 3 * (middle - small) + 2000


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_steps_grow_no_faster_than_the_input(make):
    read_all(make(500))  # what is loaded or cached once
    assert not grows_too_fast(make)


def test_a_quadratic_reader_is_found(monkeypatch):
    def quadratic(source: Source):
        lines = source.file.read().split(b"\n")
        yield from (Level([[0]]) for i in range(len(lines)) for _ in range(i) if lines[i] == b"a board")

    monkeypatch.setitem(FORMATS._values, "xsb", dataclasses.replace(FORMATS["xsb"], read=quadratic))
    assert grows_too_fast(lambda n: b"\n" * (n // 4))


def cpu_seconds(data: bytes) -> float:
    """CPU time of reading in all ways: other processes on the machine do not count."""
    started = time.process_time()
    read_all(data)
    return time.process_time() - started


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_time_grows_no_faster_than_the_input(make):
    """Eight times the input: 8 times the time if linear, 64 times if quadratic; 24 is between, far from both."""
    small, large = make(7_500), make(60_000)
    for _ in range(3):
        seconds = cpu_seconds(large)
        if seconds < 0.05 or seconds < 24 * min(cpu_seconds(small) for _ in range(3)):
            return
    pytest.fail(f"8 times the input took {seconds / cpu_seconds(small):.0f} times as long")


def test_the_comments_that_took_minutes():
    for data in (
        npz(boards=BOARD, notes=as_array(json.dumps({"level": 0, "comment": "\n" * 4_000_000}))),
        xml("<Level><L>#@#</L>" + "<Comment/>" * 500_000 + "</Level>"),
    ):
        assert [level.comment for level in read_bytes(data)] == [""]


HOSTILE = {
    "a count": b"#" + b"9" * 190_000 + b"x\n",
    "rows of one letter": b"#" + b"#\n" * 140_000,
    "comments without an end": b"#@#\nComment:\n\n" * 20_000,
    "moves": b"#@#\n\nSolution\n" + b"r\n" * 40_000,
    "run lengths": (b"#@#\n\n" + b"Solution\n" + b"64r64l" * 700 + b"\n\n") * 90,
    "bars": b"|" * 190_000,
    "depth": b"<SokobanLevels>" + b"<a>" * 300_000,
    "boards that are not there": header("<i8", False, (10**12, 200, 200)),
    "as many in Fortran order": header("<i8", True, (10**12, 200, 200)),
    "some in Fortran order": header("<i8", True, (10_000, 64, 64)),
    "a header of gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 200_000,
    "digits": b"\x93NUMPY\x01\x00\x00\x20{'descr': '|u1', 'fortran_order': False, 'shape': (" + b"1" * 9000,
    "attributes": b"<SokobanLevels " + b"".join(b"a%d='' " % i for i in range(100_000)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_need_little_memory(data):
    tracemalloc.start()
    with suppress(MaskobanError):
        read_bytes(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_a_small_file_of_long_solutions_is_taken_in_small_parts():
    solution = "r" * 100_000
    levels = [Level([[0]], solutions=(solution,) * 20)] * 12
    batch = take(iter(levels))
    assert sum(level.letters for level in batch) < 11_000_000
    assert len(batch) == 4


# --- input without an end


class Endless(io.RawIOBase):
    """A file that begins with ``head`` and then repeats ``body`` for ever; ``fed`` counts what was read."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.left, self.body, self.fed = head, body * (1 + 65536 // len(body)), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if not self.left:
            self.left = self.body
        data, self.left = self.left[: len(buffer)], self.left[len(buffer) :]
        buffer[: len(data)] = data
        self.fed += len(data)
        return len(data)


ENDLESS = {
    "zeros": (b"", b"\0"),
    "blank lines": (b"", b"\n"),
    "blanks": (b"", b" "),
    "text": (b"#@#\n", b"text\n"),
    "hidden text": (b"#@#\n", b":: text\n"),
    "ends of comments": (b"#@#\n", b"Comment-End:\n"),
    "a comment": (b"#@#\nComment:\n", b"\n"),
    "rows": (b"", b"#####\n"),
    "rows on one line": (b"", b"#|"),
    "dots": (b"#@#\n\n", b"...\n"),
    "digits": (b"#", b"1"),
    "moves": (b"#@#\n\nSolution\n", b"r\n"),
    "elements": (b"<SokobanLevels>", b"<a/>"),
    "XML comments": (b"<SokobanLevels>", b"<!-- a -->"),
    "a tag": (b"<SokobanLevels", b" "),
    "a level": (b"<SokobanLevels><Level>", b"<L>#</L>"),
    "comments of a level": (b"<SokobanLevels><Level><L>#</L>", b"<Comment/>"),
}


@pytest.mark.parametrize(("head", "body"), ENDLESS.values(), ids=ENDLESS)
def test_input_without_an_end_ends_with_one_sentence(monkeypatch, head, body):
    for reader in (lambda: list(stream("-")), lambda: read_boards("-")):
        source = Endless(head, body)
        monkeypatch.setattr(sys, "stdin", type("Pipe", (), {"buffer": io.BufferedReader(source)}))
        with pytest.raises(FileError, match=r"^-, line "):
            reader()
        assert source.fed < 25_000_000


def test_an_archive_from_an_endless_pipe(monkeypatch):
    monkeypatch.setattr(files, "_MAX_PIPE_BYTES", 10_000_000)
    pipe = io.BufferedReader(Endless(b"PK\x03\x04", b"x"))
    monkeypatch.setattr(sys, "stdin", type("Pipe", (), {"buffer": pipe}))
    with pytest.raises(FileError, match=r"^-: more than 10,000,000 bytes from a pipe; expected a file$"):
        read("-")


@pytest.mark.parametrize("limit", ["_MAX_CELLS", "_MAX_BOARDS"])
def test_endless_levels_are_too_many_for_memory(monkeypatch, limit):
    monkeypatch.setattr(files, limit, 100_000)
    pipe = io.BufferedReader(Endless(b"", b"#@#\n\n"))
    monkeypatch.setattr(sys, "stdin", type("Pipe", (), {"buffer": pipe}))
    with pytest.raises(FileError, match=r"^-: more than .* boards or .* cells$"):
        read_boards("-")


def test_endless_levels_in_xml_are_streamed():
    pipe = io.BufferedReader(Endless(b"<SokobanLevels>", b"<Level><L>#@#</L></Level>"))
    levels = read_slc(Source(pipe, "endless.slc"))
    assert all(str(next(levels)) == "#@#" for _ in range(1000))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero on this system")
@pytest.mark.parametrize(
    "command",
    [
        "corpus info /dev/zero",
        "solve /dev/zero",
        "convert /dev/zero zero.npz",
        "evaluate --boards /dev/zero --out out",
    ],
)
def test_commands_end_on_endless_input(tmp_path, command):
    done = subprocess.run(
        [sys.executable, "-m", "maskoban", *command.split()], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("maskoban: /dev/zero, line 1, column ")
    assert done.stderr.count("\n") == 1


def test_a_command_ends_on_an_endless_pipe():
    command = f"yes '#####' | {sys.executable} -m maskoban corpus info -"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "maskoban: -, line 150002: too much text between two boards\n"
