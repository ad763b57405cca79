"""Run by torchrun: every run of ``test_trainer.RUNS``, trained by the processes it started.

For every run, below the folder given: ``steps`` are three steps taken by all; ``whole`` is trained to the end by all;
``parts`` by all to step 5, by the first process alone to step 7, and by all to the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from maskoban.training.distributed import Processes, joined
from tests.training.test_trainer import RUNS, trainer


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    alone = Processes()
    with joined("cpu") as (together, _):
        for name, preset in RUNS.items():
            trainer(preset, folder / name / "steps", together, stop_at=3).run()
            trainer(preset, folder / name / "whole", together).run()
            parts = folder / name / "parts"
            trainer(preset, parts, together, stop_at=5).run()
            if together.first:
                trainer(preset, parts, alone, stop_at=7).resume().run()
            trainer(preset, parts, together).resume().run()
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]  # on Linux
    assert not [name for name in threads if "gloo" in name], "threads that may crash the interpreter's end"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
