"""A folder's weights: the newest whole checkpoint counts, and what is missing or broken is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from maskoban.boards import MaskobanError
from maskoban.diffusion.tensorfile import save_tensors
from maskoban.diffusion.weight_files import load_folder, part_names


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


def test_the_newest_whole_checkpoint_counts(tmp_path: Path) -> None:
    """A save that was cut off leaves parts of a new checkpoint beside the old one."""
    write_parts(tmp_path, 500, 3)
    paths = write_parts(tmp_path, 1000, 3)
    assert load_folder(tmp_path)[1] == {"step": "1000"}
    paths[1].unlink()
    assert load_folder(tmp_path)[1] == {"step": "500"}
    write_parts(tmp_path, 2000, 1)
    assert load_folder(tmp_path)[1] == {"step": "2000"}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_missing_part_is_told(tmp_path: Path, lost: int) -> None:
    paths = write_parts(tmp_path, 500, 3)
    paths[lost].unlink()
    with pytest.raises(MaskobanError, match="parts of the checkpoint are missing: only state-500-"):
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
    with pytest.raises(MaskobanError, match=r"model\.safetensors: rows\.scale is of shape .* not one a row"):
        load_folder(tmp_path)
