"""Loading models: the shipped ones, exported folders, training runs, and models on the Hugging Face hub."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskoban._util.files import file_errors
from maskoban.boards.download import File, cache_folder, download_file
from maskoban.boards.tiles import Tokens
from maskoban.diffusion.conditions import Conditioned, Conditions
from maskoban.diffusion.sampler import Precision
from maskoban.errors import MaskobanError

if TYPE_CHECKING:
    from maskoban.diffusion.model import Model

#: The models in the package.
WEIGHTS = Path(__file__).parents[1] / "weights"

#: Size and SHA-256 of the files of models that a package may come without.
CHECKSUMS = WEIGHTS / "checksums.json"

#: The files of an exported folder that go to the hub and come from it.
HUB_FILES = ["model.*", "critic.*", "README.md"]


def load(source: str | os.PathLike[str] = "best", device: str = "cpu", threads: int | None = None) -> Model:
    """The shipped model of this name, an exported folder, a training run, or a Hugging Face hub id.

    A bare name is a shipped model; ``"./best"`` and ``Path("best")`` are folders. On a ``cpu`` an exported model runs
    under ONNX Runtime. Another device, and a training run, needs torch. ``threads`` is the number of CPU threads, all
    cores by default; for a training run it sets torch's threads in this process.

    >>> load().generate(1, seed=7)[0].shape
    (10, 10)
    """
    from maskoban.diffusion.model import (
        Model,  # here: training finds a model's folder without the native core
    )

    if threads is not None and threads < 1:
        raise MaskobanError(f"threads: expected at least 1, got {threads}")
    folder = model_folder(source)
    if device == "cpu" and graph_file(folder).is_file():
        from maskoban.diffusion.onnx import OnnxCritic, OnnxDenoiser  # other devices need no ONNX Runtime

        denoiser = OnnxDenoiser(graph_file(folder), threads)
        int8 = partial(OnnxDenoiser, graph_file(folder, "int8"), threads)
        critic = _lazy(folder / "critic.onnx", partial(OnnxCritic, folder / "critic.onnx", threads))
        if denoiser.facts.get("corpora") is not None:
            usual = Conditions(denoiser.height, denoiser.width)
            return Model(Conditioned(denoiser, usual), denoiser.facts, folder, critic, int8)
        return Model(denoiser, denoiser.facts, folder, critic, int8)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        raise MaskobanError(f"{source}: not a model; expected model.onnx or a checkpoint in that folder")
    try:
        from maskoban.nn.runtime import load_torch, load_torch_critic
    except ImportError as error:
        raise MaskobanError(f"{source} on {device} needs torch: pip install 'maskoban[train]'") from error
    if device == "cpu" and threads is not None:
        import torch

        torch.set_num_threads(threads)
    network, facts = load_torch(folder, device)
    critic = _lazy(folder / "critic.safetensors", partial(load_torch_critic, folder, device))
    return Model(network, facts, folder, critic)


class LazyCritic:
    """A critic that is loaded on its first use: most of what a model is used for needs none."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load, self._lock = load, Lock()
        self._critic: Any = None  # a Critic or a ConditionalCritic

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyCritic, (self._load,)

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards."""
        found: NDArray[np.float32] = self._loaded().scores(tokens)
        return found

    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Scores of finished boards, from inputs by name: of a conditional critic."""
        found: NDArray[np.float32] = self._loaded().evaluate(feed)
        return found

    def _loaded(self) -> Any:
        with self._lock:
            self._critic = self._critic or self._load()
        return self._critic


def _lazy(file: Path, load: Callable[[], Any]) -> LazyCritic | None:
    return LazyCritic(load) if file.is_file() else None


def shipped_models() -> list[str]:
    """The names of the models in the package, and of fetched ones.

    >>> shipped_models()
    ['any', 'best', 'paper']
    """
    return sorted({path.parent.name for place in _places() for path in place.glob("*/model.onnx")})


def _places() -> list[Path]:
    return [WEIGHTS, cache_folder() / "weights"]


