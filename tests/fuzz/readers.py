"""Fuzzes the readers of level files: mutated files must give levels or one sentence, soon, and levels must round-trip.

    python -m tests.fuzz.readers --minutes 10 --seed 1

The loop is plain: take a seed file, mutate it, read it with every reader. What a reader may not do is raise anything
but ``MaskobanError``, take long for a small file, or return a level that the writers cannot keep.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator

import numpy as np

from maskoban.boards import FORMATS, Level, Source, detect
from maskoban.errors import MaskobanError
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
    *b'<![CDATA[|]]>|&#x85;|&amp;|{"level":0}|\xff\xfe|\xef\xbb\xbf|\x1a|\x85|\xc3\x28'.split(b"|"),
    ROOM.encode() + b"\n",
]

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


def check(data: bytes, name: str) -> list[Level]:
    """Read with one reader; raises whatever is a bug."""
    levels, refusal = [], "file"
    try:
        levels += FORMATS[name].read(Source(io.BytesIO(data), "file"))
    except MaskobanError as error:
        levels, refusal = [], str(error)
    assert refusal.startswith("file"), refusal
    assert "\n" not in refusal, refusal
    for target in ("sok", "xsb", "slc", "npz") if levels else ():
        FORMATS[target].write(out := io.BytesIO(), levels)
        again = list(FORMATS[target].read(Source(io.BytesIO(out.getvalue()), "file")))
        assert again == levels, f"{target} does not keep the levels"
    return levels


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
                levels = check(data, name)
                report.outcomes["levels"] += len(levels)
                report.outcomes["refusals"] += not levels
    return report


if __name__ == "__main__":
    main(run, "Fuzz the readers of level files.")
