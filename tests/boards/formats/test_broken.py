"""Files that a strict reader refuses, each with its one sentence; the others are in test_lenient.py."""

from __future__ import annotations

import io

import numpy as np
import pytest

from maskoban.boards import Level, read
from maskoban.errors import FileError

from .helpers import as_array, write_blocks, write_bytes

TILES = "expected one of # @ $ . * + ? or floor (space, - or _)"
SLC = "<SokobanLevels>{}</SokobanLevels>"


def replaced(data, members):
    """An ``.npz`` file with some of its members replaced, or left out where None."""
    arrays = dict(np.load(io.BytesIO(data))) | members
    np.savez(out := io.BytesIO(), **{name: array for name, array in arrays.items() if array is not None})
    return out.getvalue()


def npz(**members):
    """A good file of two levels of two sizes, but for these members."""
    levels = [Level(Level.parse("#@#").tokens, "one"), Level.parse("#@.#")]
    return replaced(write_bytes("npz", levels), members)


def blocks(**members):
    """A good file of an earlier version, but for these members of its block."""
    good = write_blocks([Level.parse("#@#")])
    return replaced(good, {f"0.{name}": array for name, array in members.items()})


def sizes(count, *sides):
    return np.array([*count.to_bytes(4, "little"), *sides], np.uint8)


TEXT = {
    "empty": ("", ": no level in it; expected at least one board"),
    "only blank lines": ("\n \n\r\n", ": no level in it; expected at least one board"),
    "only text": ("Dear diary,\ntoday I pushed a box.", ": no level in it; expected at least one board"),
    "only comments": ("; 0\n; 1\n", ": no level in it; expected at least one board"),
    "a control character in the name of a solution": (
        "#@$.#\n\nBest Solution (\x7f)\nR\n",
        ", line 3: the control character U+007F in a solution's name; expected text",
    ),
    "a long name of a solution": (
        f"#@$.#\n\nSolution ({'x' * 100_000})\nR\n",
        ", line 3: a solution's name of 100002 characters; expected at most 100000",
    ),
    "letter in a row": ("#####\n#@x.#\n#####", f", line 2, column 3: 'x' is no tile; {TILES}"),
    "letter in the first row": ("##x##\n#@$.#", f", line 1, column 3: 'x' is no tile; {TILES}"),
    "letter in a later level": ("#@#\n\n; 2\n###\n#O#", f", line 5, column 2: 'O' is no tile; {TILES}"),
    "letter beyond ASCII": ("#####\n#@█.#", f", line 2, column 3: '█' is no tile; {TILES}"),
    "tab": (
        "#####\n#@\t.#",
        ", line 2, column 3: a tab inside a board, whose width is unknown; expected spaces, - or _",
    ),
    "row too wide": ("#" * 201, ", line 1, column 201: more than 200 cells in a row"),
    "too many rows": ("#\n" * 201, ", line 201, column 1: more than 200 rows in a board"),
    "too many rows in one line": ("#|" * 201, ", line 1, column 1: more than 200 rows in a board"),
    "run too long": ("#####\n196#9-#", ", line 2, column 5: more than 200 cells in a row"),
    "run-length bomb": ("999999999#", ", line 1, column 1: more than 200 cells in a row"),
    "run-length bomb with a long count": (
        "###\n" + "9" * 5000 + "#",
        ", line 2, column 1: more than 200 cells in a row",
    ),
    "count of nothing": ("#####\n##3", f", line 2, column 3: '3' is no tile; {TILES}"),
    "count of nothing before a bar": ("#####\n#3|##", f", line 2, column 2: '3' is no tile; {TILES}"),
    "moves bomb": (
        "#@#\n\nSolution\n99999999R\n",
        ", line 4, column 1: a run of more than 200 moves in a solution",
    ),
    "moves bomb with a long count": (
        "#@#\n\nSolution\nrr" + "9" * 5000 + "R\n",
        ", line 4, column 3: a run of more than 200 moves in a solution",
    ),
    "too many moves": (
        "#@#\n\nSolution\n" + "rrrrrrrrrr\n" * 10_001,
        ", line 10004: more than 100000 moves in a solution",
    ),
    "too many solutions": (
        "#@#\n\n" + "Solution\nR\n" * 21,
        ", line 43: more than 20 solutions of one level",
    ),
    "comment without an end": (
        "#@#\nComment:\nand so on\n",
        ", line 2: a comment without an end; expected a line Comment-End:",
    ),
    "comment too long": (
        "#@#\n" + "; " + "x" * 60_000 + "\n; " + "x" * 150_000,
        ", line 1: a level's comment of 150000 characters; expected at most 100000",
    ),
    "line too long": ("; " + "x" * 200_000, ", line 1, column 200001: a line of more than 200000 characters"),
    "too much text": ("text\n" * 150_002, ", line 150002: too much text between two boards"),
    "zero byte": (
        "###\n#\0#",
        ", line 2, column 2: the control character U+0000; expected text, XML or .npz",
    ),
    "a picture": (
        b"\x89PNG\r\n\x1a\n\0\0",
        ", line 3, column 1: the control character U+0000; expected text, XML or .npz",
    ),
    "UTF-16 text": (
        "###\n#@#".encode("utf-16"),
        ", line 1, column 4: the control character U+0000; expected text, XML or .npz",
    ),
}

