"""Makes effort_quartiles.json, against which ratings are worded, from the Boxoban medium training levels:

python -m maskoban.solving.effort_quartiles boxoban/medium/train
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from maskoban.boards import MaskobanError, read_boards, whole_file
from maskoban.boards.tiles import WALL, Tokens
from maskoban.solving.rating import percentiles
from maskoban.solving.solver import solve_many


def summarise(boards: Tokens) -> dict[str, Any]:
    """Quartiles and percentiles of effort and fewest pushes over solvable boards, and their mean wall count.

    >>> import numpy as np
    >>> summarise(np.array([[[2, 3, 1, 4]]], dtype=np.uint8))["quartiles"]
    [2, 2, 2]
    """
    results = solve_many(boards, "effort", progress=True, solutions=False)
    if not results.solved.all():
        raise MaskobanError(f"{(~results.solved).sum()} of {len(boards)} levels are not solved")
    effort = percentiles(results.expanded)
    return {
        "made_by": "python -m maskoban.solving.effort_quartiles boxoban/medium/train",
        "levels": len(boards),
        "mean_walls": round(float((boards == WALL).sum(axis=(1, 2)).mean()), 4),
        "mean_effort": round(float(results.expanded.mean()), 2),
        "mean_pushes": round(float(results.pushes.mean()), 4),
        "quartiles": [effort[25], effort[50], effort[75]],
        "effort_percentiles": effort,
        "pushes_percentiles": percentiles(results.pushes),
    }


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".json")
    text = json.dumps(summarise(read_boards(sys.argv[1])))
    with whole_file(target) as file:
        file.write(f"{text}\n".encode())
