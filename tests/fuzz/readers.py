"""Fuzzes the readers of level files: mutated files must give levels or one sentence, soon, and levels must round-trip.

    python -m tests.fuzz.readers --minutes 10 --seed 1

The loop is plain: take a seed file, mutate it, read it leniently, strictly and with the tiles of other letters. What a
reader may not do is raise anything but ``MaskobanError``, take long for a small file, warn when it is strict, refuse
leniently what it reads strictly, or return a collection that the writers cannot keep.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator

import numpy as np

from maskoban.boards import FORMATS, Collection, Level, Source, detect
from maskoban.errors import FileError
from tests.fuzz.report import Budget, Report, main

ROOM = "#####\n#@$.#\n#####"

#: Pieces that mean something to a reader.
TOKENS = [
    *(letter.encode() for letter in "#@$.*+?-_ |;:0123456789()<>&\n\r\t\0"),
    *b"\n\n|\r\n|Title: x\n|Author: y\n|Comment:\n|Comment-End:\n|Solution\n|Solution/Moves 1/1\n|lurdLURD".split(
        b"|"
    ),
    *b"Savegame\n|Snapshot\n|Collection: z\n|99999999|<L>|</L>|<Level Id='a'>|</Level>|<!DOCTYPE a [".split(
        b"|"
    ),
    *b'<![CDATA[|]]>|&#x85;|&amp;|{"level":0}|\xff\xfe|\xef\xbb\xbf|\x1a|\x7f|\x85|\xc3\x28'.split(b"|"),
    ROOM.encode() + b"\n",
]

#: The letters of another program, and the tiles that they are read as.
OTHER_LETTERS = str.maketrans("xoy", "#$@")

#: CPU seconds that reading one input of at most ``MAX_BYTES`` may take.
MAX_SECONDS = 20.0
MAX_BYTES = 20_000


def seeds() -> list[bytes]:
    """Small files of every format, and some texts in the styles people use."""
    rng = np.random.default_rng(0)
    room = Level.parse(ROOM).tokens
    levels = [
        Level(room, "First", "Ann", "a comment\n\nof lines", ("R",)),
        Level(rng.integers(0, 8, (4, 6)), "Second"),
        Level(rng.integers(0, 8, (7, 3))),
    ]
    files = []
    for name in FORMATS:
        FORMATS[name].write(out := io.BytesIO(), levels[:1] if name == "npy" else levels)
        files.append(out.getvalue())
    arrays = {
        "0.sizes": np.array([1, 0, 0, 0, 1, 1], np.uint8),
        "0.planes": np.array([128, 0, 0, 0], np.uint8),
    }
    notes = np.frombuffer(json.dumps({"title": ["old"]}).encode(), np.uint8)
    np.savez(blocks := io.BytesIO(), **arrays, **{"0.notes": notes})  # type: ignore[arg-type]
    files.append(blocks.getvalue())
    texts = [
        f"Title: A set\nAuthor: Ann\n\n{ROOM}\nTitle: Level 1\n\n{ROOM}\nTitle: Level 2\n",
        f"1\n{ROOM}\nTitle: Spade\nAuthor: Bob\n\n2\n{ROOM}\nTitle: Heart\n",
        f"A set\n\nintroduction\n\nfirst\n{ROOM}\n\nsecond\n\n5#|#@$.#\n5#|\n\nSolution\n2r3U\n",
        f"{ROOM}\n\nBest Solution 1/1 (Optimizer)\nR\n\nSnapshot 1\nr\n\nComment:\nno end\n\n{ROOM}\n",
        "xxxxx\nxyo.x\nxxxxx\n",
    ]
    return files + [text.encode() for text in texts]


def mutations(seed: int) -> Iterator[bytes]:
    """Mutated seed files, without end."""
    rng = random.Random(seed)
    files = seeds()
    while True:
        data = bytearray(rng.choice(files))
        for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 20))):
            place = rng.randrange(len(data) + 1)
            other = rng.choice(files)
            start = rng.randrange(len(other))
            match rng.randrange(7):
                case 0:
                    data[place : place + 1] = bytes([rng.randrange(256)])
                case 1:
                    del data[place : place + rng.choice((1, 2, 10, 100))]
                case 2:
                    data[place:place] = rng.choice(TOKENS)
                case 3:
                    data[place:place] = rng.choice(TOKENS) * rng.choice((2, 30, 1000))
                case 4:
                    data[place:place] = data[place : place + rng.choice((5, 50, 500))]
                case 5:
                    data[place:place] = other[start : start + rng.choice((5, 50, 500))]
                case 6:
                    data[place:] = other[start:]
        yield bytes(data[:MAX_BYTES])


def read(data: bytes, name: str, strict: bool = False, tiles: bool = False) -> Collection | None:
    """What one reader makes of a file; None if it refuses it. Raises whatever is a bug."""
    sentences: list[FileError] = []
    source = Source(io.BytesIO(data), "file", strict=strict, on_warning=sentences.append)
    source.tiles = OTHER_LETTERS if tiles else {}
    levels: list[Level] | None = None
    try:
        levels = list(FORMATS[name].read(source))
        assert not (strict and sentences), "a strict reader warned"
    except FileError as error:
        sentences.append(error)
    for sentence in map(str, sentences):
        assert sentence.startswith("file"), sentence
        assert "\n" not in sentence, sentence
    return source.collection.with_levels(levels) if levels else None


def check(data: bytes, name: str) -> dict[str, int]:
    """Read in all ways; what became of it, or whatever is a bug."""
    found = {"lenient": read(data, name), "strict": read(data, name, strict=True)}
    if FORMATS[name].is_text:
        found["tiles"] = read(data, name, tiles=True)
    for collection in found.values():
        for target in ("sok", "xsb", "slc", "npz") if collection else ():
            assert collection is not None
            FORMATS[target].write(out := io.BytesIO(), collection)
            again = read(out.getvalue(), target, strict=True)
            assert again == collection, f"{target} does not keep the collection: {again}"
    return {
        **{f"{way} levels": len(list(found[way] or ())) for way in found},
        "refusals": sum(collection is None for collection in found.values()),
    }


def run(budget: Budget, seed: int = 0) -> Report:
    """Fuzz as long as the budget says."""
    report = Report()
    readers = ["xsb", "slc", "npz", "npy"]
    for data in mutations(seed):
        if not budget.left(report):
            break
        report.inputs += 1
        # The reader of this content, and sometimes another one.
        for name in {detect(data).name, readers[report.inputs % 16 % len(readers)]}:
            with report.checking(lambda name=name, data=data: f"{name}: {data!r}", MAX_SECONDS):
                report.outcomes.update(check(data, name))
    return report


if __name__ == "__main__":
    main(run, "Fuzz the readers of level files.")
