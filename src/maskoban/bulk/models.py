"""The model of a job: what it is called and what it weighs, and its denoiser for one worker."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from maskoban.bulk.job import Job, Origin
from maskoban.diffusion.denoiser import Denoiser
from maskoban.diffusion.model import load, model_folder, shipped
from maskoban.diffusion.onnx_denoiser import OnnxDenoiser


def anywhere(source: str) -> str:
    """The name of a model as workers in other folders find it: shipped models by name, all else by its path.

    >>> anywhere("best")
    'best'
    """
    return source if source in shipped() else str(model_folder(source).resolve())


def load_denoiser(source: str, job: Job) -> Denoiser:
    """The denoiser one worker draws with: on a cpu it has one thread, for the workers are many.

    >>> load_denoiser("best", Job(1)).batch
    32
    """
    graph = _graph(model_folder(source), job)
    if job.device == "cpu" and graph.is_file():
        return OnnxDenoiser(graph, threads=1)
    denoiser = load(source, job.device, job.precision).denoiser
    if job.device == "cpu":
        import torch

        torch.set_num_threads(1)
    return denoiser


def origin(source: str, job: Job) -> Origin:
    """What is written beside every board about who drew it.

    >>> origin("best", Job(1)).model
    'best'
    """
    from maskoban import __version__

    folder = model_folder(source)
    graph = _graph(folder, job)
    name = OnnxDenoiser(graph).facts["name"] if graph.is_file() else load(source).name
    # An fp32 graph only names its weights, which lie beside it; an int8 graph has made its own of them.
    held = sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder]
    files = held if held and job.precision == "fp32" else [*held, graph]
    digest = blake2b(digest_size=8)
    for file in files:
        digest.update(file.read_bytes())
    return Origin(name, digest.hexdigest(), __version__)


def _graph(folder: Path, job: Job) -> Path:
    return folder / ("model.onnx" if job.precision == "fp32" else "model.int8.onnx")
