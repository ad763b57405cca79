"""The commands around the model: drawing, completing, the corpus, training and export.

A dummy model samples here, so that every test takes a moment. Its boards are

    ########
    #@$x.  #
    #yyyyyy#
    ########

where x and every y is wall or floor, as the dice fall: a board can be solved if and only if x is floor.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import maskoban
from maskoban.boards import BOX, FLOOR, GOAL, MASK, PLAYER, WALL, Level, Tokens, read, write
from maskoban.cli.app import app
from maskoban.cli.options import ANIMATED
from maskoban.diffusion.loading import load as load_shipped
from maskoban.diffusion.model import Model
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.diffusion.schedule import Schedule
from maskoban.pictures import sheet
from maskoban.pictures.gif import quantize
from maskoban.solving import rate, solve
from maskoban.solving.filters import BoardFilter
from tests.waiting import LIMIT

SURE = Level.parse("########\n#@$ .  #\n#      #\n########").tokens[1:-1, 1:-1].ravel()
WORD = rate(Level.parse("########\n#@$ .  #\n#      #\n########")).difficulty
OPEN = [2, *range(6, 12)]
LOGITS = np.full((12, 7), -30, np.float32)
LOGITS[np.arange(12), SURE] = LOGITS[OPEN, WALL] = 0


class Dice:
    """A denoiser that knows what to draw where, but not what its neighbours are."""

    height, width, margin, steps, batch, overlap = 4, 8, 1, 12, 4, 1
    schedule: Schedule = "linear"

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        return LOGITS[cells]


MODEL = Model(Dice(), {"name": "dice"}, int8=Dice)
SEED = 7


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Let every command load the dummy; gives the names and devices that were requested."""
    requested: list[tuple[str, str]] = []

    def load(name: str = "best", device: str = "cpu") -> Model:
        requested.append((name, device))
        return MODEL

    monkeypatch.setattr(maskoban, "load", load, raising=False)
    return requested


def run(*arguments: object, code: int = 0, **environment: str) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False, env=environment)
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]


def open_way(level: Level) -> bool:
    return bool(level.tokens[1, 3] == FLOOR)


def caption_of(level: Level) -> str:
    if open_way(level):
        return f"solved, {WORD}\n2 pushes, effort 2"
    return "unsolvable\na box stands on a dead cell"


# --- generate


def test_boards_go_into_a_pipe_as_a_level_file_with_the_judgement_in_comments(tmp_path: Path) -> None:
    shown = run("generate", "-n", 5, "--seed", SEED)
    (tmp_path / "piped.xsb").write_text(shown.stdout)
    generated = MODEL.generate(5, SEED)
    assert [str(level) for level in read(tmp_path / "piped.xsb")] == [str(level) for level in generated]
    heads = [line for line in shown.stdout.splitlines() if line.startswith(";")]
    for index, (head, level) in enumerate(zip(heads, generated, strict=True)):
        judged = (
            f"solved, {WORD}, 2 pushes, effort 2"
            if open_way(level)
            else "unsolvable, a box stands on a dead cell"
        )
        assert head == f"; {index}: {judged}"
    solved = sum(map(open_way, generated))
    assert 0 < solved < 5
    assert shown.stderr.startswith(f"5 boards of seed {SEED}; the solver's verdicts: ")
    assert f"{solved} solved" in shown.stderr


def test_json_has_the_promised_keys() -> None:
    found = run_json("generate", "-n", 5, "--seed", SEED)
    keys = ["index", "seed", "number", "board", "id", "verdict", "reason"]
    keys += ["effort", "pushes", "moves", "box_changes", "box_lines", "word", "limit_hit"]
    keys += ["decomposed_effort", "boxes_at_once", "decomposed_word", "guided_effort", "reference"]
    assert all(list(row) == keys for row in found)
    for number, (row, level) in enumerate(zip(found, MODEL.generate(5, SEED), strict=True)):
        assert (row["index"], row["seed"], row["number"]) == (number, SEED, number)
        assert (row["board"], row["id"]) == (str(level), level.id)
        assert row["verdict"] == ("solved" if open_way(level) else "unsolvable")
        assert (row["pushes"], row["word"]) == ((2, WORD) if open_way(level) else (None, None))


