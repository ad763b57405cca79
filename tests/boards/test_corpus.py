"""Corpora: packed from level files, described, found by name, and refused when a level is malformed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import Level, write
from maskoban.boards import download as downloading
from maskoban.boards.corpus import Spread, info, load, pack
from maskoban.boards.download import make_manifest
from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError

GOOD = """\
######
#@$. #
######"""

STARTED = """\
######
# *+$#
######"""

OPEN = """\
#####
#@$.
#####"""


def boards(*drawings: str) -> np.ndarray:
    return np.stack([Level.parse(drawing).tokens for drawing in drawings])


def test_info_counts_what_is_on_the_boards() -> None:
    told = info(boards(GOOD, GOOD, STARTED))
    assert (told.boards, told.distinct, told.height, told.width) == (3, 2, 3, 6)
    assert told.border_is_wall
    assert told.tile_means == pytest.approx(
        {
            "wall": 14,
            "floor": 1,
            "player": 2 / 3,
            "box": 1,
            "goal": 2 / 3,
            "box on goal": 1 / 3,
            "player on goal": 1 / 3,
        }
    )
    assert told.boxes == Spread(1, pytest.approx(4 / 3), 2)
    assert told.goals == Spread(1, pytest.approx(4 / 3), 2)
    assert told.players == Spread(1, 1.0, 1)


def test_info_sees_a_gap_in_the_border() -> None:
    assert not info(boards(OPEN)).border_is_wall


def test_info_takes_any_view_of_an_array() -> None:
    mirrored = boards(GOOD, STARTED)[:, :, ::-1]
    assert info(mirrored) == info(mirrored.copy())


def test_info_can_be_printed_and_saved() -> None:
    told = info(boards(GOOD, STARTED))
    assert str(told).startswith("2 boards of 3x6, 2 distinct\nborder: all wall\nwall: 14.000 a board\n")
    assert json.loads(json.dumps(asdict(told)))["boxes"] == {"least": 1, "mean": 1.5, "most": 2}


def test_no_boards_are_no_corpus() -> None:
    with pytest.raises(MaskobanError, match="there are no boards to describe"):
        info(np.empty((0, 10, 10), np.uint8))


@pytest.mark.parametrize("ending", ["xsb", "sok", "slc", "npz"])
def test_a_file_of_any_format_packs_and_loads(tmp_path: Path, ending: str) -> None:
    levels = synthesize(30, 7, 8, 2)
    write(tmp_path / f"levels.{ending}", levels)
    assert pack(tmp_path / f"levels.{ending}", tmp_path / "packed.npz") == info(levels)
    assert np.array_equal(load(tmp_path / "packed.npz"), levels)
    assert np.array_equal(load(tmp_path / f"levels.{ending}"), levels)


def test_a_folder_packs_in_the_order_of_its_files(tmp_path: Path) -> None:
    levels = synthesize(30, 7, 8, 2)
    (tmp_path / "levels").mkdir()
    write(tmp_path / "levels" / "000.txt", levels[:20], format="boxoban")
    write(tmp_path / "levels" / "001.txt", levels[20:], format="boxoban")
    (tmp_path / "levels" / "README.md").write_text("not levels")
    pack(tmp_path / "levels", tmp_path / "packed.npz")
    assert np.array_equal(load(tmp_path / "packed.npz"), levels)


@pytest.mark.parametrize(
    ("drawing", "problem"),
    [
        (GOOD.replace("@", " "), "no player"),
        (GOOD.replace(". ", ".@"), "2 players"),
        (GOOD.replace("$.", "  "), "no boxes"),
        (GOOD.replace(". ", ".$"), "2 boxes but 1 goal"),
        (GOOD.replace(". ", ".."), "1 box but 2 goals"),
        (GOOD.replace(". ", ".?"), "masked cells left"),
    ],
)
def test_a_malformed_level_is_named_and_nothing_is_written(
    tmp_path: Path, drawing: str, problem: str
) -> None:
    folder = tmp_path / "levels"
    folder.mkdir()
    (folder / "00.txt").mkdir()  # a folder of such a name is no level file
    write(folder / "000.txt", [Level.parse(GOOD)] * 3)
    write(folder / "001.txt", [Level.parse(GOOD), Level.parse(drawing), Level.parse(GOOD)])
    with pytest.raises(MaskobanError) as caught:
        pack(folder, tmp_path / "packed.npz")
    assert str(caught.value) == f"{folder / '001.txt'}: level 2 is malformed: {problem}"
    with pytest.raises(MaskobanError, match="level 2 is malformed"):
        load(folder / "001.txt")
    assert not (tmp_path / "packed.npz").exists()


