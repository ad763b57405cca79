"""Makes a report in processes that are killed: each when it is about to keep its second stage.

Once all stages are kept, processes are killed at later and later figures, and the last lives to the end.
Prints how many were killed. Called by test_report.py with the folder of the report, of the corpus and the log.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from maskoban.diffusion.sampler import SamplerConfig
from maskoban.evaluation.evaluate import evaluate
from maskoban.evaluation.measure import Plan
from tests.evaluation.recall import recalling_model

replace = os.replace
out, run = Path(sys.argv[1]), Path(sys.argv[2])
corpus, log = str(run / "corpus.npz"), str(run / "log.jsonl")
plan = Plan(samples=260, sampler=SamplerConfig(sweeps=1, critic=True), sweep=20, corpus=corpus, log=log)


def live(figures: int) -> None:
    """Make the report, but die at the second stage, or at this many files of figures."""
    kept = {"stages": 0, "figures": 0}
    allowed = {"stages": 1, "figures": figures}

    def dying_replace(part: str, target: str) -> None:
        folder = Path(target).parent.name
        if folder in kept:
            if kept[folder] == allowed[folder]:
                os.kill(os.getpid(), signal.SIGKILL)
            kept[folder] += 1
        replace(part, target)

    os.replace = dying_replace  # type: ignore[assignment]
    evaluate(recalling_model(), out, plan)


killed, figures = 0, 0
while True:
    stages = len(list(out.glob("stages/*")))
    child = os.fork()
    if child == 0:
        live(figures)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        break
    assert os.WIFSIGNALED(status), "it did not die as it should"
    killed += 1
    if stages == len(list(out.glob("stages/*"))):
        figures += 16  # no stage was left to make
print(killed)
