"""The model of a job: what it is called and what it weighs, and as one worker loads it."""

from __future__ import annotations

from maskoban.bulk.job import Job, Origin
from maskoban.diffusion.model import Model, load, model_folder, weights_hash
from maskoban.diffusion.shipped import shipped


def anywhere(source: str) -> str:
    """The name of a model as workers in other folders find it: shipped models by name, all else by its path.

    >>> anywhere("best")
    'best'
    """
    return source if source in shipped() else str(model_folder(source).resolve())


def load_model(source: str, job: Job) -> Model:
    """The model one worker draws with: on a cpu it has one thread, for the workers are many.

    >>> load_model("best", Job(1)).denoiser.batch
    16
    """
    return load(source, job.device, job.precision, threads=1)


def origin(source: str, job: Job) -> Origin:
    """What is written beside every board about who drew it; refuses what the job asks and the model cannot do.

    >>> origin("best", Job(1)).model
    'best'
    """
    from maskoban import __version__

    model = load(source, precision=job.precision)
    model.drawing(job.how)
    return Origin(model.name, weights_hash(model.folder, job.precision), __version__)