XML = {
    "cut short": (
        "<SokobanLevels><Level>",
        ", line 1, column 23: not well-formed XML: no element found",
    ),
    "mismatched": (
        SLC.format("<Level></L>"),
        ", line 1, column 25: not well-formed XML: mismatched tag",
    ),
    "another kind of file": ("<html/>", ", line 1, column 1: a file of <html>; expected <SokobanLevels>"),
    "a control character in the name of a solution": (
        SLC.format("\n<Level><L>#@$.#</L><Solution Name='&#x7f;'>R</Solution></Level>"),
        ", line 2: the control character U+007F in a solution's name; expected text",
    ),
    "a long name of a solution": (
        SLC.format(f"\n<Level><L>#@$.#</L><Solution Name='{'x' * 100_001}'>R</Solution></Level>"),
        ", line 2: a solution's name of 100001 characters; expected at most 100000",
    ),
    "no levels": (SLC.format(""), ": no level in it; expected at least one board"),
    "no rows": (
        SLC.format("\n<Level></Level>"),
        ", line 2: an empty board; expected rows of # @ $ . * + and floor",
    ),
    "letter in a row": (
        SLC.format("<Level>\n<L>##x</L></Level>"),
        f", line 2, column 6: 'x' is no tile; {TILES}",
    ),
    "row too wide": (
        SLC.format(f"<Level><L>{'#' * 201}</L></Level>"),
        ", line 1, column 226: a row of 201 cells; expected at most 200",
    ),
    "too many rows": (
        SLC.format(f"<Level>{'<L>#</L>' * 201}</Level>"),
        ", line 1, column 1627: more than 200 rows in a board",
    ),
    "row outside": (SLC.format("<L>#</L>"), ", line 1, column 16: an <L> outside of a <Level>"),
    "level in a level": (
        SLC.format("<Level><Level>"),
        ", line 1, column 23: a <Level> inside a <Level>; expected </Level>",
    ),
    "too deep": (SLC.format("<a>" * 20), ", line 1, column 61: elements nested deeper than 16"),
    "own entities": (
        f'<!DOCTYPE SokobanLevels [<!ENTITY a "b">]>{SLC.format("&a;")}',
        ", line 1: a document type with declarations; expected none, for safety",
    ),
    "unknown entity": (
        f'<!DOCTYPE SokobanLevels SYSTEM "x.dtd">{SLC.format("&nbsp;")}',
        ", line 1, column 55: the unknown entity &nbsp;; expected &amp; &lt; &gt; &quot; or &apos;",
    ),
    "unknown encoding": (
        '<?xml version="1.0" encoding="klingon"?>' + SLC,
        ", line 1: an encoding that cannot be read (unknown encoding: klingon); expected UTF-8",
    ),
    "bad moves": (
        SLC.format("<Level><L>#@#</L><Solution>up</Solution></Level>"),
        ", line 1: 'p' is no move (step 2 of a solution); expected one of lurdLURD",
    ),
    "control character": (
        SLC.format("<Level Id='a&#x85;b'><L>#@#</L></Level>"),
        ", line 1: the control character U+0085 in a level's title; expected text",
    ),
    "too much text": (
        SLC.format(f"<Level><Comment>{'x' * 4_000_001}</Comment></Level>"),
        ", line 1: too much text in one level",
    ),
}