def fetch_model(name: str, source: str, to: str | Path | None = None) -> Path:
    """Copy or download the files of a shipped model that this package came without, and verify their checksums.

    ``source`` is a folder or an address with the files, such as src/maskoban/weights/any of the repository. They go to
    the user's cache, where ``load(name)`` finds them, or to the folder ``to``.

    >>> fetch_model("any", "maskoban/src/maskoban/weights/any")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/maskoban/weights/any')
    """
    known = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    if name not in known:
        raise MaskobanError(f"no model {name!r} to fetch: expected one of {', '.join(known)}")
    if "://" not in source:
        if not Path(source).is_dir():
            raise MaskobanError(f"{source}: expected a folder with the files of the model, or an address")
        source = Path(source).resolve().as_uri()
    folder = _places()[1] / name if to is None else Path(to)
    with file_errors(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
    for file, (size, checksum) in known[name].items():
        download_file(File(file, size, 0, checksum), folder, source, Event())
    return folder


def make_checksums() -> str:
    """The file ``CHECKSUMS`` for the files that are in the package.

    >>> make_checksums() == CHECKSUMS.read_text(encoding="utf-8")
    True
    """
    files = sorted(path for path in (WEIGHTS / "any").iterdir() if path.name != "README.md")
    entries = {path.name: (path.stat().st_size, sha256(path.read_bytes()).hexdigest()) for path in files}
    return json.dumps({"any": entries}, indent=1) + "\n"


def default_model(
    size: tuple[int, int] | None = None, boxes: int | None = None, guidance: float | None = None
) -> str:
    """The shipped model for what is wished: ``best`` samples 10x10 boards with four boxes, and has no conditions.

    >>> default_model(), default_model((8, 12)), default_model(guidance=3)
    ('best', 'any', 'any')
    """
    return "best" if size in (None, (10, 10)) and boxes in (None, 4) and guidance is None else "any"


def shipped_folder(source: object) -> Path | None:
    """The folder of the shipped model with this bare name, else None.

    >>> shipped_folder("./best") is None
    True
    """
    if not isinstance(source, str) or source not in shipped_models():
        return None
    return next(place / source for place in _places() if graph_file(place / source).is_file())


def model_folder(source: str | os.PathLike[str]) -> Path:
    """The folder of a model: in the package, on disk, or in the hub's cache once downloaded."""
    if (folder := shipped_folder(source)) is not None:
        return folder
    name = os.fspath(source)
    path = Path(name)
    if path.is_dir():
        return path
    if path.suffix == ".onnx" and path.name != "model.onnx":
        raise MaskobanError(f"{name}: expected the folder of the model; int8 is a sampler's precision")
    if path.is_file():
        return path.parent if path.name == "model.onnx" else path
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _downloaded(name)
    if name in json.loads(CHECKSUMS.read_text(encoding="utf-8")):
        raise MaskobanError(
            f"model {name!r} did not come with this package: maskoban fetch {name} --from src/maskoban/weights/{name} "
            "of the repository"
        )
    shipped = ", ".join(shipped_models())
    raise MaskobanError(f"no model {name!r}: expected one of {shipped}, a folder or a Hugging Face hub id")


def graph_file(folder: Path, precision: Precision = "fp32") -> Path:
    """The ONNX graph of an exported folder."""
    return folder / ("model.onnx" if precision == "fp32" else "model.int8.onnx")


def weights_hash(folder: Path | None, precision: Precision = "fp32") -> str:
    """16 hexadecimal digits that identify the weights in a model's folder: a hash of their files.

    >>> len(weights_hash(model_folder("best")))
    16
    """
    files: list[Path] = []
    if folder is not None:
        files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
        # An fp32 graph takes its weights from the file beside it; an int8 graph holds quantised ones.
        if precision == "int8" or not files:
            files.append(graph_file(folder, precision))
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _downloaded(hub_id: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MaskobanError(f"{hub_id}: the hub needs pip install 'maskoban[train]'") from error
    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    except Exception as error:  # the hub's exceptions have no other common base
        reason = str(error).splitlines()[0]
        raise MaskobanError(f"{hub_id}: no such folder, and no such model on the hub: {reason}") from error


def push_to_hub(model: Model, repo_id: str, private: bool = False) -> str:
    """Upload a model's exported folder (weights, graphs, card) to the Hugging Face hub; returns its address."""
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MaskobanError("uploading to the hub needs pip install 'maskoban[train]'") from error
    if model.folder is None or not graph_file(model.folder).is_file():
        raise MaskobanError(f"model {model.name!r} was not loaded from an export: run maskoban export first")
    api = HfApi()
    address = str(api.create_repo(repo_id, private=private, exist_ok=True))
    api.upload_folder(repo_id=repo_id, folder_path=model.folder, allow_patterns=HUB_FILES)
    return address


if __name__ == "__main__":
    # python -m maskoban.diffusion.loading writes src/maskoban/weights/checksums.json again.
    CHECKSUMS.write_text(make_checksums(), encoding="utf-8")
