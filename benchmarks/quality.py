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
from maskoban.diffusion.model import How, load
from maskoban.diffusion.sampler import drawn_cells
from maskoban.evaluation.shares import share_of
from maskoban.evaluation.sweeps import complete_how, evaluations


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="best")
    p.add_argument("--boards", type=int, default=500)
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--polish", type=int)
    p.add_argument("--critic", action=argparse.BooleanOptionalAction)
    p.add_argument("--temperature", type=float, default=1.0)
    p.add_argument("--device", default="cpu")
    p.add_argument("--precision", default="fp32")
    a = p.parse_args()
    model = load(a.model, a.device, a.precision)
    polish = model.polish if a.polish is None else a.polish
    critic = model.critic is not None and a.temperature == 1 if a.critic is None else a.critic
    how: How = {"temperature": a.temperature, "polish": polish, "critic": critic}
    start = time.perf_counter()
    drawn = model.drawn(a.boards, a.seed, **how)
    boards, seconds = drawn.boards, time.perf_counter() - start
    results = maskoban.solve_many(boards, solutions=False)
    solved = int(results.solved.sum())
    share = share_of(solved, a.boards)
    malformed = sum(results[i].verdict == "malformed" for i in range(a.boards))
    attempts = float(drawn.attempts.mean())
    cost = evaluations(complete_how(model, how), len(drawn_cells(model.denoiser)), attempts)
    asked = f"a critic ({attempts:.2f} attempts a board)" if critic else "no critic"
    print(f"{a.boards} boards of {model.name} on {a.device}")
    print(f"temperature {a.temperature:g}, {asked}, {polish} polish sweeps")
    print(f"solvable  {share.share:.2%}  (95 %: {share.low:.2%} to {share.high:.2%})")
    print(f"malformed {malformed / a.boards:.2%}   walls {(boards == WALL).sum((1, 2)).mean():.2f}")
    print(f"{cost:.1f} network evaluations a board; drawn at {a.boards / seconds:.1f} boards a second")


if __name__ == "__main__":
    main()
