"""Short training runs of equal steps, one change each, and one table of what each change is worth.

    python benchmarks/probes.py CORPUS HELD_OUT --out probes --steps 8500 --boards 10000 4x3 6x4 4x3-symmetry
    python benchmarks/probes.py CORPUS HELD_OUT --out probes --steps 8500 paper-board paper-batch paper-norm paper-relu
    python benchmarks/probes.py CORPUS HELD_OUT --out probes --judge

CORPUS and HELD_OUT are anything that holds boards. Without names, all probes run, in the order of PROBES. Every probe
ends annealed. Results are appended to results.jsonl and the boards kept in boards.npz, so a series may be interrupted:
probes that are there are not run again. A looped network samples with its own passes and with those of --passes.
Needs torch and NumPy; solvable share and divergence need the native core too, so ``--judge`` computes them elsewhere.
A dry run on a CPU: --steps 3 --boards 4 --set d=32 --set heads=2 --set hidden=64 --set batch=16 --set precision=fp32
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from maskoban.boards.corpus import load
from maskoban.boards.tiles import WALL, Tokens
from maskoban.errors import MaskobanError
from maskoban.training.config import PRESETS, parse_settings
from maskoban.training.options import TrainOptions

#: What a probe changes, by its name, after the preset it starts from. "4x3" is 4 blocks run 3 times.
PROBES: dict[str, str] = {
    "12x1": "best",
    "4x3": "best blocks=4 passes=3",
    "6x4": "best blocks=6 passes=4",
    "6x2..4": "best blocks=6 passes=4 least_passes=2",
    "6x6": "best blocks=6 passes=6",
    "4x3-symmetry": "best blocks=4 passes=3 symmetry=0.875",
    "4x3-symmetry-half": "best blocks=4 passes=3 symmetry=0.5",
    "4x3-ema": "best blocks=4 passes=3 ema=0.999",
    "4x3-gelu": "best blocks=4 passes=3 unit=gelu",
    "4x3-decay": "best blocks=4 passes=3 muon_weight_decay=0.05",
    "4x3-initial": "best blocks=4 passes=3 initial_scale=0.5",
    "4x3-muon": "best blocks=4 passes=3 muon_learning_rate=0.01",
    "paper-board": "paper",
    "paper-batch": "paper average=batch",
    "paper-norm": "paper average=batch final_norm=true",
    "paper-relu": "paper average=batch activation=relu",
}

_COLUMNS = ("probe", "passes", "parameters", "ms a step", "held-out loss", "idle units", "solvable", "malformed",
            "walls", "JSD / floor")  # fmt: skip


def probe(name: str, corpus: Tokens, held_out: Tokens, a: argparse.Namespace) -> dict[str, Tokens]:
    """Train one probe; the boards sampled from it, by the key of their line in results.jsonl."""
    import torch

    from maskoban.diffusion.denoiser import blank_boards
    from maskoban.diffusion.trajectory import sample_boards
    from maskoban.nn.networks import InteriorNetwork
    from maskoban.nn.runtime import TorchDenoiser
    from maskoban.training.pruning import idle_units
    from maskoban.training.trainer import Trainer

    base, *changes = PROBES[name].split()
    settings = parse_settings(
        [*changes, *a.set, f"steps={a.steps}", f"sample_every={10 * a.steps}", "sample_boards=1"]
    )
    preset = dataclasses.replace(PRESETS[base], **settings)
    options = TrainOptions(device=a.device, quiet=True, save_every=10**9)
    trainer = Trainer(preset, corpus, held_out, a.out / "runs" / name, options)
    trainer.run()
    network, sampled = trainer.network, {}
    trainer.average.use(True)
    network.eval()
    looped = isinstance(network, InteriorNetwork) and network.gain is not None
    for passes in sorted({preset.passes, *a.passes}) if looped else [preset.passes]:
        network.passes = passes
        on_cuda = trainer.device.type == "cuda"
        denoiser = TorchDenoiser(network, preset.diffusion_steps, 2048 if on_cuda else 16, compiled=on_cuda)
        boards = sample_boards(denoiser, blank_boards(denoiser, a.boards), seed=11).boards
        line: dict[str, Any] = {
            "probe": name,
            "passes": passes,
            "parameters": sum(p.numel() for p in network.parameters()),
            "ms a step": round(1000 * trainer.progress.seconds / preset.steps, 2),
            "held-out loss": round(trainer.validate(), 5),
            "walls": round(float((boards == WALL).sum((1, 2)).mean()), 2),
        }
        network.eval()
        if isinstance(network, InteriorNetwork):
            line["idle units"] = int(idle_units(network, held_out[:500]).sum())
        with open(a.out / "results.jsonl", "a", encoding="utf-8") as file:
            print(json.dumps(line | {"preset": dataclasses.asdict(preset)}), file=file)
        print(line, flush=True)
        sampled[f"{name} {passes}"] = boards
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return sampled


def judged(lines: list[dict[str, Any]], boards: dict[str, Tokens], corpus: Tokens, held_out: Tokens) -> None:
    """Add what the solver and the patterns say, where the native core is there."""
    try:
        from maskoban.evaluation.measures.patterns import count_patterns, pattern_jsd
        from maskoban.solving.filters import FILTER_LIMITS
        from maskoban.solving.solver import solve_many
    except ImportError:
        return
    reference = count_patterns(corpus)
    for line in lines:
        some = boards[f"{line['probe']} {line['passes']}"]
        results = solve_many(some, solutions=False, limits=FILTER_LIMITS)
        line["solvable"] = f"{results.solved.mean():.1%}"
        line["malformed"] = f"{np.mean([each.verdict == 'malformed' for each in results]):.2%}"
        floor = pattern_jsd(held_out[: len(some)], reference)
        line["JSD / floor"] = round(pattern_jsd(some, reference) / floor, 3)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("corpus")
    p.add_argument("held_out")
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROBES))
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--steps", type=int, default=8500)
    p.add_argument("--boards", type=int, default=10_000)
    p.add_argument("--passes", type=int, nargs="*", default=[])
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change every probe")
    p.add_argument("--device", help="cuda if there is one")
    p.add_argument("--judge", action="store_true", help="only print the table of what is there")
    a = p.parse_intermixed_args()
    if unknown := set(a.names) - set(PROBES):
        p.error(f"no probe {', '.join(sorted(unknown))}; expected {', '.join(PROBES)}")
    a.out.mkdir(parents=True, exist_ok=True)
    corpus, held_out = load(a.corpus), load(a.held_out)
    results, kept = a.out / "results.jsonl", a.out / "boards.npz"
    boards = dict(np.load(kept)) if kept.exists() else {}
    for name in [] if a.judge else a.names or list(PROBES):
        if any(key.split()[0] == name for key in boards):
            continue
        try:
            boards |= probe(name, corpus, held_out, a)
        except MaskobanError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
        np.savez_compressed(kept, **boards)
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    lines = [line for line in lines if f"{line['probe']} {line['passes']}" in boards]
    judged(lines, boards, corpus, held_out)
    print("| " + " | ".join(_COLUMNS) + " |\n" + "|---" * len(_COLUMNS) + "|")
    for line in lines:
        print("| " + " | ".join(str(line.get(column, "–")) for column in _COLUMNS) + " |")


if __name__ == "__main__":
    main()
