"""Samples boards of many sizes and wishes from a conditional model, and says how far they are what was asked for.

    python benchmarks/conditions.py MODEL --out boards.npz --boards 1000 --sweeps 1 --critic
    python benchmarks/conditions.py --judge boards.npz --corpus mix

Sampling needs torch and NumPy alone. The judging needs the native core: it prints a table by size and number of boxes
(solvable share, boxes as wished, divergence from synthetic boards as a multiple of the held-out floor) and one by
difficulty. Divergence is measured with as many fresh synthetic boards, against ``REFERENCE`` others. With --corpus it
also counts boards that are one of the corpus or repeat another, turned or mirrored too.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np

from maskoban.boards.identity import ids
from maskoban.boards.labelled import read_folder
from maskoban.boards.tiles import WALL, Tokens, object_counts, tile_counts
from maskoban.diffusion.conditions import DIFFICULTIES, Conditions

#: Sizes and boxes. "boxoban" is the corpus condition.
CELLS = ("6x6x2", "7x7x2", "7x7x3", "8x8x3", "6x12x3", "8x8x4", "9x9x4", "10x10x4", "10x10x4 boxoban", "8x12x5",
         "9x12x5", "10x10x6", "12x12x5", "12x12x6", "14x14x6", "16x16x8")  # fmt: skip

#: For these, every difficulty is wished too.
WISHED = ("8x8x3", "10x10x4 boxoban", "9x12x5", "12x12x6")

#: The divergence is measured for these sizes against so many boards.
COMPARED, REFERENCE = ("7x7x3", "8x8x4", "9x12x5", "12x12x6"), 20_000

_KEY = re.compile(r"(\d+)x(\d+)x(\d+)((?: boxoban)?)((?: \w+)?)")


def conditions(key: str) -> Conditions:
    """What "10x10x4 boxoban hard" wishes.

    >>> conditions("8x12x5 hard")
    Conditions(height=8, width=12, boxes=5, difficulty='hard', corpus=None, guidance=3.0)
    """
    found = _KEY.fullmatch(key)
    assert found is not None, key
    difficulty = found[5].strip() or None
    corpus = "boxoban-medium-train" if found[4] else None
    return Conditions(int(found[1]), int(found[2]), int(found[3]), difficulty, corpus)


def sample(a: argparse.Namespace) -> dict[str, Tokens]:
    """The boards of every wish, by its key."""
    from maskoban.diffusion.conditions import Conditioned
    from maskoban.diffusion.denoiser import blank_boards
    from maskoban.diffusion.sampler import SamplerConfig
    from maskoban.diffusion.trajectory import sample_boards
    from maskoban.nn.runtime import TorchConditionalCritic, load_torch, load_torch_critic

    model, facts = load_torch(a.model, a.device)
    assert isinstance(model, Conditioned), "expected a conditional model"
    judge = load_torch_critic(a.model, a.device) if a.critic else None
    assert judge is None or isinstance(judge, TorchConditionalCritic)
    made = {}
    for key in a.only or [*CELLS, *(f"{key} {word}" for key in WISHED for word in DIFFICULTIES)]:
        start = time.perf_counter()
        denoiser = model.given(**vars(conditions(key)) | {"guidance": a.guidance})
        config = SamplerConfig(sweeps=a.sweeps, critic=a.critic)
        critic = None if judge is None else denoiser.critic(judge)
        if a.boards <= denoiser.batch and a.device != "cpu":
            denoiser.overlap = 2  # a batch is filled up in any case: with further attempts of rejected boards
        empty = blank_boards(denoiser, a.boards)
        run = sample_boards(denoiser, empty, a.seed, config, critic=critic, bound=facts.get("critic") or 1.0)
        made[key] = run.boards
        seconds, attempts = time.perf_counter() - start, run.attempts.mean()
        print(f"{key}: {a.boards} boards in {seconds:.1f} s, {attempts:.2f} attempts a board", flush=True)
        np.savez_compressed(a.out, **made)
    return made


def known_ids(corpus: Path, shapes: set[tuple[int, int]]) -> set[str]:
    """The ids of a mixed corpus's boards of these shapes, turned or not; a board and its turns have one id."""
    turned = shapes | {(width, height) for height, width in shapes}
    return {
        each for shape, labelled in read_folder(corpus) if shape in turned for each in ids(labelled.boards)
    }


