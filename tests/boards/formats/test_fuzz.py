"""No bytes whatever bring a reader down: it gives levels or a sentence, soon, in bounded memory."""

from __future__ import annotations

import io
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maskoban.boards import FORMATS, Level, MaskobanError, detect
from maskoban.boards.formats.boxoban import boards_of_text
from maskoban.boards.formats.npz import boards_of_npz

from ..strategies import TRAPS, collections

READERS = ["xsb", "slc", "npz", "npy"]

#: Pieces that mean something to some reader, so that what is made of them goes deep.
PIECES = [
    *TRAPS,
    *"#@$.*+?-_ |;:0123456789()<>&\n\r\t\0",
    "\n\n",
    "99999999",
    "lurdLURD",
    "<SokobanLevels>",
    "</SokobanLevels>",
    "<Level Id='a'>",
    "</Level>",
    "<L>",
    "</L>",
    "<Comment>",
    "<Solution>",
    "<!DOCTYPE a [",
    "<![CDATA[",
    "]]>",
    "&#x85;",
    "\x85\u2028",
]
made_of_pieces = st.lists(st.sampled_from(PIECES), max_size=60).map(lambda parts: "".join(parts).encode())


def attempt(name, data):
    """Levels, or the refusal; anything else is a failure of ours and comes through."""
    levels, sentence = [], "file"
    try:
        levels += FORMATS[name].read(io.BytesIO(data), "file")
    except MaskobanError as error:
        levels, sentence = [], str(error)
    assert sentence.startswith("file")
    assert "\n" not in sentence
    assert all(isinstance(level, Level) for level in levels)
    return levels


@pytest.mark.parametrize("name", READERS)
@given(data=st.one_of(st.binary(max_size=300), made_of_pieces))
@example(data=b"|")
@example(data=b"")
@settings(max_examples=400)
def test_any_bytes(name, data):
    attempt(name, data)
    detect(data)


@given(data=made_of_pieces)
@settings(max_examples=300)
def test_what_was_read_from_anything_can_be_written_and_read(data):
    levels = attempt("xsb", data)
    for name in ("xsb", "sok", "slc", "npz"):
        if levels:
            FORMATS[name].write(out := io.BytesIO(), levels)
            assert attempt(detect(out.getvalue()), out.getvalue()) == levels


regular = st.lists(st.sampled_from(["; 1", "#@#", "#.#", "...", "   ", "# ", "", "\r"]), max_size=9)


@given(data=st.one_of(made_of_pieces, regular.map(lambda lines: "\n".join(lines).encode())))
@settings(max_examples=300)
def test_the_fast_reader_never_disagrees(data):
    boards = boards_of_text(data)
    if boards is not None:
        assert boards.tolist() == [level.tokens.tolist() for level in attempt("xsb", data)]


@pytest.mark.parametrize("name", ["xsb", "sok", "slc", "npz", "npy"])
@given(levels=collections, data=st.data())
@settings(max_examples=150)
def test_mutated_files(name, levels, data):
    if name == "npy":
        levels = levels[:1]  # one size
    FORMATS[name].write(out := io.BytesIO(), levels)
    mutated = bytearray(out.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(mutated) - 1))
        match data.draw(st.sampled_from(["change", "cut", "double"])):
            case "change":
                mutated[place] = data.draw(st.integers(0, 255))
            case "cut":
                del mutated[place : place + data.draw(st.integers(1, 20))]
            case "double":
                mutated[place:place] = mutated[place : place + 20]
        if not mutated:
            break
    attempt("xsb" if name == "sok" else name, bytes(mutated))
    if name == "npz":
        with suppress(MaskobanError):
            list(boards_of_npz(io.BytesIO(bytes(mutated)), "file"))


def header(kind, fortran, shape):
    """The beginning of an .npy file that says so much of itself."""
    np.lib.format.write_array_header_1_0(
        out := io.BytesIO(), {"descr": kind, "fortran_order": fortran, "shape": shape}
    )
    return out.getvalue()


HOSTILE = {
    "counts": b"#" + b"9" * 190_000 + b"x\n",
    "moves": b"#@#\n\nSolution\n" + b"r\n" * 40_000,
    "moves that are none": b"#@#\n\nSolution\n" + b"r1" * 90_000 + b"\n",
    "solutions": b"#@#\n\n" + b"Solution\n99999r\n" * 20_000,
    "blank lines": b"\n" * 200_000,
    "bars": b"|" * 190_000,
    "spaces": b"Solution" + b" " * 190_000 + b"x",
    "keys": b"#@#\n" + b"Comment: x\n" * 40_000,
    "depth": b"<SokobanLevels>" + b"<a>" * 300_000,
    "boards that are not there": header("<i8", False, (10**12, 64, 64)),
    "as many in Fortran order": header("<i8", True, (10**12, 64, 64)),
    "some in Fortran order": header("<i8", True, (10_000, 64, 64)),
    "a header of gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 200_000,
    "digits": b"\x93NUMPY\x01\x00\x00\x20{'descr': '|u1', 'fortran_order': False, 'shape': (" + b"1" * 9000,
    "attributes": b"<SokobanLevels " + b"".join(b"a%d='' " % i for i in range(100_000)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_cost_little_time_and_memory(data):
    started = time.process_time()
    tracemalloc.start()
    attempt(detect(data), data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    assert time.process_time() - started < 30


def test_a_long_collection_is_streamed():
    """Five thousand levels, of which never more than one is in memory."""

    class Long(io.RawIOBase):
        left = 100

        def readable(self):
            return True

        def readinto(self, buffer):
            self.left -= 1
            data = b"; 1\n#@#\n\n" * 50 if self.left >= 0 else b""
            buffer[: len(data)] = data
            return len(data)

    tracemalloc.start()
    count = sum(1 for _ in FORMATS["xsb"].read(io.BufferedReader(Long()), "long"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000
    assert peak < 1e6
