"""Collections in the styles people write them, read as their authors meant; texts that are no collections are none."""

from __future__ import annotations

import io
import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskoban.boards import (
    FORMATS,
    Collection,
    Level,
    LevelFileWarning,
    Moves,
    Source,
    detect,
    name_of,
    read,
    read_collection,
    stream,
    stream_collection,
    write,
)
from maskoban.boards.formats.registry import MAX_WARNINGS
from maskoban.errors import FileError

from ..strategies import collections, comments, one_line
from .habits import HABITS, HALL, ROOM, Habit, level
from .helpers import write_bytes

FIELD = f"{'#' * 127}\n" + f"#@$.{' ' * 122}#\n" * 125 + "#" * 127  # wrong for a solver, fine for a reader
WIDE = f"{'#' * 300}\n#@$.#"


#: What readers expect of every kind of file that was once refused or read wrongly.
ROWS: dict[str, Habit] = {
    **HABITS,
    "levels beyond every limit are skipped, others are read": (
        f"Small\n{ROOM}\n\nBig\n{WIDE}\n\nAlso small\n{HALL}\n",
        Collection([level("Small"), level("Also small", board=HALL)]),
        [(7, "a level ('Big') is skipped: more than 200 cells in a row")],
    ),
    "127x127": (f"Field\n{FIELD}\n", Collection([level("Field", board=FIELD)]), []),
    "a comment that ends at a board": (
        f"{ROOM}\nComment:\nfirst\n\nsecond\n\n{HALL}\nComment:\nthird\n",
        Collection([level(comment="first\n\nsecond"), level(comment="third", board=HALL)]),
        [
            (4, "a comment without an end; expected a line Comment-End:"),
            (12, "a comment without an end; expected a line Comment-End:"),
        ],
    ),
    "a comment with a board in it that does end": (
        f"{ROOM}\nComment:\nnot this:\n\n{HALL}\n\nbut that\nComment-End:\n",
        Collection([level(comment=f"not this:\n\n{HALL}\n\nbut that")]),
        [],
    ),
    "ends of comments in other words": (
        f"{ROOM}\nComment:\none\nComment End:\n\n{ROOM}\nComment:\ntwo\nComment_end:\n",
        Collection([level(comment="one"), level(comment="two")]),
        [],
    ),
    "header, titles below": (
        f"Title: My Set\nAuthor: Ann\nEmail: ann@here\n\n{ROOM}\nTitle: Level 1\n\n"
        f"{HALL}\nTitle: Level 2\nAuthor: Bo\n",
        Collection(
            [level("Level 1", "Ann"), level("Level 2", "Bo", board=HALL)], "My Set", "Ann", "ann@here"
        ),
        [],
    ),
    "header, titles below, blank lines on both sides": (
        f"Title: My Set\n\n{ROOM}\n\nTitle: One\nAuthor: Ann\n\n{HALL}\n\nTitle: Two\n",
        Collection([level("One", "Ann"), level("Two", board=HALL)], "My Set"),
        [],
    ),
    "header directly above, titles below": (
        f"Title: My Set\nAuthor: Ann\n{ROOM}\nTitle: One\n\n{HALL}\nTitle: Two\n",
        Collection([level("One", "Ann"), level("Two", "Ann", board=HALL)], "My Set", "Ann"),
        [],
    ),
    "titles above, blank lines on both sides": (
        f"Title: One\nAuthor: Ann\n\n{ROOM}\n\nTitle: Two\nAuthor: Bo\n\n{HALL}\n",
        Collection([level("One", "Ann"), level("Two", "Bo", board=HALL)]),
        [],
    ),
    "header, titles above": (
        f"Title: My Set\nAuthor: Ann\n\nTitle: One\n{ROOM}\n\nTitle: Two\n{HALL}\n",
        Collection([level("One", "Ann"), level("Two", "Ann", board=HALL)], "My Set", "Ann"),
        [],
    ),
    "header, no other titles": (
        f"Title: My Set\nAuthor: Ann\n\n{ROOM}\n\n{HALL}\n",
        Collection([level(author="Ann"), level(author="Ann", board=HALL)], "My Set", "Ann"),
        [],
    ),
    "number above, title below": (
        f"1\n{ROOM}\nTitle: Spade\nAuthor: Ann\n\n2\n{HALL}\nTitle: Heart\nAuthor: Ann\n",
        Collection([level("Spade", "Ann"), level("Heart", "Ann", board=HALL)]),
        [],
    ),
    "number above, title below, no blank lines": (
        f"1\n{ROOM}\nTitle: Spade\nAuthor: Ann\n2\n{HALL}\nTitle: Heart\nAuthor: Bo\n",
        Collection([level("Spade", "Ann"), level("Heart", "Bo", board=HALL)]),
        [],
    ),
    "free text above": (
        f"Coll. intro\nof two lines\nLast line title?\n{ROOM}\n\nMore about it.\n\nBefore the next\nNext\n{HALL}\n",
        Collection(
            [
                level("Last line title?", comment="Coll. intro\nof two lines\n\nMore about it."),
                level("Next", comment="Before the next", board=HALL),
            ]
        ),
        [],
    ),
    "solutions and saved games": (
        f"A\n{ROOM}\n\nBest Solution 1/1 (YASS 2.86 Optimizer)\nR\n\nSolution/Moves 1/1/2006 10:20:30\nlrR\n\n"
        f"Solution 2\n2r\nSavegame\nr\n\nSnapshot/Moves 3\nrl\n\nB\n{HALL}\nSolution\nrR\n",
        Collection(
            [
                level(
                    "A",
                    solutions=(
                        Moves("R", "Best Solution 1/1 (YASS 2.86 Optimizer)"),
                        Moves("lrR", "Solution/Moves 1/1/2006 10:20:30"),
                        Moves("rr", "2"),
                    ),
                    savegames=("r", Moves("rl", "Snapshot/Moves 3")),
                ),
                level("B", solutions=("rR",), board=HALL),
            ]
        ),
        [],
    ),
    "XML of another program": (
        "<SokobanLibrary><Info><Name>My Set</Name><Author>Ann</Author></Info><Levels>"
        '<Level title="One"><Row>#####</Row><Row>#@$.#</Row><Row>#####</Row></Level>'
        "<puzzle><name>Two</name><author>Bo</author><line>#####</line><line>#@$.#</line><line>#####</line>"
        "<note>easy</note><solution>R</solution></puzzle></Levels></SokobanLibrary>",
        Collection([level("One", "Ann"), level("Two", "Bo", "easy", ("R",))], "My Set", "Ann"),
        [],
    ),
    "XML with a level that cannot be read": (
        "<SokobanLevels><LevelCollection>\n<Level Id='a'><L>#@x#</L></Level>\n"
        "<Level Id='b'><L>#####</L><L>#@$.#</L><L>#####</L></Level></LevelCollection></SokobanLevels>",
        Collection([level("b")]),
        [
            (
                2,
                "a level ('a') is skipped: 'x' is no tile; expected one of # @ $ . * + ? or floor (space, - or _)",
            )
        ],
    ),
    "control characters": (
        f"; fi\x01rst\n{ROOM}\n; a\0b\n",
        Collection([level("fi\ufffdrst", comment="a\ufffdb")]),
        [
            (1, "replaced: the control character U+0001; expected text, XML or .npz"),
            (5, "replaced: the control character U+0000; expected text, XML or .npz"),
        ],
    ),
    "a control character in XML": (
        "<SokobanLevels><Level Id='a&#x85;b'><L>#####</L><L>#@$.#</L><L>#####</L></Level></SokobanLevels>",
        Collection([level("a\ufffdb")]),
        [(1, "replaced: the control character U+0085; expected text")],
    ),
    "a damaged board between good ones": (
        f"One\n{ROOM}\n\nTwo\n#####\n#@o.#\n#####\n\nThree\n{HALL}\n",
        Collection([level("One"), level("Three", board=HALL)]),
        [
            (
                8,
                "a level ('Two') is skipped: 'o' is no tile; expected one of # @ $ . * + ? or floor (space, - or _); "
                'for files with other letters: maskoban convert --tiles "wall=x,box=o,player=y"',
            )
        ],
    ),
    "a frame around a text": (
        f"###########\n# My maze #\n###########\n\nOne\n{ROOM}\n",
        Collection([level("One")], comment="###########\n# My maze #\n###########"),
        [],
    ),
}