def judge(made: dict[str, Tokens], corpus: Path | None) -> None:
    """Both tables."""
    from maskoban.boards.synth import synthesize
    from maskoban.evaluation.measures.patterns import count_patterns, pattern_jsd
    from maskoban.solving.filters import FILTER_LIMITS
    from maskoban.solving.rating import difficulties
    from maskoban.solving.solver import solve_many

    known = known_ids(corpus, {each.shape[1:] for each in made.values()}) if corpus else set()
    print(
        "| wish | boards | solvable | malformed | boxes as wished | walls | pushes | JSD / floor | copies | repeats |"
    )
    print("|---" * 10 + "|")
    shares = []
    for key in (key for key in made if not key.endswith(DIFFICULTIES)):
        boards, wish = made[key], conditions(key)
        results = solve_many(boards, solutions=False, limits=FILTER_LIMITS)
        boxes = np.mean(object_counts(tile_counts(boards)).boxes == wish.boxes)
        malformed = np.mean([each.verdict == "malformed" for each in results])
        walls = (boards == WALL).sum((1, 2)).mean()
        ratio = ""
        if key in COMPARED:
            count, (height, width) = len(boards), boards.shape[1:]
            fresh = synthesize(count + REFERENCE, height, width, wish.boxes or 0, seed=2**33)
            reference = count_patterns(fresh[count:])
            ratio = f"{pattern_jsd(boards, reference) / pattern_jsd(fresh[:count], reference):.3f}"
        shares.append(results.solved.mean())
        numbers = f"{shares[-1]:.1%} | {malformed:.1%} | {boxes:.1%} | {walls:.1f}"
        pushes = results.pushes[results.solved].mean() if results.solved.any() else float("nan")
        names = ids(boards)
        copies = sum(each in known for each in names) if corpus else "–"
        numbers += f" | {pushes:.1f} | {ratio} | {copies} | {len(names) - len(set(names))}"
        print(f"| {key} | {len(boards)} | {numbers} |", flush=True)
    if shares:
        print(f"\nmean solvable share {np.mean(shares):.1%}, least {min(shares):.1%}\n")
    print("| wish | solvable | " + " | ".join(f"rated {word}" for word in DIFFICULTIES) + " |")
    print("|---" * 6 + "|")
    for key in (key for key in made if key.endswith(DIFFICULTIES)):
        words = np.array(difficulties(made[key], FILTER_LIMITS))
        rated = [f"{np.mean(words[words != ''] == word):.1%}" for word in DIFFICULTIES]
        print(f"| {key} | {np.mean(words != ''):.1%} | " + " | ".join(rated) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path, help="the folder of a model or of a run")
    parser.add_argument("--out", type=Path, help="file for the sampled boards")
    parser.add_argument("--boards", type=int, default=1000)
    parser.add_argument("--only", nargs="+", metavar="WISH", help="such as 8x12x5 or '8x8x3 hard'")
    parser.add_argument("--sweeps", type=int, default=1)
    parser.add_argument("--guidance", type=float, default=3.0)
    parser.add_argument("--critic", action="store_true", help="reject boards by the model's critic")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--judge", type=Path, metavar="BOARDS", help="judge sampled boards")
    parser.add_argument("--corpus", type=Path, help="the folder of the mixed corpus the model learned from")
    given = parser.parse_args()
    if given.judge is None and (given.model is None or given.out is None):
        parser.error("expected MODEL and --out, or --judge")
    judge(dict(np.load(given.judge)) if given.judge else sample(given), given.corpus)
