"""Collections as programs and people write them: the text, the collection that is read, and its warnings."""

from __future__ import annotations

from maskoban.boards import Collection, Level, Moves

ROOM = "#####\n#@$.#\n#####"
HALL = "######\n#@ $.#\n######"

Habit = tuple[str, Collection, list[tuple[int | None, str]]]

NO_END = "a comment without an end; expected a line Comment-End:"


def level(title="", author="", comment="", solutions=(), savegames=(), board=ROOM):
    return Level(Level.parse(board).tokens, title, author, comment, solutions, savegames)


def hall(*args, **kwargs):
    return level(*args, **kwargs, board=HALL)


def rows(board):
    return "".join(f"<Row>{row}</Row>\n" for row in board.split("\n"))


HABITS: dict[str, Habit] = {
    "YASC: raw notes, dates, notes below solutions, Snapshot1": (
        ":::::::::::::::::::::::::::::\n:: Wall.......: W # :...Wall ::\n:::::::::::::::::::::::::::::\n"
        "Date Created: 2022-07-01  01:05:06\n:::::::::::::::::::::::::::::\n\n"
        f"Collection: Ann's Set\nAuthor: Ann Smith\nE-mail: ann@here\n\nFirst\n\n{ROOM}\n\nTime: 00:01:00\n\n"
        f"Solution/Moves\nR\nOptimizer: YASS 2.86\n\nSnapshot1\nlR\n\nSecond\n\n{HALL}\n\n"
        "Best Solution 1/2 (YASS 2.86 Optimizer)\nrR\n",
        Collection(
            [
                level(
                    "First",
                    "Ann Smith",
                    "Time: 00:01:00\n\nOptimizer: YASS 2.86",
                    (Moves("R", "Solution/Moves"),),
                    (Moves("lR", "Snapshot1"),),
                ),
                hall("Second", "Ann Smith", "", (Moves("rR", "Best Solution 1/2 (YASS 2.86 Optimizer)"),)),
            ],
            "Ann's Set",
            "Ann Smith",
            "ann@here",
            "Date Created: 2022-07-01  01:05:06",
        ),
        [],
    ),
    "moves below a blank line, without a heading, and with a number in the heading": (
        f"A\n{ROOM}\n\nSolution\n\nlrlrR\n\nB\n{HALL}\n\nlrlrlrlrlrlrR\n\nC\n{ROOM}\n\nSolution-2\nR\nSavegame1\nr\n",
        Collection(
            [
                level("A", solutions=("lrlrR",)),
                hall("B", solutions=("lrlrlrlrlrlrR",)),
                level("C", solutions=(Moves("R", "Solution-2"),), savegames=(Moves("r", "Savegame1"),)),
            ]
        ),
        [],
    ),
    "JSoko: title and solution below, settings below the solution": (
        f"Title: Set\nAuthor: Ann\n\n\n{ROOM}\nTitle: One\nDifficulty: 3\nBoard view: Mirrored\n"
        f"Solution 1 moves 1 pushes\nR\nSolver: JSoko\n\n{HALL}\nTitle: Two\nAuthor: Bo\n"
        "Comment:\nfine\nComment-End:\n\nSavegame:\nl\n",
        Collection(
            [
                level(
                    "One",
                    "Ann",
                    "Difficulty: 3\nBoard view: Mirrored\nSolver: JSoko",
                    (Moves("R", "1 moves 1 pushes"),),
                ),
                hall("Two", "Bo", "fine", savegames=("l",)),
            ],
            "Set",
            "Ann",
        ),
        [],
    ),
    "Skinner: a preface, then numbers and names behind semicolons": (
        f"Microtest\nby Ann\nann@here\n\nA set of tiny levels.\nHave fun!\n\n; 1\n\n{ROOM}\n\n; 2 'Duck'\n\n{HALL}\n",
        Collection(
            [level("1"), hall("2 'Duck'")],
            comment="Microtest\nby Ann\nann@here\n\nA set of tiny levels.\nHave fun!",
        ),
        [],
    ),
    "names behind semicolons below the boards, no blank lines": (
        f"{ROOM}\n; One\n{HALL}\n; Two\n",
        Collection([level("One"), hall("Two")]),
        [],
    ),
    "Holland: number above, title below, a header": (
        f"Title: Dimitri\nAuthor: Yuri\n\n1\n\n{ROOM}\nTitle: One\n\n2\n\n{HALL}\nTitle: Two\nAuthor: Bo\n",
        Collection([level("One", "Yuri"), hall("Two", "Bo")], "Dimitri", "Yuri"),
        [],
    ),
    "Sokoban Online: Set:, Level: and Title: above": (
        f"Set: My Levels\nEmail: a@b\nHomepage: here\n\nLevel: 1\nTitle: One\n{ROOM}\n\nLevel: 2\nTitle: Two\n{HALL}\n",
        Collection(
            [level("One", comment="Level: 1"), hall("Two", comment="Level: 2")],
            "My Levels",
            email="a@b",
            comment="Homepage: here",
        ),
        [],
    ),
    "Games4Brains: everything above the board": (
        f"Title: My Set\nDescription: Mine\nAuthor: Ann\n\nTitle: One\nAuthor: Bo\nComment: easy\n{ROOM}\n\n"
        f"Title: Two\n{HALL}\n",
        Collection(
            [level("One", "Bo", "easy"), hall("Two", "Ann")], "My Set", "Ann", comment="Description: Mine"
        ),
        [],
    ),
    "blocks of data that begin with a ruler and a number": (
        f"{'*' * 37}\nMaze: 1\nFile offset: 148C\nLength: 50\n\n{ROOM}\n\n{'*' * 37}\nMaze: 2\nLength: 60\n\n{HALL}\n",
        Collection(
            [
                level("Maze: 1", comment=f"{'*' * 37}\nFile offset: 148C\nLength: 50"),
                hall("Maze: 2", comment=f"{'*' * 37}\nLength: 60"),
            ]
        ),
        [],
    ),
    "rulers around titles": (
        f"--------\nLevel 1\n--------\n{ROOM}\n--------\nLevel 2\n--------\n{HALL}\n--------\n",
        Collection(
            [
                level("Level 1", comment="--------\n--------"),
                hall("Level 2", comment="--------\n--------\n--------"),
            ]
        ),
        [],
    ),
    "rows behind a tab": (
        "Level 1\n\n\t#####\n\t#@$.#\n\t#####\n\nLevel 2\n\n\t  ####\n\t###@ #\n\t# $. #\n\t######\t\n",
        Collection([level("Level 1"), level("Level 2", board="  ####\n###@ #\n# $. #\n######")]),
        [],
    ),
    "Key=value": (
        f"Title=Set\nAuthor=Ann\n\nTitle=One\n{ROOM}\n\nTitle = Two\nAuthor = Bo\n{HALL}\n",
        Collection([level("One", "Ann"), hall("Two", "Bo")], "Set", "Ann"),
        [],
    ),
    "empty keys": (
        f"Title:\nAuthor:\n\n1\n{ROOM}\nTitle:\nAuthor: Ann\n\n2\n{HALL}\nTitle: Two\nAuthor:\n",
        Collection([level("1", "Ann"), hall("Two")]),
        [],
    ),
    "a comment without an end above the title of the next level": (
        f"{ROOM}\nTitle: A\nComment:\nhello\n\nTitle: B\nAuthor: Ann\n{HALL}\n\n1\n{ROOM}\nComment:\nbye\n\n2\n{HALL}\n"
        "Comment: one line\nComment-End:\n",
        Collection(
            [
                level("A", comment="hello"),
                hall("B", "Ann"),
                level("1", comment="bye"),
                hall("2", comment="one line"),
            ]
        ),
        [(5, NO_END), (18, NO_END)],
    ),
    "a comment without an end directly above a board": (
        f"{ROOM}\nComment:\nhello\n{HALL}\n",
        Collection([level(comment="hello"), hall()]),
        [(4, NO_END)],
    ),
    "titles in brackets, boards without blank lines": (
        f"[Level 1]\n{ROOM}\n[Level 2]\n{HALL}\n",
        Collection([level("[Level 1]"), hall("[Level 2]")]),
        [],
    ),
    "too many solutions": (
        f"A\n{ROOM}\n\n" + "Solution\nR\n" * 21,
        Collection([level("A", solutions=("R",) * 20)]),
        [(46, "a solution is left out: more than 20 solutions of one level")],
    ),
    "XML: a library with maps, descriptions and solutions of several parts": (
        '<?xml version="1.0"?>\n<SokobanLibrary><Details><Name>My Library</Name><Author Name="Ann" Email="a@b"/>'
        "</Details>\n<Puzzles><Puzzle><PuzzleDescription><Name>One</Name><Description>Old</Description>"
        f"<Author Name='Bo'/></PuzzleDescription>\n<Maps><Map>{rows(ROOM)}<Solutions><Solution><Steps>R</Steps>"
        "<SolutionDescription><Name>Best</Name><Comments>found by hand</Comments><Author Name='Eve'/>"
        f"</SolutionDescription></Solution></Solutions></Map>\n<Map>{rows(HALL)}<Solutions/></Map></Maps></Puzzle></Puzzles></SokobanLibrary>",
        Collection(
            [level("One", "Bo", "Old\nfound by hand", (Moves("R", "Best"),)), hall("One", "Bo")],
            "My Library",
            "Ann",
            "a@b",
        ),
        [],
    ),
    "XML: everything in attributes": (
        f"<levels title='Set' author='Ann'><level id='1' name='One'>{rows(ROOM)}</level><level id='2'>{rows(HALL)}"
        "</level></levels>",
        Collection([level("One", "Ann"), hall("2", "Ann")], "Set", "Ann"),
        [],
    ),
    "XML: a solution that is none": (
        f"<SokobanLevels><Level Id='One'>{rows(ROOM).replace('Row', 'L')}<Solution>three moves</Solution></Level>"
        "</SokobanLevels>",
        Collection([level("One", comment="Solution: three moves")]),
        [
            (
                4,
                "a solution is kept as a comment: 't' is no move (step 1 of a solution); expected one of lurdLURD",
            )
        ],
    ),
}
