"""Level files in JavaScript: the same levels, texts and complaints as Python's."""

from __future__ import annotations

import io

import pytest

from maskoban.boards import FORMATS, Level, stream_file
from maskoban.errors import MaskobanError
from tests.site.conftest import Node

BOARD = "#####\n#@$.#\n#####"
TEXTS = {
    "one": BOARD,
    "numbers": f"; 7\n{BOARD}\n\n; 8\n{BOARD}\n",
    "sok": f"Author: Ada\n\nOne\n{BOARD}\n\nAuthor: Bo\nComment:\nno\n  go\nComment-End:\nSolution\nR\n\n2\n{BOARD}\n",
    "title below": f"{BOARD}\n; its title\n; more\n\n{BOARD}\nTitle: late\nSolution: 2R\n",
    "run lengths": "5#|#@$.#|5#\n\n3#2-#|#@-$.#|6#|",
    "ragged": "\n  ####\n###@ #\n# $. #\n######\n\n",
    "dos": f"{BOARD}\n\nEnd".replace("\n", "\r\n") + "\x1a",
    "floor": "#?-\n---\n",
    "text first": f"A collection\nof two\n\n\nLevel one\n\n{BOARD}\n\n{BOARD}\nSolution/Moves\nRrLl\nuD\n",
    "comment behind ;": f"{BOARD}\n; Comment:\n; a\n; Comment-End:\n",
    "slc": (
        '<?xml version="1.0"?>\n<!DOCTYPE x>\n<SokobanLevels><Title>Set &amp; more</Title><!-- a -->'
        '<LevelCollection Copyright="Ada"><Level Id="one"><L>###</L><L>#@#</L><L/></Level>\n'
        "<Level Id='t&#233;o' Copyright=\"Bo\"><L>#$.@</L><Comment><![CDATA[a < b]]></Comment><Solution>l L</Solution>"
        "</Level></LevelCollection></SokobanLevels>"
    ),
}
WRONG = {
    "nothing": "no board here\n",
    "letter": "#####\n#@x.#\n#####",
    "tab": "####\n#@\t#\n####",
    "open comment": f"{BOARD}\nComment:\nno end\n",
    "wide": "#" * 65,
    "tall": "#@#\n" * 65,
    "long run": "99#\n",
    "control": f"{BOARD}\n\x01\n",
    "root": "<Levels></Levels>",
    "tile in slc": "<SokobanLevels>\n<Level><L>#x</L></Level></SokobanLevels>",
    "row alone": "<SokobanLevels><L>#</L></SokobanLevels>",
}


def described(level: Level) -> dict[str, object]:
    fields = {name: getattr(level, name) for name in ("title", "author", "comment")}
    return {"board": str(level), **fields, "solutions": list(level.solutions)}


def read(text: bytes) -> list[Level]:
    return list(stream_file(io.BytesIO(text), "content"))


@pytest.mark.parametrize("name", TEXTS)
def test_levels_are_read_as_python_reads_them(node: Node, name: str) -> None:
    text = TEXTS[name]
    expected = [described(level) for level in read(text.encode())]
    assert node("readLevels", text=text) == expected
    assert node("readLevels", bytes=list(text.encode())) == expected


def test_old_encodings_are_read_line_by_line(node: Node) -> None:
    data = BOARD.encode() + b"\nTitle: caf\xe9\nAuthor: " + "Zoë".encode() + b"\n"
    assert node("readLevels", bytes=list(data)) == [described(level) for level in read(data)]


@pytest.mark.parametrize("name", WRONG)
def test_complaints_are_those_of_python(node: Node, name: str) -> None:
    with pytest.raises(MaskobanError) as python:
        read(WRONG[name].encode())
    with pytest.raises(ValueError, match=r"\w") as page:
        node("readLevels", text=WRONG[name])
    assert str(page.value) == str(python.value).removeprefix("content").lstrip(",: ")


@pytest.mark.parametrize("format", ["xsb", "sok", "slc"])
def test_levels_are_written_as_python_writes_them(node: Node, format: str) -> None:
    levels = [level for text in TEXTS.values() for level in read(text.encode())]
    odd = ("## title", "Title: x", "; behind", "a \"quoted\" <title> & 'more'")
    levels += [
        Level.parse(BOARD),
        Level(levels[0].tokens, "t", "a", "one\nComment-End:\ntwo", ("R" * 250, "r")),
    ]
    levels += [Level(levels[0].tokens, title) for title in odd]
    FORMATS[format].write(out := io.BytesIO(), levels)
    written = node("writeLevels", levels=[described(level) for level in levels], format=format)
    assert written == out.getvalue().decode()


def test_numpy_files_are_refused_in_one_sentence(node: Node) -> None:
    with pytest.raises(ValueError, match="a NumPy file, which only maskoban itself reads"):
        node("readLevels", bytes=list(b"PK\x03\x04rest"))