def same(found: Collection, expected: Collection) -> None:
    assert list(found) == list(expected)
    names = [[name_of(moves) for moves in (*each.solutions, *each.savegames)] for each in expected]
    assert [[name_of(moves) for moves in (*each.solutions, *each.savegames)] for each in found] == names
    assert found.with_levels(()) == expected.with_levels(())


@pytest.mark.parametrize("name", ROWS)
def test_a_file_is_read_as_its_author_meant(tmp_path: Path, name: str) -> None:
    text, expected, warned = ROWS[name]
    path = tmp_path / "set.txt"
    path.write_text(text)
    warnings: list[FileError] = []
    same(read_collection(path, on_warning=warnings.append), expected)
    assert [(warning.line, warning.problem) for warning in warnings] == warned
    assert all(warning.path == str(path) for warning in warnings)


@pytest.mark.parametrize("name", [name for name in ROWS if ROWS[name][2]])
def test_a_strict_reader_raises_what_is_a_warning_otherwise(tmp_path: Path, name: str) -> None:
    text, _, warned = ROWS[name]
    (tmp_path / "set.txt").write_text(text)
    with pytest.raises(FileError) as caught:
        read(tmp_path / "set.txt", strict=True)
    assert caught.value.line == warned[0][0]
    assert caught.value.problem.split(" in a level's ")[0] in warned[0][1]


