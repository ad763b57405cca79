"""How good the drawn boards are: solvable share, malformed boards, walls, and what the drawing cost.

    python benchmarks/quality.py --boards 10000 --device cuda
    python benchmarks/quality.py --boards 500 --no-critic --polish 0 --precision int8

Boards are drawn in the model's own way unless told otherwise; ``--temperature`` other than 1 asks no critic.
Unfiltered: every board drawn is judged, and the solver takes no part in drawing.
"""

from __future__ import annotations

import argparse
import time

import maskoban
from maskoban.boards.tiles import WALL
from maskoban.diffusion.denoiser import interior_cells
from maskoban.diffusion.loading import load
from maskoban.evaluation.measures.share import share_of


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="best")
    p.add_argument("--boards", type=int, default=500)
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--sampler", default="best")
    p.add_argument("--sweeps", type=int)
    p.add_argument("--critic", action=argparse.BooleanOptionalAction)
    p.add_argument("--temperature", type=float)
    p.add_argument("--device", default="cpu")
    p.add_argument("--precision")
    a = p.parse_args()
    model = load(a.model, a.device)
    config = model.sampler(
        a.sampler, sweeps=a.sweeps, critic=a.critic, temperature=a.temperature, precision=a.precision
    )
    start = time.perf_counter()
    drawn = model.trajectory(a.boards, a.seed, config)
    boards, seconds = drawn.boards, time.perf_counter() - start
    results = maskoban.solve_many(boards, solutions=False)
    solved = int(results.solved.sum())
    share = share_of(solved, a.boards)
    malformed = sum(results[i].verdict == "malformed" for i in range(a.boards))
    attempts = float(drawn.attempts.mean())
    cost = config.cost(len(interior_cells(model.denoiser)), attempts)
    print(f"{a.boards} boards of {model.name} on {a.device}")
    print(f"{config}, {attempts:.2f} attempts a board")
    print(f"solvable  {share.share:.2%}  (95 %: {share.low:.2%} to {share.high:.2%})")
    print(f"malformed {malformed / a.boards:.2%}   walls {(boards == WALL).sum((1, 2)).mean():.2f}")
    print(f"{cost:.1f} network evaluations a board; drawn at {a.boards / seconds:.1f} boards a second")


if __name__ == "__main__":
    main()
