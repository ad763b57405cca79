"""A stage is made once, unless what it is made from has changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskoban.evaluation.measures.share import Share, share_of
from maskoban.evaluation.stages import Stages, fingerprint, from_plain, plain


def never() -> Any:
    raise AssertionError("this was made already")


def test_a_stage_is_made_once(tmp_path: Path) -> None:
    made = Stages(tmp_path).value("share", {"of": "boards"}, Share, lambda: share_of(3, 4))
    assert made == Stages(tmp_path).value("share", {"of": "boards"}, Share, never)
    assert made == share_of(3, 4)


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    arrays = {"boards": np.arange(6, dtype=np.uint8).reshape(1, 2, 3), "reasons": np.array(["", "no player"])}
    Stages(tmp_path).arrays("drawn", {"seed": 1}, lambda: arrays)
    kept = Stages(tmp_path).arrays("drawn", {"seed": 1}, never)
    assert kept.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(kept[name], array)
        assert kept[name].dtype == array.dtype


def test_a_file_of_arrays_holds_them_and_their_inputs_only(tmp_path: Path) -> None:
    Stages(tmp_path).arrays("drawn", {}, lambda: {"n": np.array(1)})
    with np.load(tmp_path / "drawn.npz") as file:
        assert set(file) == {"inputs", "n"}


def test_other_inputs_make_it_again(tmp_path: Path) -> None:
    stages = Stages(tmp_path)
    assert stages.value("n", {"seed": 1}, int, lambda: 1) == 1
    assert stages.value("n", {"seed": 2}, int, lambda: 2) == 2
    assert stages.arrays("a", {"seed": 1}, lambda: {"n": np.array(1)})["n"] == 1
    assert stages.arrays("a", {"seed": 2}, lambda: {"n": np.array(2)})["n"] == 2


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"5", b"{}", b'{"inputs": {}}', b"PK\x03\x04 and no more"]
)
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: bytes) -> None:
    for name in ("n.npz", "a.npz"):
        (tmp_path / name).write_bytes(damage)
    assert Stages(tmp_path).value("n", {}, int, lambda: 7) == 7
    assert Stages(tmp_path).arrays("a", {}, lambda: {"n": np.array(7)})["n"] == 7


def test_an_array_with_one_wrong_byte_is_made_again(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(99, size=40)
    Stages(tmp_path).arrays("a", {}, lambda: {"n": numbers})
    whole = (tmp_path / "a.npz").read_bytes()
    for place in range(whole.index(b"n.npy") + 30, whole.index(b"PK\x01\x02"), 5):  # where the numbers are
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        (tmp_path / "a.npz").write_bytes(spoiled)
        np.testing.assert_array_equal(Stages(tmp_path).arrays("a", {}, lambda: {"n": numbers})["n"], numbers)


def test_what_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stages(tmp_path).value("n", {}, int, interrupted)
    assert not list(tmp_path.iterdir())


def test_it_says_what_it_does(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        Stages(tmp_path, said.append).value("sum", {}, int, lambda: 1)
    assert said[0] == "sum ..."
    assert said[1].startswith("sum: ")
    assert said[2:] == ["sum: as before"]


def test_numbers_of_any_kind_become_plain() -> None:
    assert plain({1: np.float64(0.5), "a": np.arange(2)}) == {"1": 0.5, "a": [0, 1]}
    with pytest.raises(TypeError, match="no JSON"):
        plain({"a": object()})


@dataclass(frozen=True)
class Inner:
    number: float
    names: list[str]


@dataclass(frozen=True)
class Outer:
    inner: Inner | None
    by_size: dict[int, Inner | None]
    new: int = 7


def test_a_value_survives_being_json() -> None:
    value = Outer(Inner(1.0, ["a"]), {250: None, 500: Inner(2.5, [])})
    assert from_plain(Outer, plain(value)) == value
    # What a newer version added has its default, and what an older one had is left out.
    assert from_plain(Outer, {"inner": None, "by_size": {}, "old": 3}) == Outer(None, {}, 7)


def test_fingerprints_tell_contents_shapes_and_absence_apart() -> None:
    ones = np.ones((2, 3), np.uint8)
    different = [(ones,), (ones.T,), (ones * 2,), (ones.astype(np.int64),), (ones, None), (None, ones)]
    assert len({fingerprint(*arrays) for arrays in different}) == len(different)
    assert fingerprint(ones) == fingerprint(np.ones((2, 6), np.uint8)[:, ::2])