NPZ = {
    "cut short": (npz()[:200], ": not a whole .npz file (File is not a zip file)"),
    "another archive": (
        npz(boards=None),
        ": no array named boards in the archive; expected an .npz file with levels",
    ),
    "no sizes": (npz(sizes=None), ": boards holds uint8 of shape (7,); expected whole numbers (n, h, w)"),
    "sizes of another kind": (
        npz(sizes=np.ones((2, 2), np.int16)),
        ": sizes is not an array (n, 2) of bytes",
    ),
    "sizes of another shape": (npz(sizes=np.ones(4, np.uint8)), ": sizes is not an array (n, 2) of bytes"),
    "a size of 0": (
        npz(sizes=np.array([[0, 1]], np.uint8)),
        ": boards holds boards of 0x1; expected 1x1 to 200x200",
    ),
    "larger sizes": (npz(sizes=np.array([[1, 3], [2, 4]], np.uint8)), ": boards is not whole"),
    "notes that are no JSON": (
        npz(notes=as_array("{")),
        ": notes is not the JSON lines that maskoban writes",
    ),
    "notes of the wrong kind": (
        npz(notes=as_array('{"level":0,"title":1}')),
        ": notes is not the JSON lines that maskoban writes",
    ),
    "notes too deep": (
        npz(notes=as_array("[" * 100_000)),
        ": notes is not the JSON lines that maskoban writes",
    ),
    "a number of 5,000 digits": (
        npz(notes=as_array('{"level":' + "1" * 5000 + "}")),
        ": notes is not the JSON lines that maskoban writes",
    ),
    "notes about no level": (
        npz(notes=as_array('{"level":2,"title":"third"}')),
        ": notes about level 2; expected levels 0 to 1 in order",
    ),
    "bad moves": (
        npz(notes=as_array('{"level":1,"solutions":["up"]}')),
        ": level 2: 'p' is no move (step 2 of a solution); expected one of lurdLURD",
    ),
}

BLOCKS = {
    "no sizes": (blocks(sizes=None), ": no 0.sizes in the archive"),
    "sizes too short": (blocks(sizes=sizes(1)), ": 0.sizes is too short"),
    "size of 201": (blocks(sizes=sizes(1, 201, 1)), ": 0.sizes does not hold 1 sizes of 1 to 200"),
    "no boards at all": (blocks(sizes=sizes(0, 1, 3)), ": 0.sizes does not hold 0 sizes of 1 to 200"),
    "billions of boards": (
        blocks(sizes=sizes(4_000_000_000, 64, 64)),
        ": 0.sizes does not hold 4000000000 sizes of 1 to 200",
    ),
    "planes too short": (blocks(sizes=sizes(9, 1, 3)), ": 0.planes does not hold 9 boards of 1x3"),
    "no such tile": (
        blocks(planes=np.full(12, 255, np.uint8)),
        ": 0.planes holds a cell that is no tile",
    ),
    "numbers of another kind": (
        blocks(planes=np.zeros(12)),
        ": 0.planes holds float64 of shape (12,); expected whole numbers (n, h, w)",
    ),
    "notes that are no JSON": (
        blocks(notes=as_array("{")),
        ": 0.notes is not the JSON that maskoban writes",
    ),
    "notes of the wrong kind": (
        blocks(notes=as_array('{"title":[1]}')),
        ": 0.notes is not the JSON that maskoban writes",
    ),
    "notes too deep": (
        blocks(notes=as_array("[" * 100_000)),
        ": 0.notes is not the JSON that maskoban writes",
    ),
    "a number of 5,000 digits": (
        blocks(notes=as_array('{"title":[' + "1" * 5000 + "]}")),
        ": 0.notes is not the JSON that maskoban writes",
    ),
    "too many notes": (
        blocks(notes=as_array('{"title":["a","b"]}')),
        ": 0.notes is not the JSON that maskoban writes",
    ),
    "bad moves": (
        blocks(notes=as_array('{"solutions":[["up"]]}')),
        ": level 1 of block 0: 'p' is no move (step 2 of a solution); expected one of lurdLURD",
    ),
    "a bomb": (
        blocks(planes=np.zeros(20_000_000, np.uint8)),
        ": 0.planes unpacks to 20000128 bytes; expected at most 10000000",
    ),
}

CASES = [
    pytest.param(data, sentence, id=f"{kind}: {name}")
    for kind, table in (("text", TEXT), ("slc", XML), ("npz", NPZ), ("blocks", BLOCKS))
    for name, (data, sentence) in table.items()
]


@pytest.mark.parametrize(("data", "sentence"), CASES)
def test_a_broken_file_gets_its_sentence(tmp_path, data, sentence):
    path = tmp_path / "broken"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(FileError) as caught:
        read(path, strict=True)
    assert str(caught.value) == f"{path}{sentence}"