@pytest.mark.parametrize("format", ["xsb", "sok", "slc", "npz"])
@pytest.mark.parametrize("name", ROWS)
def test_nothing_read_is_lost(tmp_path: Path, name: str, format: str) -> None:
    expected = ROWS[name][1]
    write(tmp_path / "again", expected, format)
    same(read_collection(tmp_path / "again", strict=True), expected)
    same(read_collection(tmp_path / "again"), expected)


@pytest.mark.parametrize("format", ["xsb", "sok", "slc", "npz"])
@given(levels=collections, title=one_line, author=one_line, email=one_line, comment=comments)
def test_collections_come_back(format, levels, title, author, email, comment):
    collection = Collection(levels, title, author, email, comment)
    data = write_bytes(format, collection)
    source = Source(io.BytesIO(data), "file", strict=True)
    found = list(FORMATS[format].read(source))
    inherited = [each if each.author else level_by(each, collection.author) for each in levels]
    same(source.collection.with_levels(found), collection.with_levels(inherited))


def level_by(each: Level, author: str) -> Level:
    return Level(each.tokens, each.title, author, each.comment, each.solutions, each.savegames)


def test_a_comment_may_hold_boards_and_words_of_the_format():
    given = level(comment=f"one\n\n{HALL}\nComment: two\n  Comment:\nComment-End:\nthree")
    for name in ("xsb", "sok"):
        for strict in (False, True):
            source = Source(io.BytesIO(write_bytes(name, [given, level("B")])), "f", strict=strict)
            assert list(FORMATS[name].read(source)) == [given, level("B")]


names = st.text("abc /(1:)", max_size=12)


@pytest.mark.parametrize("format", ["slc", "npz"])
@given(name=names)
def test_names_of_solutions_are_kept(format, name):
    given = Collection([level(solutions=(Moves("R", name),), savegames=(Moves("r", name),))])
    same(Collection(list(FORMATS[format].read(Source(io.BytesIO(write_bytes(format, given)), "f")))), given)


def test_a_name_that_no_heading_gives_is_left_out_in_text():
    given = level(solutions=(Moves("R", ": r"), Moves("lrR", "by Ann"), Moves("R", "Solution 5")))
    (found,) = FORMATS["sok"].read(Source(io.BytesIO(write_bytes("sok", [given])), "f"))
    assert [name_of(moves) for moves in found.solutions] == ["", "by Ann", "Solution 5"]


OTHER = "xxxxx\nxyo.x\nxxxxx\n"


