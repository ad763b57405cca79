"""The command line, run the way people run it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor
from typer.testing import CliRunner

from maskoban.boards import Level, Moves, read, read_collection, write
from maskoban.boards.synth import synthesize
from maskoban.cli.app import app, main
from maskoban.cli.output import CHUNK, Output, progress_bar
from maskoban.pictures import palette
from maskoban.solving import rate, solves
from maskoban.solving.rating import guided_difficulty
from maskoban.solving.reference import reference_of
from tests.waiting import LIMIT

EASY = Level.parse("######\n#@$ .#\n######")
WORD = rate(EASY).difficulty
WALLED = Level.parse("#######\n#@$#. #\n#######")
HOPELESS = Level.parse("######\n#$ @.#\n######")
NO_PLAYER = Level.parse("######\n# $ .#\n######")
TWO_WALLS = Level.parse("########\n#@$##. #\n########")


def maskoban(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a real command, as a shell would."""
    command = [sys.executable, "-m", "maskoban", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT)


def rows(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def run_json(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
    """Run a command in this process, for speed, and parse its lines."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    return result.exit_code, rows(result.stdout)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    path = tmp_path / "levels.sok"
    titled = Level(EASY.tokens, title="Two steps")
    write(path, [titled, WALLED, HOPELESS, NO_PLAYER])
    return path


@pytest.fixture
def easy(tmp_path: Path) -> Path:
    path = tmp_path / "easy.xsb"
    write(path, [EASY])
    return path


# --- solve


def test_solve_prints_a_line_and_the_solution(easy: Path) -> None:
    done = maskoban("solve", easy)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "    0  solved      pushes 2  moves 2\n       RR\n"


def test_solve_reads_standard_input() -> None:
    done = maskoban("solve", "-", "--json", stdin=str(EASY))
    assert done.returncode == 0
    assert rows(done.stdout)[0]["solution"] == "RR"


def test_solve_json_has_the_promised_keys(collection: Path) -> None:
    code, (solved, unsolvable, _, malformed) = run_json("solve", collection)
    assert code == 1
    keys = ["index", "title", "board", "id", "verdict", "reason"]
    keys += ["pushes", "moves", "solution", "expanded", "seconds", "limit_hit"]
    assert list(solved) == list(unsolvable) == list(malformed) == keys
    assert (solved["index"], solved["title"], solved["verdict"]) == (0, "Two steps", "solved")
    assert (solved["board"], solved["id"]) == (str(EASY), EASY.id)
    assert (solved["pushes"], solved["moves"], solved["solution"]) == (2, 2, "RR")
    assert (unsolvable["index"], unsolvable["verdict"]) == (1, "unsolvable")
    assert unsolvable["pushes"] is unsolvable["moves"] is unsolvable["solution"] is None
    assert (malformed["verdict"], malformed["reason"]) == ("malformed", "no player")


def test_solve_sums_up_on_the_error_stream(collection: Path) -> None:
    done = maskoban("solve", collection)
    assert done.returncode == 1
    assert done.stderr == "4 levels: 2 unsolvable, 1 solved, 1 malformed\n"


@pytest.mark.parametrize("mode", ["any", "pushes", "effort"])
def test_solve_modes(mode: str, easy: Path) -> None:
    code, (row,) = run_json("solve", easy, "--mode", mode)
    assert code == 0
    assert solves(EASY, row["solution"])
    assert row["pushes"] == 2


def test_effort_tells_the_states(easy: Path) -> None:
    assert "pushes 2  moves 2  expanded 2" in maskoban("solve", easy, "--mode", "effort").stdout


def test_a_limit_makes_a_verdict_unknown(easy: Path) -> None:
    code, (row,) = run_json("solve", easy, "--mode", "effort", "--states", 1)
    assert (code, row["verdict"], row["limit_hit"]) == (1, "unknown", "states")
    assert row["reason"] == "state limit of 1 reached"


@pytest.mark.parametrize("limit", ["--states", "--megabytes", "--seconds"])
def test_a_limit_that_no_machine_could_reach_limits_nothing(limit: str, easy: Path) -> None:
    code, (row,) = run_json("solve", easy, limit, 10**20)
    assert (code, row["verdict"]) == (0, "solved")


def test_a_collection_longer_than_a_chunk_keeps_its_numbering(tmp_path: Path) -> None:
    write(tmp_path / "many.xsb", [EASY, WALLED] * (CHUNK + 1))
    _, found = run_json("solve", tmp_path / "many.xsb")
    assert [row["index"] for row in found] == list(range(2 * CHUNK + 2))
    assert [row["verdict"] for row in found] == ["solved", "unsolvable"] * (CHUNK + 1)


def test_a_title_the_terminal_cannot_write_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    write(tmp_path / "title.sok", [Level(EASY.tokens, title="Lagerhaus für Übung")])
    done = maskoban("solve", tmp_path / "title.sok")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Lagerhaus f?r ?bung" in done.stdout


# --- repair


def test_repair_names_the_wall(collection: Path) -> None:
    code, found = run_json("repair", collection)
    assert code == 1
    assert [row["verdict"] for row in found] == ["solvable", "repaired", "unrepaired", "malformed"]
    assert list(found[0]) == ["index", "title", "board", "id", "verdict", "reason", "walls", "limit_hit"]
    assert [row["walls"] for row in found] == [[], [[[1, 3]]], [], []]


def test_repair_tries_pairs_when_requested(tmp_path: Path) -> None:
    write(tmp_path / "two.xsb", [TWO_WALLS])
    assert run_json("repair", tmp_path / "two.xsb")[0] == 1
    code, (row,) = run_json("repair", tmp_path / "two.xsb", "--walls", 2)
    assert (code, row["walls"]) == (0, [[[1, 3], [1, 4]]])


def test_repair_finds_all_cures(tmp_path: Path) -> None:
    write(tmp_path / "all.xsb", [Level.parse("#######\n#@$#. #\n#  #  #\n#     #\n#######")])
    _, (first,) = run_json("repair", tmp_path / "all.xsb")
    _, (all_of_them,) = run_json("repair", tmp_path / "all.xsb", "--all")
    assert len(first["walls"]) == 1
    assert first["walls"][0] in all_of_them["walls"]


def test_repaired_levels_are_saved_and_can_be_solved(collection: Path, tmp_path: Path) -> None:
    done = maskoban("repair", collection, "--out", tmp_path / "mended.sok")
    assert "repaired    without (1, 3)" in done.stdout
    mended = read(tmp_path / "mended.sok")
    assert [str(level) for level in mended] == [str(EASY), "#######\n#@$ . #\n#######"]
    assert mended[0].title == "Two steps"
    assert run_json("solve", tmp_path / "mended.sok")[0] == 0


def test_nothing_repaired_saves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "hopeless.xsb", [HOPELESS])
    mended = tmp_path / "mended.sok"
    done = maskoban("repair", tmp_path / "hopeless.xsb", "--out", mended)
    assert done.returncode == 1
    assert done.stderr == f"maskoban: nothing to write to {mended}: no level could be made solvable\n"
    assert not mended.exists()


# --- rate


def test_rate_says_a_word_and_its_reasons(easy: Path) -> None:
    code, (row,) = run_json("rate", easy)
    assert code == 0
    expected = {"verdict": "solved", "reason": "", "effort": 2, "pushes": 2, "moves": 2}
    reference = reference_of(*EASY.shape, 1)
    word = guided_difficulty(2, reference)
    expected |= {"box_changes": 1, "box_lines": 1, "word": word, "limit_hit": None}
    expected |= {"guided_effort": 2.0, "reference": reference.name}
    expected |= {"decomposed_effort": 2, "boxes_at_once": 1, "decomposed_word": "easy"}
    assert row == {"index": 0, "title": "", "board": str(EASY), "id": EASY.id, **expected}
    message = CliRunner().invoke(app, ["rate", str(easy)]).stdout
    numbers = (
        "effort 2  guided effort 2.0  decomposed effort 2  boxes at once 1  pushes 2  moves 2  box changes 1"
    )
    assert message == f"    0  solved      {word:<6}  {numbers}  box lines 1  by {reference.name}\n"


def test_rate_by_the_quarters_of_a_corpus(tmp_path: Path) -> None:
    boards = synthesize(60, 7, 7, 2, seed=1)
    np.savez(tmp_path / "levels.npz", boards=boards)
    _, found = run_json("rate", tmp_path / "levels.npz")
    assert {row["reference"] for row in found} == {"7x7 with 2 boxes"}
    _, found = run_json("rate", tmp_path / "levels.npz", "--corpus", tmp_path / "levels.npz")
    for key in ("word", "decomposed_word"):
        assert {row[key] for row in found} == {"easy", "medium", "hard", "expert"}
    assert {row["reference"] for row in found} == {str(tmp_path / "levels.npz")}


def test_convert_by_decomposed_difficulty(tmp_path: Path) -> None:
    lanes = ["# $    . #", "#        #"] * 4
    hall = Level.parse("\n".join(["#" * 10, *lanes[:4], "#   @    #", *lanes[:3], "#" * 10]))
    write(tmp_path / "hall.sok", [hall])
    assert run_json("rate", tmp_path / "hall.sok")[1][0]["word"] == "expert"
    done = maskoban(
        "convert", tmp_path / "hall.sok", "-", "--difficulty", "medium", "--difficulty-by", "decomposed"
    )
    assert done.returncode == 0
    assert Level.parse(done.stdout) == hall


def test_boards_of_json_with_blank_lines_between_them_are_a_level_file(collection: Path) -> None:
    for command in ("solve", "rate", "repair"):
        _, found = run_json(command, collection)
        chosen = "".join(row["board"] + "\n\n" for row in found)
        assert maskoban("convert", "-", "-", stdin=chosen).stdout == chosen.removesuffix("\n")


def test_rate_of_what_has_no_solution_is_null(collection: Path) -> None:
    code, found = run_json("rate", collection)
    assert code == 1
    assert found[2]["effort"] is found[2]["word"] is found[2]["box_lines"] is None


# --- show


def test_show_into_a_pipe_is_plain_text_that_can_be_read_again(collection: Path) -> None:
    shown = maskoban("show", collection)
    assert shown.returncode == 0
    assert shown.stdout.startswith("; Two steps\n######\n#@$ .#\n######\n\n; 1\n")
    assert len(rows(maskoban("solve", "-", "--json", stdin=shown.stdout).stdout)) == 4


def test_show_saves_one_level_or_a_sheet(collection: Path, tmp_path: Path) -> None:
    assert maskoban("show", collection, "--level", 1, "--out", tmp_path / "one.png").returncode == 0
    assert maskoban("show", collection, "--out", tmp_path / "all.svg").returncode == 0
    with Image.open(tmp_path / "one.png") as one:
        assert one.size == (7 * 32, 3 * 32)
    generated = (tmp_path / "all.svg").read_text()
    assert "Two steps" in generated
    assert generated.count('<g transform="translate(') == 4  # boards; their tiles: tests/pictures


def test_show_animates_a_solution(easy: Path, tmp_path: Path) -> None:
    assert maskoban("show", easy, "--solution", tmp_path / "solved.gif").returncode == 0
    with Image.open(tmp_path / "solved.gif") as gif:
        assert gif.n_frames == 3


def test_show_prefers_the_solution_in_the_file_if_it_works(tmp_path: Path) -> None:
    roomy = Level.parse("######\n#@$ .#\n#    #\n######")
    write(tmp_path / "own.sok", [Level(roomy.tokens, solutions=("RRR", "duRR"))])
    assert maskoban("show", tmp_path / "own.sok", "--solution", tmp_path / "own.gif").returncode == 0
    with Image.open(tmp_path / "own.gif") as gif:
        assert gif.n_frames == 5


def test_show_says_when_there_is_no_solution(collection: Path, tmp_path: Path) -> None:
    done = maskoban("show", collection, "--level", 2, "--solution", tmp_path / "none.gif")
    assert (done.returncode, done.stderr) == (1, "maskoban: level 2 has no solution to show\n")
    assert not (tmp_path / "none.gif").exists()


def on_a_terminal(*arguments: object) -> str:
    """What a command writes when both its streams are a terminal with colours."""
    ours, theirs = os.openpty()
    colours = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    colours.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "maskoban", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=colours):
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 65536)
            except OSError:  # how Linux says that the last writer has gone
                os.close(ours)
                return written.decode()


def test_a_terminal_shows_colours(easy: Path) -> None:
    red, green, blue = ImageColor.getrgb(palette.CRATE_PLANK)
    assert f"48;2;{red};{green};{blue}m[]" in on_a_terminal("show", easy)


def test_a_terminal_shows_progress_and_still_every_result(easy: Path) -> None:
    shown = on_a_terminal("solve", easy)
    assert "solving 0 levels done" in shown
    assert "pushes 2  moves 2" in shown


def test_a_terminal_shows_a_long_collection_in_order(tmp_path: Path) -> None:
    write(tmp_path / "many.xsb", [EASY, WALLED] * 50)
    shown = on_a_terminal("solve", tmp_path / "many.xsb")
    assert [int(index) for index in re.findall(r"(\d+)  \S*(?:un)?solv(?:ed|able)", shown)] == list(
        range(100)
    )


# --- convert


def test_convert_follows_the_suffix_or_the_format_option(collection: Path, tmp_path: Path) -> None:
    for name in ("a.slc", "a.npz", "a.xsb"):
        assert CliRunner().invoke(app, ["convert", str(collection), str(tmp_path / name)]).exit_code == 0
        assert [level.shape for level in read(tmp_path / name)] == [(3, 6), (3, 7), (3, 6), (3, 6)]
    piped = maskoban("convert", "-", "-", "--to", "sok", stdin=collection.read_text())
    assert piped.returncode == 0
    assert "Two steps" in piped.stdout


DAMAGED = f"Title: My set\n\nOne\n{EASY}\n\nTwo\n#####\n#@o.#\n#####\n\nThree\n{EASY}\n"
SKIPPED = "a level ('Two') is skipped: 'o' is no tile"


def test_warnings_go_to_standard_error_and_into_json(tmp_path: Path) -> None:
    (tmp_path / "set.sok").write_text(DAMAGED)
    done = maskoban("solve", tmp_path / "set.sok", "--json")
    line = DAMAGED.split("\n").index("#@o.#") + 1
    assert done.returncode == 0
    assert done.stderr.startswith(f"maskoban: {tmp_path}/set.sok, line {line}, column 3: {SKIPPED}")
    (warning,) = [row["warning"] for row in rows(done.stdout) if "warning" in row]
    assert (warning["file"], warning["line"]) == (str(tmp_path / "set.sok"), line)
    assert warning["problem"].startswith(SKIPPED)
    for command in ("corpus info", "show"):
        assert SKIPPED in maskoban(*command.split(), tmp_path / "set.sok").stderr


@pytest.mark.parametrize("command", ["solve", "rate", "repair", "optimize", "show", "check"])
def test_strict_refuses_what_is_a_warning_otherwise(command: str, tmp_path: Path) -> None:
    (tmp_path / "set.sok").write_text(DAMAGED)
    done = maskoban(command, tmp_path / "set.sok", "--strict")
    assert done.returncode == 2
    assert "'o' is no tile" in done.stderr
    assert "skipped" not in done.stderr


def test_convert_keeps_the_collection_and_gives_titles(tmp_path: Path) -> None:
    (tmp_path / "set.sok").write_text(DAMAGED)
    assert (
        maskoban("convert", tmp_path / "set.sok", tmp_path / "set.slc", "--title", "Set {n}").returncode == 0
    )
    found = read_collection(tmp_path / "set.slc")
    assert (found.title, [level.title for level in found]) == ("My set", ["Set 1", "Set 2"])


def test_convert_reads_other_letters_and_says_how(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("xxxxx\nxyo.x\nxxxxx\n")
    refused = maskoban("convert", tmp_path / "other.txt", "-")
    assert refused.returncode == 2
    assert '--tiles "wall=x,box=o,player=y"' in refused.stderr
    done = maskoban("convert", tmp_path / "other.txt", "-", "--tiles", "wall=x,box=o,player=y")
    assert done.stdout == "#####\n#@$.#\n#####\n"
    wrong = maskoban("convert", tmp_path / "other.txt", "-", "--tiles", "wal=x")
    assert wrong.stderr.startswith("maskoban: --tiles: 'wal=x'; expected NAME=LETTER with one of wall, floor")


# --- check


def test_check_finds_what_is_wrong_with_collections(tmp_path: Path) -> None:
    first = Level.parse("#######\n#@ $ .#\n#     #\n#######")
    near = Level.parse("#######\n#@  $.#\n#     #\n#######")
    good, wrong = Moves("rRR", "short"), Moves("drrrlllurRR", "long")
    write(tmp_path / "a.sok", [Level(first.tokens, solutions=(wrong, good, "R")), WALLED])
    write(tmp_path / "b.sok", [Level(first.tokens[:, ::-1]), near, Level.parse("##\n#@")])
    done = maskoban("check", tmp_path / "a.sok", tmp_path / "b.sok", "--json")
    found = rows(done.stdout)
    assert done.returncode == 1
    assert [row["verdict"] for row in found] == ["solved", "unsolvable", "solved", "solved", "malformed"]
    names, measures = ("long", "short", ""), ("solves", "pushes", "moves", "box_lines", "pushing_sessions")
    assert [solution["name"] for solution in found[0]["solutions"]] == list(names)
    assert [found[0]["solutions"][1][name] for name in measures] == [True, 2, 3, 1, 1]
    assert found[0]["solutions"][2]["problem"] == "step 0 ('R'): there is no box to push"
    assert (found[0]["best_moves"]["name"], found[0]["best_pushes"]["name"]) == ("short", "short")
    assert [(row["index"], row["twin"] and row["twin"]["cells"]) for row in found[2:4]] == [(0, 0), (1, 2)]
    assert found[2]["twin"]["file"] == str(tmp_path / "a.sok")
    assert "R does not solve" not in done.stderr


def test_check_is_content_with_a_good_file_and_honest_about_a_large_one(tmp_path: Path) -> None:
    write(tmp_path / "good.sok", EASY)
    assert maskoban("check", tmp_path / "good.sok").returncode == 0
    write(tmp_path / "large.sok", Level.parse("#" * 100 + "\n#@$." + " " * 95 + "#\n" + "#" * 101))
    for command in ("check", "optimize", "rate"):
        done = maskoban(command, tmp_path / "large.sok")
        assert done.returncode == 1
        assert "is larger than 64 x 64" in done.stdout


# --- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["solve", "nowhere.sok"], "maskoban: nowhere.sok: no such file or folder\n"),
        (["show", "easy.xsb", "--level", "7"], "maskoban: easy.xsb: there is no level 7\n"),
        (
            ["show", "easy.xsb", "--level", "7", "--out", "a.png"],
            "maskoban: easy.xsb: there is no level 7\n",
        ),
        (
            ["show", "easy.xsb", "--out", "a.bmp"],
            "maskoban: a.bmp: expected a name that ends with .png or .svg\n",
        ),
        (
            ["show", "easy.xsb", "--out", "a.png", "--solution", "no/a.gif"],
            "maskoban: no/a.gif: cannot be written: No such file or directory\n",
        ),
        (
            ["repair", "easy.xsb", "--out", "no/a.sok"],
            "maskoban: no/a.sok: cannot be written: No such file or directory\n",
        ),
        (
            ["repair", "easy.xsb", "--out", "-"],
            "maskoban: --out: expected a file; results are written to standard output\n",
        ),
        (
            ["show", "easy.xsb", "--solution", "a.mp4"],
            "maskoban: a.mp4: expected a name that ends with .gif\n",
        ),
        (
            ["convert", "easy.xsb", "."],
            "maskoban: .: there are levels in this folder already (easy.xsb); expected none\n",
        ),
        (
            ["convert", "easy.xsb", "a.b"],
            "maskoban: a.b: unknown suffix; expected .xsb, .txt, .sok, .slc, .npz, .npy, or / for a folder\n",
        ),
        (
            ["convert", "easy.xsb", "a.sok", "--to", "pdf"],
            "maskoban: format: expected one of xsb, sok, boxoban, slc, npz, npy, got 'pdf'\n",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    arguments: list[str], sentence: str, easy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(easy.parent)
    before = sorted(easy.parent.iterdir())
    done = maskoban(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
    assert sorted(easy.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["solve"], "Missing argument"),
        (["solve", "a.xsb", "--mode", "best"], "Invalid value for '--mode'"),
        (["repair", "a.xsb", "--walls", "3"], "Invalid value for '--walls'"),
        (["rate", "a.xsb", "--threads", "0"], "Invalid value for '--threads'"),
        (["slove", "a.xsb"], "No such command"),
    ],
)
def test_bad_usage_is_explained_with_code_2(arguments: list[str], hint: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert hint in " ".join(result.output.split())


def test_in_a_log_long_work_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0.0, 10.0, 31.0, 31.0, 50.0, 62.0, 62.0])
    monkeypatch.setattr("maskoban.cli.output.time.monotonic", lambda: next(now))
    with progress_bar("making boards", Output(as_json=False)) as progress:
        for done in (1, 2000, 3000, 4000):
            progress(done, 4000)
    assert capsys.readouterr().err == "making boards: 2,000 of 4,000\nmaking boards: 4,000 of 4,000\n"


def test_levels_are_filtered_while_they_are_converted(collection: Path, tmp_path: Path) -> None:
    assert maskoban("convert", collection, tmp_path / "good.sok", "--only-solvable").returncode == 0
    assert [level.title for level in read(tmp_path / "good.sok")] == ["Two steps"]
    one = maskoban("convert", collection, tmp_path / "one.npy", "--boxes", 1, "--difficulty", WORD)
    assert one.returncode == 0
    turned = [
        Level.parse("#####\n#@ $.#\n#####"),
        Level.parse("#####\n#.$ @#\n#####"),
        Level.parse("#####\n#@$ .#\n#####"),
    ]
    write(tmp_path / "turned.sok", turned)
    assert maskoban("convert", tmp_path / "turned.sok", tmp_path / "once.sok", "--unique").returncode == 0
    assert [str(level) for level in read(tmp_path / "once.sok")] == [str(turned[0]), str(turned[2])]
    refused = maskoban("convert", collection, tmp_path / "none.sok", "--difficulty", "expert")
    assert refused.returncode == 2
    assert refused.stderr == f"maskoban: {collection}: no level matches the filter (expert)\n"
    assert not (tmp_path / "none.sok").exists()


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("repair levels.sok --out mended.sok", ["mended.sok"]),
        ("generate -n 3 --steps 2 --picture sheet.png --animate a.gif", ["sheet.png", "a.gif"]),
    ],
)
def test_files_are_written_though_the_reader_of_the_rest_has_left(
    tmp_path: Path, command: str, made: list[str]
) -> None:
    write(tmp_path / "levels.sok", [EASY, WALLED] * CHUNK)
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "maskoban", *command.split()]
    done = subprocess.run(
        line, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=LIMIT
    )
    os.close(writing)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert all((tmp_path / each).stat().st_size > 0 for each in made)
    if "mended.sok" in made:
        assert len(read(tmp_path / "mended.sok")) == 2 * CHUNK


def test_a_reader_that_leaves_early_is_no_error_to_talk_about(tmp_path: Path) -> None:
    write(tmp_path / "many.xsb", [EASY] * 4000)
    for command in ("solve", "show"):
        running = subprocess.Popen(
            [sys.executable, "-m", "maskoban", command, tmp_path / "many.xsb"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(LIMIT) == 1
        running.stderr.close()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("solve many.xsb > /dev/full", "output cannot be written: No space left on device"),
        ("solve one.xsb > /dev/full", "output cannot be written: No space left on device"),
        ("show many.xsb > /dev/full", "output cannot be written: No space left on device"),
        ("convert many.xsb - > /dev/full", "output cannot be written: No space left on device"),
        ("convert one.xsb - > /dev/full", "output cannot be written: No space left on device"),
        ("solve - <&-", "-: standard input is closed"),
        ("solve one.xsb >&-", "standard output is closed"),
        ("convert one.xsb - >&-", "standard output is closed"),
    ],
)
def test_streams_that_are_full_or_closed_are_one_sentence_and_code_2(
    command: str, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path / "one.xsb", EASY)
    write(tmp_path / "many.xsb", [EASY] * 2000)
    for unbuffered in ("", "1"):
        line = f"PYTHONUNBUFFERED={unbuffered} {sys.executable} -m maskoban {command}"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"maskoban: {sentence}\n")


def test_without_an_error_stream_results_are_all_that_is_written(tmp_path: Path) -> None:
    write(tmp_path / "two.xsb", [EASY, HOPELESS])
    line = f"{sys.executable} -m maskoban solve --json two.xsb 2>&-"
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, text=True, cwd=tmp_path, timeout=LIMIT)
    assert (done.returncode, len(rows(done.stdout))) == (1, 2)


def test_ctrl_c_ends_with_130_and_keeps_what_was_found(tmp_path: Path) -> None:
    levels = tmp_path / "levels.xsb"
    # A board far too large to exhaust, right after an easy one.
    endless = "\n".join(["#" * 40, *["#" + " $ ." * 9 + "  #"] * 8, "#@" + " " * 37 + "#", "#" * 40])
    levels.write_text(f"{EASY}\n\n{endless}")
    running = subprocess.Popen(
        [sys.executable, "-m", "maskoban", "solve", "--json", "--mode", "effort", levels],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    assert json.loads(running.stdout.readline())["verdict"] == "solved"
    running.send_signal(signal.SIGINT)
    assert running.stdout.read() == ""
    assert running.stderr.read() == ""
    assert running.wait(LIMIT) == 130
    running.stdout.close()
    running.stderr.close()


@pytest.mark.parametrize(("code", "set_back"), [(130, [(signal.SIGINT, signal.SIG_DFL)]), (2, [])])
def test_a_second_ctrl_c_ends_at_once_and_without_a_traceback(
    code: int, set_back: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[Any] = []
    monkeypatch.setattr("maskoban.cli.app.signal.signal", lambda *what: requested.append(what))
    monkeypatch.setattr("maskoban.cli.app.app", lambda prog_name: sys.exit(code))
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == code
    assert requested == set_back


INTERRUPTED_IMPORT = """
import signal, sys
from maskoban.__main__ import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
            raise ImportError("initialization failed")  # as native modules do

sys.meta_path.insert(0, Finder())
sys.argv = ["maskoban", "solve", "levels.xsb"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C cannot be sent to one process alone")
@pytest.mark.parametrize("module", ["typer", "maskoban.cli.solve", "maskoban.solving", "numpy"])
def test_ctrl_c_while_modules_load_ends_with_130_and_no_word(module: str, tmp_path: Path) -> None:
    write(tmp_path / "levels.xsb", [EASY])
    command = [sys.executable, "-c", INTERRUPTED_IMPORT.format(module=module)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_a_native_module_makes_of_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("maskoban.boards.stream", interrupted)
    assert CliRunner().invoke(app, ["show", "levels.xsb"]).exit_code == 130


def test_more_than_memory_holds_is_one_sentence_and_code_2(tmp_path: Path) -> None:
    # In a process of its own: where DuckDB was imported, it decides which exception is raised.
    done = maskoban("corpus", "synth", tmp_path / "all.npz", "-n", 10**14)
    assert (done.returncode, done.stderr) == (2, "maskoban: not enough memory for so much at once\n")
    assert list(tmp_path.iterdir()) == []


# --- help


def test_version() -> None:
    done = maskoban("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("maskoban ")


@pytest.mark.parametrize("command", ["solve", "repair", "rate", "show", "convert", "check"])
def test_every_command_has_help_with_examples(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"maskoban {command} " in result.stdout.split("Examples:")[1]
