"""No bytes whatever bring a reader down: it gives levels or a sentence, soon, in bounded memory."""

from __future__ import annotations

import io
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maskoban.boards import FORMATS, Level, Source, detect
from maskoban.boards.formats.arrays import read_npz_boards
from maskoban.boards.formats.regular import regular_boards
from maskoban.errors import MaskobanError

from ..strategies import TRAPS, collections
from .helpers import read_bytes, write_blocks, write_bytes

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
        levels += read_bytes(data, name)
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
            assert attempt(None, write_bytes(name, levels)) == levels


regular = st.lists(st.sampled_from(["; 1", "#@#", "#.#", "...", "   ", "# ", "", "\r"]), max_size=9)


@given(data=st.one_of(made_of_pieces, regular.map(lambda lines: "\n".join(lines).encode())))
@settings(max_examples=300)
def test_the_fast_reader_never_disagrees(data):
    boards = regular_boards(data)
    if boards is not None:
        assert boards.tolist() == [level.tokens.tolist() for level in attempt("xsb", data)]


@pytest.mark.parametrize("name", ["xsb", "sok", "slc", "npz", "npy", "blocks"])
@given(levels=collections, data=st.data())
@settings(max_examples=150)
def test_mutated_files(name, levels, data):
    if name == "npy":
        levels = levels[:1]  # one size
    mutated = bytearray(write_blocks(levels) if name == "blocks" else write_bytes(name, levels))
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
    attempt({"sok": "xsb", "blocks": "npz"}.get(name, name), bytes(mutated))
    if name in ("npz", "blocks"):
        with suppress(MaskobanError):
            list(read_npz_boards(Source(io.BytesIO(bytes(mutated)), "file")))


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
    count = sum(1 for _ in FORMATS["xsb"].read(Source(io.BufferedReader(Long()), "long")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 5_000
    assert peak < 1e6
