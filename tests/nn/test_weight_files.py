"""Weight files: the format against the safetensors library, int8 storage, and the newest complete checkpoint."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskoban.errors import MaskobanError
from maskoban.nn.weight_files import dequantize, load_folder, load_tensors, part_names, quantize, save_tensors

TENSORS = {
    "a": torch.arange(6, dtype=torch.float32).view(2, 3),
    "b.c": torch.randn(5).half(),
    "d": torch.randn(2, 2, 2).bfloat16(),
    "count": torch.tensor([3, -4]),
    "scalar": torch.tensor(2.5),
    "whole": torch.tensor([[-127, 5]], dtype=torch.int8),
    "none": torch.zeros(0, 4),
    "turned": torch.arange(6.0).view(2, 3).T,  # not contiguous
}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[k].dtype == other[k].dtype and torch.equal(one[k], other[k]) for k in one
    )


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_tensors(path, TENSORS, {"step": "3"})
    tensors, metadata = load_tensors(path)
    assert same(tensors, TENSORS)
    assert metadata == {"step": "3"}
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_the_safetensors_library_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    save_tensors(tmp_path / "ours", TENSORS, {"step": "3"})
    assert same(load_file(tmp_path / "ours"), TENSORS)
    save_file({k: v.contiguous() for k, v in TENSORS.items()}, tmp_path / "theirs", {"step": "4"})
    tensors, metadata = load_tensors(tmp_path / "theirs")
    assert same(tensors, TENSORS)
    assert metadata == {"step": "4"}


def broken(whole: bytes) -> dict[str, bytes]:
    """Ways in which a file can be broken."""
    length = int.from_bytes(whole[:8], "little")

    def with_header(header: object) -> bytes:
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + whole[8 + length :]

    def with_a(**entry: object) -> bytes:
        return with_header({"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} | entry})

    return {
        "empty": b"",
        "a few bytes": whole[:5],
        "cut in the header": whole[: 8 + length // 2],
        "cut in the tensors": whole[:-1],
        "garbage": bytes(range(256)) * 4,
        "text": b"#####\n#@$.#\n#####\n",
        "a list for a header": with_header([1, 2]),
        "no JSON": (20).to_bytes(8, "little") + b"{" * 20 + whole[8 + length :],
        "no entry": with_header({"a": 7}),
        "no offsets": with_header({"a": {"dtype": "F32", "shape": [2]}}),
        "unknown type": with_a(dtype="F7"),
        "wrong shape": with_a(shape=[2, 4]),
        "backwards": with_a(data_offsets=[24, 0]),
        "before the start": with_a(data_offsets=[-24, 0]),
        "beyond the end": with_a(data_offsets=[10**9, 10**9 + 24]),
        "words for offsets": with_a(data_offsets=["0", "24"]),
        "words for a shape": with_a(shape="ab"),
        "negative sides": with_a(shape=[-2, -3]),
        "parts of numbers": with_a(shape=[2.0, 3]),
        "parts of bytes": with_a(data_offsets=[0.0, 24.0]),
        "truth for a side": with_a(shape=[True, 6]),
        "endless nesting": (100_000).to_bytes(8, "little") + b"[" * 100_000,
        "no metadata": with_header({"__metadata__": ["step"]}),
    }


@pytest.mark.parametrize("how", list(broken(b"\0" * 8)))
def test_a_broken_file_is_refused_with_one_sentence(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.safetensors"
    save_tensors(path, TENSORS, {})
    path.write_bytes(broken(path.read_bytes())[how])
    with pytest.raises(MaskobanError) as refused:
        load_tensors(path)
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}: ")
    assert "broken" in sentence
    assert "\n" not in sentence


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError, match=r"nowhere: no such file or folder$"):
        load_tensors(tmp_path / "nowhere")


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    save_tensors(path, TENSORS, {"step": "1"})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MaskobanError) as refused:
        save_tensors(path, {"a": torch.ones(1000)}, {"step": "2"})
    assert str(refused.value) == f"{path}: cannot be written: No space left on device"
    assert load_tensors(path)[1] == {"step": "1"}
    assert os.listdir(tmp_path) == ["x.safetensors"]


# -- int8 storage


def test_quantizing_a_second_time_changes_nothing() -> None:
    rows = torch.randn(3, 128, 128) * torch.logspace(-9, 4, 128)[:, None]
    rows[1, 5] = 0
    once = quantize({"rows": rows})
    wide = dequantize(once)["rows"]
    step = rows.abs().amax(-1, keepdim=True) / 127
    assert ((wide - rows).abs() <= 0.76 * step).all()  # half a step, and what the scale was rounded by
    again = quantize({"rows": wide})
    assert again.keys() == once.keys()
    assert all(again[k].dtype == once[k].dtype and torch.equal(again[k], once[k]) for k in once)


def test_a_missing_scale_is_named() -> None:
    with pytest.raises(MaskobanError, match=r"tensor 'rows\.scale': expected shape \(2, 1\), got nothing"):
        dequantize({"rows": torch.zeros(2, 2, dtype=torch.int8)})


# -- folders


def write_parts(folder: Path, step: int, parts: int) -> list[Path]:
    paths = [folder / name for name in part_names(step, parts)]
    for i, path in enumerate(paths):
        save_tensors(path, {f"t{i}": torch.full((3,), float(step))}, {"step": str(step)})
    return paths


def test_a_folder_in_parts_is_put_together(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 500, 3)
    assert [p.name for p in paths] == [f"state-500-{i}-of-3.safetensors" for i in (1, 2, 3)]
    tensors, metadata = load_folder(tmp_path)
    assert sorted(tensors) == ["t0", "t1", "t2"]
    assert metadata == {"step": "500"}


def test_the_newest_complete_checkpoint_counts(tmp_path: Path) -> None:
    """A save that was cut off leaves parts of a new checkpoint beside the old one."""
    write_parts(tmp_path, 500, 3)
    paths = write_parts(tmp_path, 1000, 3)
    assert load_folder(tmp_path)[1] == {"step": "1000"}
    paths[1].unlink()
    assert load_folder(tmp_path)[1] == {"step": "500"}
    write_parts(tmp_path, 2000, 1)
    assert load_folder(tmp_path)[1] == {"step": "2000"}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_missing_part_is_seen(tmp_path: Path, lost: int) -> None:
    paths = write_parts(tmp_path, 500, 3)
    paths[lost].unlink()
    with pytest.raises(MaskobanError, match="parts of the checkpoint are missing; found only state-500-"):
        load_folder(tmp_path)


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(MaskobanError) as refused:
        load_folder(tmp_path)
    assert str(refused.value) == f"{tmp_path}: no checkpoint there (expected state.safetensors)"


@pytest.mark.parametrize("shape", [(2,), (1, 1), (5, 1), (2, 2), ()])
def test_a_scale_that_is_not_one_a_row_is_refused_with_the_name_of_the_file(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    broken = {"rows": torch.zeros(2, 2, dtype=torch.int8), "rows.scale": torch.ones(shape).bfloat16()}
    save_tensors(tmp_path / "model.safetensors", broken, {})
    with pytest.raises(
        MaskobanError, match=r"model\.safetensors: tensor 'rows\.scale': expected shape \(2, 1\), got "
    ):
        load_folder(tmp_path)