def test_other_letters_are_named_with_the_way_to_read_them(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(f"A set\n\n{OTHER}")
    with pytest.raises(FileError, match=r"other.txt, line 4, column 1: 'x' is no tile; .* --tiles"):
        read(tmp_path / "other.txt")


def test_other_letters_are_read_as_told(tmp_path: Path) -> None:
    text = f"xylophone box\n\nOne\n{OTHER}\nyo\n\n{ROOM}\n"
    (tmp_path / "other.txt").write_text(text)
    (tmp_path / "other.slc").write_text(
        "<a><Level>" + "".join(f"<L>{row}</L>" for row in OTHER.split()) + "</Level></a>"
    )
    letters = {"x": "#", "y": "@", "o": "$"}
    found = read_collection(tmp_path / "other.txt", tiles=letters)
    same(found, Collection([level("One"), level("yo")], comment="xylophone box"))
    assert read(tmp_path / "other.slc", tiles=letters) == [level()]


def test_warnings_are_those_of_python_where_nobody_else_wants_them(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text(f"{ROOM}\n\n{WIDE}\n")
    with pytest.warns(
        LevelFileWarning, match=r"two.txt, line 5, column 201: a level is skipped: more than 200"
    ):
        assert len(read(tmp_path / "two.txt")) == 1


def test_warnings_end_where_everything_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text(f"{ROOM}\n\n" + "#@#\n#x#\n\n" * 1000)
    warnings: list[FileError] = []
    assert len(read(tmp_path / "many.txt", on_warning=warnings.append)) == 1
    assert len(warnings) == MAX_WARNINGS
    assert "more warnings about this file are left out" in warnings[-1].problem


def test_a_collection_is_streamed(tmp_path: Path) -> None:
    (tmp_path / "set.txt").write_text(f"Title: My Set\n\nOne\n{ROOM}\n\nTwo\n{HALL}\n\n" + "x" * 200_001)
    found = stream_collection(tmp_path / "set.txt")
    levels = iter(found)
    assert (found.title, next(levels).title) == ("My Set", "One")
    with pytest.raises(FileError, match="a line of more than"):
        list(levels)


def test_a_folder_has_no_title(tmp_path: Path) -> None:
    for name in ("a.sok", "b.sok"):
        write(tmp_path / name, Collection([level()], title=name))
    assert read_collection(tmp_path).title == ""
    assert len(list(stream(tmp_path))) == 2


# --- texts that are no level files

WORDS = [
    "the",
    "box",
    "#",
    "of",
    "@",
    "pushes",
    "$",
    "and",
    "*",
    "walls",
    "+",
    "goals",
    ".",
    "?",
    "never",
    "ends",
    "-",
    "in",
    "a",
    "maze",
    "_",
    "12",
    "3",
]


def texts() -> dict[str, str]:
    """Prose, mail, source code, CSV, HTML, Markdown and rulers: some hundred texts, made anew or from Python itself."""
    rng = random.Random(7)
    found = {path.name: path.read_text(errors="replace") for path in library()}
    for i in range(40):
        lines = [" ".join(rng.choices(WORDS, k=rng.randrange(12))) for _ in range(60)]
        found[f"prose {i}"] = "\n".join(line for line in lines if any(map(str.isalnum, line)))
        found[f"mail {i}"] = "From: a@b.c\nTo: d@e.f\nSubject: #1\n\n> " + "\n> ".join(lines) + "\n-- \n@me\n"
        found[f"comments {i}"] = (
            "#!/bin/sh\n#\n" + "\n".join(f"# {'.' * rng.randrange(9)}" for _ in lines) + "\n#\n"
        )
        found[f"csv {i}"] = "\n".join(";".join(rng.choices(["1", "#", "", "@x", "$5"], k=4)) for _ in lines)
        found[f"html {i}"] = f"<html><body><p>{'</p><p>'.join(lines).replace('&', '')}</p></body></html>"
        found[f"markdown {i}"] = "# A\n\n## B\n\n###\n\n| a | b |\n|---|---|\n| # | . |\n\n* * *\n- $5\n"
        ruler = rng.choice("#-=+*._~") * rng.randrange(3, 70)
        found[f"rulers {i}"] = (
            f"{ruler}\n{rng.choice(WORDS)}\n{ruler}\n\n+---+---+\n|   | # |\n+---+---+\n\n#--#\n"
        )
        found[f"perl {i}"] = "eval { f() };\n$@\n" + "\n".join(f"\t## {line}" for line in lines)
        found[f"log {i}"] = "\n".join(f"#{i} 12:{j:02} {line}" for j, line in enumerate(lines)) + "\n@#\n"
        found[f"table {i}"] = f"{ruler}\n| {rng.choice(WORDS)} | $ |\n{ruler}\n\t#\t@\n"
        found[f"makefile {i}"] = f"all:\n\t@#\n\t#######\n\t# {rng.choice(WORDS)} #\n\t#######\n\t$@\n"
        found[f"diff {i}"] = "--- a\n+++ b\n@@ -1,3 +1,4 @@\n-#\n+#\n+$\n #\n" + ruler
    return found


def library() -> list[Path]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    return [
        path
        for pattern in ("*.py", "email/*.py", "pydoc_data/*.py", "*.txt")
        for path in sorted(folder.glob(pattern))
    ]


def test_no_text_is_turned_into_a_board() -> None:
    every = texts()
    assert len(every) > 400
    for name, text in every.items():
        data = text.encode()
        source = Source(io.BytesIO(data), name, on_warning=lambda warning: None)
        try:
            found = list(detect(data[:4096], name).read(source))
        except FileError:
            continue
        assert found == [], name
