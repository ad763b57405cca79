"""Whether two models draw the same boards, and which is faster: `python benchmarks/same_boards.py ONE OTHER [BOARDS]`.

ONE and OTHER are anything `maskoban.load` takes. Both draw the same numbers of the same seed, plainly and then as they
do by default, 16 at a time in turn, so that a busy moment of the machine slows both.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import maskoban
from maskoban.solving import solve_many

AT_ONCE, SEED = 16, 11


def main() -> None:
    names, count = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 512
    models = [maskoban.load(name) for name in names]
    for sampler in ("plain", "best"):
        drawn, seconds = [[], []], [0.0, 0.0]
        for first in range(0, count, AT_ONCE):
            for i, model in enumerate(models):
                start = time.perf_counter()
                drawn[i].append(model.sample(min(AT_ONCE, count - first), SEED, sampler, first=first))
                seconds[i] += time.perf_counter() - start
        one, other = (np.concatenate(boards) for boards in drawn)
        shares = [f"{solve_many(boards, solutions=False).solved.mean():.2%}" for boards in (one, other)]
        same = int((one == other).all((1, 2)).sum())
        print(
            f"{sampler}: {same} of {count} boards are the same; solvable {' and '.join(shares)}; "
            f"the other takes {seconds[1] / seconds[0]:.2f} times as long",
            flush=True,
        )


if __name__ == "__main__":
    main()
