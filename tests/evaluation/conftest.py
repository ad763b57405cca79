"""One small report, made once, that several tests read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import write
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation.evaluate import evaluate
from maskoban.evaluation.measure import Plan
from maskoban.evaluation.report import Report

from .boards import ONE_WALL, SOLVABLE, drawn
from .recall import recalling_model, remembered


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, and the log of a run that drew boards on the way."""
    folder = tmp_path_factory.mktemp("run")
    write(folder / "corpus.npz", remembered()[:30])
    losses = [{"step": step, "train": 1 / step, "valid": 1.1 / step} for step in (1, 2, 3)]
    entries = [{"settings": {"name": "recall"}}, *losses, {"step": 3, "boards": "boards-3.npy"}]
    (folder / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    np.save(folder / "boards-3.npy", drawn(SOLVABLE, SOLVABLE, ONE_WALL))
    return folder


@pytest.fixture(scope="session")
def plan(run_folder: Path) -> Plan:
    """A report with everything in it, as small as that can be."""
    corpus, log = str(run_folder / "corpus.npz"), str(run_folder / "log.jsonl")
    return Plan(samples=260, sampler=SamplerConfig(sweeps=1, critic=True), sweep=20, corpus=corpus, log=log)


@pytest.fixture(scope="session")
def whole_report(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> tuple[Path, Report]:
    """The folder of the report, and its value."""
    folder = tmp_path_factory.mktemp("report")
    return folder, evaluate(recalling_model(), folder, plan)
