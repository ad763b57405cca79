"""A corpus of many sizes: its shares, its labels, and that an interruption changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import read_boards, write
from maskoban.boards.identity import ids
from maskoban.boards.labelled import read_folder, read_info, read_labelled
from maskoban.boards.synth import synthesize
from maskoban.boards.tiles import object_counts, tile_counts
from maskoban.errors import MaskobanError
from maskoban.solving import solve_many
from maskoban.solving.mixed_corpus import Mix, make_corpus, parse_boxes, parse_sizes
from maskoban.solving.rating import DIFFICULTIES, difficulties

MIX = Mix(60, (6, 7), (6, 8), (1, 2), seed=5)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_board_is_solvable_and_has_its_labels(tmp_path: Path) -> None:
    files = make_corpus(MIX, tmp_path / "mix")
    assert list(files) == ["6x6.npz", "6x7.npz", "6x8.npz", "7x6.npz", "7x7.npz", "7x8.npz"]
    assert read_info(tmp_path / "mix")["kinds"] == ["synth"]
    for (height, width), labelled in read_folder(tmp_path / "mix"):
        boards = labelled.boards
        assert len(labelled) == files[f"{height}x{width}.npz"] > 0
        assert boards.shape[1:] == (height, width)
        assert solve_many(boards).solved.all()
        assert labelled.boxes.tolist() == object_counts(tile_counts(boards))[0].tolist()
        assert set(labelled.boxes.tolist()) == {1, 2}
        assert [DIFFICULTIES[word] for word in labelled.difficulty] == difficulties(boards)
        assert not labelled.kind.any()
        assert len(set(ids(boards))) == len(boards)
        assert np.array_equal(read_boards(tmp_path / "mix" / f"{height}x{width}.npz"), boards)


def test_an_interrupted_corpus_continues_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskoban.solving import mixed_corpus

    monkeypatch.setattr(mixed_corpus, "PART", 4)
    make_corpus(MIX, tmp_path / "whole", threads=1)

    def interrupt(done: int, total: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_corpus(MIX, tmp_path / "halves", threads=2, on_progress=interrupt)
    with pytest.raises(MaskobanError, match="not finished"):
        read_info(tmp_path / "halves")
    before = len(list((tmp_path / "halves").iterdir()))
    assert 1 < before < len(list((tmp_path / "whole").iterdir())) + 1
    make_corpus(MIX, tmp_path / "halves", threads=2)
    assert contents(tmp_path / "halves") == contents(tmp_path / "whole")
    assert make_corpus(MIX, tmp_path / "halves") == read_info(tmp_path / "whole")["files"]  # nothing to do


def test_another_corpus_is_part_of_the_mix(tmp_path: Path) -> None:
    added = synthesize(7, 6, 6, 1, seed=8)
    write(tmp_path / "added.npz", added)
    make_corpus(Mix(5, (6, 6), (6, 6), (1, 1), 5, (str(tmp_path / "added.npz"),)), tmp_path / "mix")
    labelled = read_labelled(tmp_path / "mix" / "6x6.npz")
    assert sorted(labelled.boards[labelled.kind == 1].tolist()) == sorted(added.tolist())
    assert read_info(tmp_path / "mix")["kinds"] == ["synth", str(tmp_path / "added.npz")]


def test_every_size_and_number_of_boxes_gets_its_share() -> None:
    shares = Mix(1000, (5, 7), (5, 7), (1, 8)).shares()
    assert sum(shares.values()) == 1000
    assert max(shares.values()) - min(shares.values()) <= 1
    assert {boxes for height, width, boxes in shares if (height, width) == (7, 7)} == {1, 2, 3}


def test_other_settings_and_other_files_are_refused(tmp_path: Path) -> None:
    make_corpus(Mix(2, (6, 6), (6, 6), (1, 1)), tmp_path / "mix")
    with pytest.raises(MaskobanError, match="begun with other settings"):
        make_corpus(Mix(3, (6, 6), (6, 6), (1, 1)), tmp_path / "mix")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(MaskobanError, match="holds other files"):
        make_corpus(Mix(2, (6, 6), (6, 6), (1, 1)), tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]
    assert json.loads((tmp_path / "mix" / "corpus.json").read_text())["files"] == {"6x6.npz": 2}


@pytest.mark.parametrize("text", ["5", "4x5", "5x17", "9x9-8x9", "5x5-", "axb", "9" * 5000 + "x5"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(MaskobanError, match="sizes: expected"):
        parse_sizes(text)


@pytest.mark.parametrize("text", ["0", "9", "3-2", "1-9", "many", "9" * 5000, "²"])
def test_wrong_boxes(text: str) -> None:
    with pytest.raises(MaskobanError, match="boxes: expected"):
        parse_boxes(text)


def test_more_boxes_than_fit() -> None:
    with pytest.raises(MaskobanError, match="no board of these sizes has room for 8 boxes"):
        Mix(5, (5, 6), (5, 6), (8, 8)).shares()