def test_boards_of_two_sizes_are_no_corpus(tmp_path: Path) -> None:
    write(tmp_path / "mixed.xsb", [Level.parse(GOOD), Level.parse(OPEN)])
    with pytest.raises(MaskobanError, match=r"mixed\.xsb: boards of 3x6 and of 3x5; expected one size"):
        pack(tmp_path / "mixed.xsb", tmp_path / "packed.npz")


def test_a_packed_corpus_is_an_npz_file(tmp_path: Path) -> None:
    write(tmp_path / "levels.xsb", [Level.parse(GOOD)])
    with pytest.raises(MaskobanError, match=r"packed\.txt: a packed corpus is an npz file"):
        pack(tmp_path / "levels.xsb", tmp_path / "packed.txt")


def test_a_corpus_in_the_cache_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path))
    levels = synthesize(5, 6, 6, 1)
    write(tmp_path / "mine.npz", levels)
    assert np.array_equal(load("mine"), levels)
    with pytest.raises(MaskobanError) as caught:
        load("yours")
    assert str(caught.value) == (
        f"no corpus 'yours': it is neither a file or folder nor packed in {tmp_path} (mine); "
        "`maskoban corpus fetch` downloads Boxoban"
    )


def test_a_downloaded_split_is_packed_when_it_is_first_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKOBAN_CACHE", str(tmp_path))
    levels = synthesize(6, 6, 6, 1)
    for split in downloading.SPLITS:
        (tmp_path / "boxoban" / split).mkdir(parents=True)
        write(tmp_path / "boxoban" / split / "000.txt", levels[:3], format="boxoban")
        write(tmp_path / "boxoban" / split / "001.txt", levels[3:], format="boxoban")
    manifest = tmp_path / "manifest.json"
    manifest.write_text(make_manifest(tmp_path / "boxoban"))
    monkeypatch.setattr(downloading, "MANIFEST", manifest)

    assert np.array_equal(load("boxoban-medium-train"), levels)
    assert (tmp_path / "boxoban-medium-train.npz").exists()
    # A split with a file missing is not passed off as the whole.
    (tmp_path / "boxoban" / "hard" / "001.txt").unlink()
    with pytest.raises(MaskobanError, match="no corpus 'boxoban-hard'"):
        load("boxoban-hard")


def test_boxoban_is_what_the_paper_trained_on(boxoban: Path, tmp_path: Path) -> None:
    told = pack(boxoban / "medium" / "valid", tmp_path / "valid.npz")
    assert (told.boards, told.distinct, told.height, told.width) == (50_000, 50_000, 10, 10)
    assert round(told.tile_means["wall"], 3) == 68.658
    assert told.border_is_wall
    assert told.boxes == told.goals == Spread(4, 4.0, 4)
    assert told.players == Spread(1, 1.0, 1)
    # At this rate the 450,000 of medium/train take 7.5 MB.
    assert (tmp_path / "valid.npz").stat().st_size < 20 * told.boards

    train = info(load(boxoban / "medium" / "train"))
    assert (train.boards, round(train.tile_means["wall"], 3)) == (450_000, 68.601)


def test_corpora_need_nothing_but_numpy() -> None:
    modules = ["maskoban.boards.corpus", "maskoban.boards.download"]
    program = f"""
import sys
sys.modules.update(dict.fromkeys(["torch", "rich", "maskoban._core"]))  # importing them now fails
import {", ".join(modules)}
print(maskoban.boards.corpus.BOXOBAN["boxoban-unfiltered-test"])
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "unfiltered/test\n"