def test_filters_keep_the_first_of_the_sequence_that_pass() -> None:
    everything = MODEL.generate(20, SEED)
    wanted = [number for number, level in enumerate(everything) if open_way(level)][:3]
    for options in (["--only-solvable"], ["--difficulty", WORD]):
        found = run_json("generate", "-n", 3, "--seed", SEED, "--boxes", 1, *options)
        assert [row["number"] for row in found] == wanted
        assert [row["index"] for row in found] == [0, 1, 2]
        assert {row["verdict"] for row in found} == {"solved"}
    message = run("generate", "-n", 3, "--seed", SEED, "--only-solvable").stderr
    assert f"(chosen from the first {wanted[-1] + 1})" in message


def test_what_is_too_rare_is_said() -> None:
    assert "gave up" in run("generate", "-n", 1, "--boxes", 3, code=2).stderr


def press_ctrl_c_after(evaluations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, requested = Dice.logits, count(1)

    def pressed(self: Dice, *arguments: Any) -> NDArray[np.float32]:
        if next(requested) > evaluations:
            raise KeyboardInterrupt
        return plain(self, *arguments)

    monkeypatch.setattr(Dice, "logits", pressed)


@pytest.mark.parametrize("options", [[], ["--boxes", 1]])
def test_what_was_generated_before_ctrl_c_is_saved(
    options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = MODEL.generate(12, SEED)
    press_ctrl_c_after(40, monkeypatch)  # a batch of 4 boards takes no more than 12
    message = run(
        "generate", "-n", 40, "--seed", SEED, *options, "--out", tmp_path / "a.sok", code=130
    ).stderr
    assert message == f"maskoban: interrupted; 12 boards that were finished are in {tmp_path / 'a.sok'}\n"
    assert read(tmp_path / "a.sok") == wanted
    assert run("generate", "-n", 40, *options, code=130).stderr == ""  # nowhere to save them


def test_what_the_critic_kept_before_ctrl_c_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Model(Dice(), {"name": "dice", "critic": 1.0}, critic=Open())
    monkeypatch.setattr(maskoban, "load", lambda *_: judged)
    wanted = judged.generate(12, SEED)
    assert judged.trajectory(7, SEED).attempts.tolist() == [1, 3, 1, 1, 4, 3, 1]
    press_ctrl_c_after(
        30, monkeypatch
    )  # attempts at 0, 1, 2, 3, then at 1, 4, 5, 6, each time in 12 evaluations
    message = run("generate", "-n", 12, "--seed", SEED, "--out", tmp_path / "a.sok", code=130).stderr
    assert message == f"maskoban: interrupted; 4 boards that were finished are in {tmp_path / 'a.sok'}\n"
    assert read(tmp_path / "a.sok") == [wanted[number] for number in (0, 2, 3, 6)]


def test_ctrl_c_is_heard_where_as_many_boards_as_wanted_are_done_but_not_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Model(Dice(), {"name": "dice", "critic": 1.0}, critic=Open())
    monkeypatch.setattr(maskoban, "load", lambda *_: judged)
    wanted = judged.generate(12, SEED)
    press_ctrl_c_after(20, monkeypatch)
    run("generate", "-n", 3, "--seed", SEED, "--boxes", 1, "--out", tmp_path / "a.sok", code=130)
    assert read(tmp_path / "a.sok") == [wanted[number] for number in (0, 2, 3)]


@pytest.mark.parametrize("options", [[], ["--boxes", 3], ["--animate", "a.gif"]])
def test_ctrl_c_before_there_is_a_board_to_keep_says_so(
    options: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    press_ctrl_c_after(11, monkeypatch)
    message = run("generate", "-n", 20, "--out", "a.sok", *options, code=130).stderr
    assert message == "maskoban: interrupted before a board was finished; a.sok was not written\n"
    assert list(tmp_path.iterdir()) == []


def test_options_reach_the_model(loaded: list[tuple[str, str]]) -> None:
    how = ["--temperature", 1.5, "--polish", 1, "--steps", 3, "--order", "confidence"]
    found = run_json("generate", "-n", 4, "--seed", SEED, *how, "--model", "other", "--device", "cuda")
    config = SamplerConfig(temperature=1.5, sweeps=1, steps=3, order="confidence")
    generated = MODEL.generate(4, SEED, config)
    assert [row["board"] for row in found] == [str(level) for level in generated]
    assert loaded == [("other", "cuda")]


class Open:
    """A critic that keeps no board but those where x is floor."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.where(tokens[:, 2] == FLOOR, 0, -np.inf).astype(np.float32)


@pytest.mark.parametrize(
    ("option", "all_open"),
    [([], True), (["--critic"], True), (["--no-critic"], False), (["--steps", 12], False)],
)
def test_the_critic_is_on_unless_it_is_turned_off(
    option: list[object], all_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Model(Dice(), {"name": "dice", "critic": 1.0}, critic=Open())
    monkeypatch.setattr(maskoban, "load", lambda *_: judged)
    found = run_json("generate", "-n", 6, "--seed", SEED, *option)
    assert all(row["verdict"] == "solved" for row in found) == all_open


def test_boards_are_saved_in_any_format(tmp_path: Path) -> None:
    run("generate", "-n", 4, "--seed", SEED, "--out", tmp_path / "a.sok")
    run("generate", "-n", 4, "--seed", SEED, "--out", tmp_path / "a.npz")
    generated = MODEL.generate(4, SEED)
    assert read(tmp_path / "a.sok") == generated
    assert [level.tokens.tolist() for level in read(tmp_path / "a.npz")] == [
        level.tokens.tolist() for level in generated
    ]


def test_a_picture_carries_verdicts(tmp_path: Path) -> None:
    run("generate", "-n", 5, "--seed", SEED, "--picture", tmp_path / "sheet.svg")
    generated = (tmp_path / "sheet.svg").read_text()
    solved = sum(map(open_way, MODEL.generate(5, SEED)))
    assert generated.count(f">solved, {WORD}<") == generated.count(">2 pushes, effort 2<") == solved
    assert generated.count(">unsolvable<") == 5 - solved


@pytest.mark.parametrize("options", [[], ["--only-solvable"], ["--polish", "1"]])
def test_the_animation_ends_with_the_boards_that_are_shown(tmp_path: Path, options: list[str]) -> None:
    found = run_json("generate", "-n", 3, "--seed", SEED, "--animate", tmp_path / "generated.gif", *options)
    shown = [Level.parse(row["board"]) for row in found]
    with Image.open(tmp_path / "generated.gif") as gif:
        gif.seek(gif.n_frames - 1)
        last = gif.convert("RGB")
    wanted = sheet([level.tokens for level in shown], [*map(caption_of, shown)], cell=24)
    assert last.tobytes() == quantize(wanted).convert("RGB").tobytes()


def test_recording_changes_nothing(tmp_path: Path) -> None:
    run("generate", "-n", 5, "--out", tmp_path / "a.sok")
    run("generate", "-n", 5, "--out", tmp_path / "b.sok", "--animate", tmp_path / "b.gif")
    assert read(tmp_path / "a.sok") == read(tmp_path / "b.sok")


def test_a_crowd_is_animated_in_part(tmp_path: Path) -> None:
    run("generate", "-n", ANIMATED + 1, "--steps", 2, "--animate", tmp_path / "generated.gif")
    with Image.open(tmp_path / "generated.gif") as gif:
        assert gif.size == sheet(MODEL.sample(ANIMATED), ["two\nlines"] * ANIMATED, cell=24).size


def test_a_terminal_shows_boards_side_by_side() -> None:
    shown = run("generate", "-n", 3, "--seed", SEED, FORCE_COLOR="1", COLUMNS="60", NO_COLOR="").stdout
    heads = [line for line in shown.splitlines() if "solv" in line]
    assert [sum(f"{index} " in line for index in range(3)) for line in heads] == [2, 1]


def test_nothing_is_generated_where_a_result_could_not_be_saved(
    tmp_path: Path, loaded: list[tuple[str, str]]
) -> None:
    for option, name in [("--out", "a.doc"), ("--picture", "a.bmp"), ("--animate", "a.mp4")]:
        assert "expected " in run("generate", option, tmp_path / name, code=2).stderr
    for option, name in [("--out", "a.sok"), ("--picture", "a.svg"), ("--animate", "a.gif")]:
        place = tmp_path / "nowhere" / name
        sentence = f"maskoban: {place}: cannot be written: No such file or directory\n"
        assert run("generate", option, place, code=2).stderr == sentence
    assert "--out: expected a file" in run("generate", "--out", "-", code=2).stderr
    assert loaded == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--temperature", 0], "temperature: expected a number above 0, got 0"),
        (["--steps", 0], "steps: expected at least 1, got 0"),
        (["--polish", -1], "sweeps: expected 0 or more, got -1"),
        (["--critic"], "model 'dice' has no critic"),
        (["--difficulty", "absurd"], "Invalid value for '--difficulty'"),
        (["--precision", "fp16"], "Invalid value for '--precision'"),
        (["-n", 0], "Invalid value for '-n'"),
    ],
)
def test_what_cannot_be_generated_is_said(arguments: list[object], hint: str) -> None:
    assert hint in " ".join(run("generate", *arguments, code=2).stderr.split())


def test_ctrl_c_ends_with_130_and_repeats_what_can_be_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt("stopped with 3 of 9")

    monkeypatch.setattr(maskoban, "load", interrupted)
    assert run("generate", code=130).stderr == "maskoban: stopped with 3 of 9\n"


def test_the_shipped_model_samples_the_same_boards_from_the_shell_as_in_the_library() -> None:
    arguments = ["generate", "-n", "2", "--seed", "7", "--steps", "8", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "maskoban", *arguments], capture_output=True, text=True, timeout=LIMIT
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    generated = load_shipped().generate(2, seed=7, sampler=SamplerConfig(steps=8))
    assert [(row["board"], row["id"]) for row in found] == [(str(level), level.id) for level in generated]
    assert {level.shape for level in generated} == {(10, 10)}


# --- complete

IDEA = Level.parse("########\n#@$???##\n#     ?#\n########")


@pytest.fixture
def ideas(tmp_path: Path) -> Path:
    write(tmp_path / "ideas.sok", [Level(IDEA.tokens, title="Mine"), IDEA])
    return tmp_path / "ideas.sok"


def test_completions_keep_every_given_cell(ideas: Path) -> None:
    found = run_json("complete", ideas, "-n", 4, "--seed", SEED)
    assert [(row["index"], row["level"], row["number"]) for row in found] == [
        (index, index // 4, index % 4) for index in range(8)
    ]
    assert [row["title"] for row in found] == ["Mine"] * 4 + [""] * 4
    given = IDEA.tokens != MASK
    boards = [Level.parse(row["board"]).tokens for row in found]
    assert all((board[given] == IDEA.tokens[given]).all() for board in boards)
    assert not any((board == MASK).any() for board in boards)
    assert {row["verdict"] for row in found} == {"solved", "unsolvable"}


def test_completions_are_saved_pictured_and_animated(ideas: Path, tmp_path: Path) -> None:
    saved = ["--out", tmp_path / "a.sok", "--picture", tmp_path / "a.png", "--animate", tmp_path / "a.gif"]
    saved += ["--precision", "int8"]
    message = run("complete", ideas, "-n", 2, "--seed", SEED, *saved).stderr
    assert message.startswith("4 boards; the solver's verdicts: ")
    assert [level.title for level in read(tmp_path / "a.sok")] == ["Mine", "Mine", "", ""]
    with Image.open(tmp_path / "a.png") as picture, Image.open(tmp_path / "a.gif") as gif:
        assert picture.size[0] > gif.size[0]
        assert gif.n_frames == 4 + 2


def test_completions_are_chosen(ideas: Path, tmp_path: Path) -> None:
    every = run_json("complete", ideas, "-n", 12, "--seed", SEED)
    keep = ["--only-solvable", "--animate", tmp_path / "a.gif"]
    chosen = run_json("complete", ideas, "-n", 2, "--seed", SEED, *keep)
    fit = [row for row in every if row["verdict"] == "solved"]
    first = [row for level in (0, 1) for row in [row for row in fit if row["level"] == level][:2]]
    assert [(row["level"], row["number"], row["board"]) for row in chosen] == [
        (row["level"], row["number"], row["board"]) for row in first
    ]
    assert len(first) == 4 < max(row["number"] for row in chosen) * 4  # some were left out
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 4 + 2
    message = run("complete", ideas, "-n", 2, "--seed", SEED, "--only-solvable").stderr
    tried = 2 * max(row["number"] for row in chosen) + 2
    assert message == f"4 boards (chosen from {tried}); the solver's verdicts: 4 solved\n"


def test_completions_that_cannot_be_are_given_up(tmp_path: Path) -> None:
    write(tmp_path / "walled.sok", [Level.parse("########\n#@#$.#?#\n###  ###\n########")])
    message = run("complete", tmp_path / "walled.sok", "-n", 1, "--only-solvable", code=2).stderr
    assert message == (
        f"maskoban: {tmp_path}/walled.sok, level 0: only 0 of 500 sampled boards match (solvable); gave up\n"
    )


def test_a_level_that_cannot_be_completed_does_not_cost_the_others(tmp_path: Path) -> None:
    hopeless = Level.parse("########\n#@#$.#?#\n###  ###\n########")
    write(tmp_path / "two.sok", [hopeless, IDEA])
    given = ["complete", tmp_path / "two.sok", "-n", 2, "--seed", SEED, "--only-solvable"]
    message = run(*given, "--out", tmp_path / "done.sok", "--animate", tmp_path / "a.gif", code=1).stderr
    assert "two.sok, level 0: only 0 of 1000 sampled boards match (solvable); gave up\n2 boards (" in message
    assert [solve(level).verdict for level in read(tmp_path / "done.sok")] == ["solved", "solved"]
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 4 + 2


def test_completions_that_nothing_can_change_are_refused_at_once(tmp_path: Path) -> None:
    write(tmp_path / "one.sok", [Level.parse("########\n#@$ $..#\n#   ?  #\n########")])
    message = run("complete", tmp_path / "one.sok", "--boxes", 1, code=2).stderr
    assert message.endswith("level 0: the board has 2 boxes; expected at most 1\n")
    write(tmp_path / "whole.sok", [Level.parse("########\n#@#$.  #\n########\n########")])
    message = run("complete", tmp_path / "whole.sok", "-n", 1, "--only-solvable", code=2).stderr
    assert "the board has no masked cells, and does not match the filter" in message


def test_a_board_with_nothing_to_draw_comes_as_often_as_requested(tmp_path: Path) -> None:
    whole = Level.parse("########\n#@ $.  #\n########\n########")
    write(tmp_path / "whole.sok", [whole])
    run("complete", tmp_path / "whole.sok", "-n", 100, "--only-solvable", "--out", tmp_path / "all.sok")
    assert [str(level) for level in read(tmp_path / "all.sok")] == [str(whole)] * 100


def test_a_filter_by_boxes_wants_as_many_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = np.array([[[BOX, PLAYER, GOAL]], [[BOX, PLAYER, FLOOR]], [[BOX, GOAL, FLOOR]]], np.uint8)
    sampled = iter([(np.arange(4), np.resize(boards, (4, 1, 3)))])
    monkeypatch.setattr(Model, "_in_order", lambda *_: sampled)
    assert [number for number, _ in MODEL.stream(2, board_filter=BoardFilter(boxes=1))] == [0, 3]


def test_trajectories_of_different_lengths_end_together(tmp_path: Path) -> None:
    short = Level.parse("########\n#@$?.  #\n#      #\n########")
    write(tmp_path / "two.sok", [short, IDEA])
    run("complete", tmp_path / "two.sok", "-n", 1, "--animate", tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 4 + 2


def test_levels_that_nothing_could_complete_are_named_before_the_others_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    players, small = Level.parse("########\n#@$?.@ #\n#      #\n########"), Level.parse("#####\n#@?.#\n#####")
    write(tmp_path / "bad.sok", [IDEA, players, small, IDEA])
    sentences = (
        f"maskoban: {tmp_path}/bad.sok, level 1: the board has 2 players; expected at most one\n"
        f"maskoban: {tmp_path}/bad.sok, level 2: the board is 3x5, but model 'dice' samples 4x8 boards; "
        "surround it with #\n"
    )
    shown = run("complete", tmp_path / "bad.sok", "-n", 2, "--json", code=1)
    assert shown.stderr == sentences
    assert [json.loads(line)["level"] for line in shown.stdout.splitlines()] == [0, 0, 3, 3]
    press_ctrl_c_after(0, monkeypatch)
    assert run("complete", tmp_path / "bad.sok", code=130).stderr == sentences


def test_what_is_wrong_with_the_options_is_no_matter_of_a_level(ideas: Path) -> None:
    message = run("complete", ideas, "--temperature", 0, code=2).stderr
    assert message == "maskoban: temperature: expected a number above 0, got 0\n"


# --- corpus


def test_boards_are_made_packed_and_described(tmp_path: Path) -> None:
    made, packed = tmp_path / "made.sok", tmp_path / "packed.npz"
    run("corpus", "synth", made, "-n", 20, "--height", 7, "--width", 8, "--boxes", 2, "--seed", 3)
    assert {level.shape for level in read(made)} == {(7, 8)}
    done = run("corpus", "pack", made, packed)
    assert done.stdout.startswith("20 boards of 7x8")
    assert f"packed into {packed}" in done.stderr
    assert run("corpus", "info", packed).stdout == done.stdout
    described = json.loads(run("corpus", "info", packed, "--json").stdout)
    assert (described["boards"], described["boxes"]["most"]) == (20, 2)
    piped = CliRunner().invoke(app, ["corpus", "info", "-"], input=made.read_bytes())
    assert piped.stdout == done.stdout


def test_a_packed_corpus_is_named_after_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("corpus", "synth", "train/", "-n", 5)
    run("corpus", "pack", "train")
    assert run("corpus", "info", "train.npz").stdout.startswith("5 boards")
    Path("train").rename("train.v2")
    run("corpus", "pack", "train.v2")
    assert Path("train.v2.npz").is_file()
    assert "need the name of a file" in run("corpus", "pack", "-", code=2).stderr


@pytest.mark.parametrize("boxes", ["9" * 5000, "²", "1-2", ""])
def test_a_single_file_wants_one_number_of_boxes(tmp_path: Path, boxes: str) -> None:
    said = run("corpus", "synth", tmp_path / "made.npz", "-n", 1, "--boxes", boxes, code=2).stderr
    assert said.startswith("maskoban: --boxes: expected a number, got ")


def test_a_corpus_that_is_nowhere_is_said(tmp_path: Path) -> None:
    said = run("corpus", "info", "medium", code=2, MASKOBAN_CACHE=str(tmp_path)).stderr
    assert said.startswith("maskoban: no corpus 'medium'")


def test_fetching_says_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("corpus", "fetch", "--split", "easy", "--to", tmp_path, code=2).stderr
    assert said.startswith("maskoban: Boxoban has no split 'easy'")
    monkeypatch.setattr("maskoban.boards.download.PAUSE", 0.01)
    with socket.socket() as closed:  # a port that nobody listens on
        closed.bind(("127.0.0.1", 0))
        mirror = f"http://127.0.0.1:{closed.getsockname()[1]}"
        said = run("corpus", "fetch", "--split", "hard", "--to", tmp_path, "--url", mirror, code=2).stderr
    assert said.startswith(f"maskoban: cannot download {mirror}/hard/")


# --- training and export


def test_training_without_torch_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "maskoban.training.run", "maskoban.training.critic"):
        monkeypatch.setitem(sys.modules, module, None)
    for command in (["train"], ["train", "critic"]):
        said = run(*command, code=2).stderr
        assert said.startswith("maskoban: training needs ")
        assert said.endswith(": pip install 'maskoban[train]'\n")


def test_export_of_what_is_no_run_is_said(tmp_path: Path) -> None:
    assert run("export", tmp_path, tmp_path / "out", code=2).stderr.startswith(f"maskoban: {tmp_path}")


# --- help


@pytest.mark.parametrize(
    "command",
    [
        "generate",
        "complete",
        "corpus fetch",
        "corpus pack",
        "corpus info",
        "corpus synth",
        "train",
        "train critic",
        "export",
    ],
)
def test_every_command_has_help_with_examples(command: str) -> None:
    assert f"maskoban {command} " in run(*command.split(), "--help").stdout.split("Examples:")[1]
