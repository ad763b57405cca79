"""Level files in JavaScript: the same levels, texts and complaints as Python's."""

from __future__ import annotations

import io

import pytest

from maskoban.boards import FORMATS, MAX_SIDE, Level, stream_file
from maskoban.errors import MaskobanError
from tests.boards.formats.habits import HABITS
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
    "floor": "#?-\n@--\n",
    "odd boards": "Board:\n#?-\n---\n\n; Board:\n$\n\nBoard:\nno board\n",
    "comment without an end": f"{BOARD}\nComment:\none\n\ntwo\n\n{BOARD}\nComment:\nthree\n",
    "drawn comment": f"{BOARD}\nComment:\n\n{BOARD}\n\nComment_End:\n",
    "titles below": f"Title: Set\nAuthor: Ada\n\n{BOARD}\n\nTitle: One\n\n{BOARD}\n\nTitle: Two\nAuthor: Bo\n",
    "titles above": f"Title: One\n\n{BOARD}\n\nTitle: Two\nAuthor: Bo\n\n{BOARD}\n",
    "numbers above": f"1\n{BOARD}\nTitle: Spade\n2\n{BOARD}\nTitle: Heart\n",
    "solutions": f"{BOARD}\nBest Solution 1/1 (A)\nR\nSnapshot\nr\n\nSolution 2: x\nlR\n{BOARD}\n",
    "one wide level": f"Big\n{'#' * 65}\n#@$.#\n\nSmall\n{BOARD}\n",
    "one damaged level": f"{BOARD}\n\n#####\n#@x.#\n#####\n\nlast\n{BOARD}\n# frame #\n",
    "control characters": f"a\x01b\n{BOARD}\n; c\x85d\n",
    "text": f"## Heading\n\n|---|---|\n# ...\n\n3 #\n{BOARD}\n",
    "one bad level in slc": (
        "<SokobanLevels><Level Id='a'><L>#x#</L></Level><Level Id='b&#x85;'><L>#@$.#</L></Level></SokobanLevels>"
    ),
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
    "other letters": "A set\n\nxxxxx\nxyo.x\nxxxxx\n",
    "tab": "####\n#@\t#\n####",
    "wide": "#@" + "#" * 63,
    "tall": "#@#\n" + "###\n" * 64,
    "long run": "#@99#\n",
    "control": "ab\n\x01\n",
    "control characters": f"{BOARD}\n" + "\x01" * 17,
    "root": "<Levels></Levels>",
    "tile in slc": "<SokobanLevels>\n<Level><L>#x</L></Level></SokobanLevels>",
    "row alone": "<SokobanLevels><L>#</L></SokobanLevels>",
}


def described(level: Level) -> dict[str, object]:
    fields = {name: getattr(level, name) for name in ("title", "author", "comment")}
    return {"board": str(level), **fields, "solutions": list(level.solutions)}


def read(text: bytes) -> list[Level]:
    return list(stream_file(io.BytesIO(text), "content", MAX_SIDE, on_warning=lambda warning: None))


@pytest.mark.parametrize("name", HABITS)
def test_collections_of_many_authors_are_read_as_python_reads_them(node: Node, name: str) -> None:
    text = HABITS[name][0]
    assert node("readLevels", text=text) == [described(level) for level in read(text.encode())]


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
    # The page keeps no names of solutions and no saved games.
    levels = [
        Level(each.tokens, each.title, each.author, each.comment, tuple(map(str, each.solutions)))
        for each in levels
    ]
    FORMATS[format].write(out := io.BytesIO(), levels)
    written = node("writeLevels", levels=[described(level) for level in levels], format=format)
    assert written == out.getvalue().decode()


def test_numpy_files_are_refused_in_one_sentence(node: Node) -> None:
    with pytest.raises(ValueError, match="a NumPy file, which only maskoban itself reads"):
        node("readLevels", bytes=list(b"PK\x03\x04rest"))
