"""``python -m maskoban.training.critic``: teach a critic to tell a model's drawings from the corpus.

    python -m maskoban.training.critic --model best --corpus boxoban-medium-train \\
        --held-out boxoban-medium-valid --drawn 1000000 --minutes 5 --out runs/critic

A critic judges finished boards, so it learns from boards drawn in the model's own way but for the critic: one cell a
step, then the polish sweeps on the model's card (``--polish`` says otherwise). The file says with how many.

Half of every batch are levels of the corpus, half drawings of the model, each turned by a random symmetry the
critic is told; it learns which is which by cross-entropy (``diffusion/critic_network.py`` says what that gives).
Kept is the critic that did best on held-out levels and held-out drawings: a critic that goes on learning a corpus by
heart gets worse there. The solver has no part in it. Needs nothing but torch and NumPy.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch

from maskoban.boards.errors import MaskobanError
from maskoban.boards.files import read_boards
from maskoban.boards.formats.npz import array_beside
from maskoban.boards.tiles import MASK, Tokens
from maskoban.boards.writing import check_place, whole_file
from maskoban.diffusion.sampler import Drawing, blank, draw_many, drawn_part
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.diffusion.torch_model import load_torch
from maskoban.training.checkpoint import named_folder
from maskoban.training.critic_trainer import FILE, CriticSettings, CriticTrainer, base_of

#: Where in a seed's sequence the drawings lie that a critic learns from: nobody else's boards come from there, and a
#: critic knows the ones it learned from.
FIRST = 1 << 40


def drawings(
    denoiser: TorchDenoiser, asked: str, polish: int | None, own: int, seed: int
) -> tuple[Tokens, int]:
    """So many drawings, or those of an npz file, (n, height, width), and the polish sweeps they were made with.

    Where ``polish`` leaves it open they are the model's ``own``, or what the file says.
    """
    if asked.isdecimal():
        how = Drawing(polish=own if polish is None else polish)
        start, said = blank(denoiser, int(asked)), 0

        def say(done: int, total: int) -> None:
            nonlocal said
            if 10 * done // total > said:  # a line a tenth: it may take hours
                said = 10 * done // total
                print(f"drawn: {done:,} of {total:,} boards", file=sys.stderr, flush=True)

        return draw_many(denoiser, start, seed, how, first=FIRST, progress=say).boards, how.polish
    boards, told = _read(asked)
    sweeps = told if polish is None else polish
    if sweeps is None:
        raise MaskobanError(
            f"{asked}: does not say how many polish sweeps its boards had; say it with --polish"
        )
    if told not in (None, sweeps):
        raise MaskobanError(f"{asked}: its boards had {told} polish sweeps, not {sweeps}")
    return boards, sweeps


def _read(path: str) -> tuple[Tokens, int | None]:
    """The drawings of a file, and with how many polish sweeps it says they were made."""
    if not Path(path).exists():
        raise MaskobanError(f"{path}: neither a number of drawings nor a file of them")
    boards, told = read_boards(path), array_beside(path, "polish", 1)
    _check_enough(len(boards))
    if (boards == MASK).any():
        raise MaskobanError(f"{path}: there are cells left to draw (?) on its boards; expected finished ones")
    if told is None:
        return boards, None
    if told.ndim or not np.issubdtype(told.dtype, np.integer) or told < 0:
        raise MaskobanError(f"{path}: polish must be one whole number of sweeps, 0 or more")
    return boards, int(told)


def _check_enough(drawn: int) -> None:
    if drawn < 5:
        raise MaskobanError(f"a fifth of the drawings is held out, and {drawn} are too few for that")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="python -m maskoban.training.critic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--model", required=True, help="a shipped model, the folder of an exported one, or a run")
    p.add_argument("--corpus", required=True, help="packed boards the model learned from")
    p.add_argument("--held-out", required=True, help="packed boards it never saw")
    p.add_argument("--drawn", default="200000", help="how many boards to draw, or a file of drawn boards")
    p.add_argument("--boards-out", type=Path, metavar="FILE", help="keep the drawings: an npz for --drawn")
    p.add_argument(
        "--polish",
        type=int,
        help="sweeps over every drawing (default: the model's own, or what the file says)",
    )
    p.add_argument("--out", type=Path, required=True, help="folder of the run: critic, log, held-out scores")
    default = "cuda" if torch.cuda.is_available() else "cpu"
    p.add_argument("--device", default=default, help="cpu, cuda, ... (default: cuda if there is one)")
    for field in dataclasses.fields(CriticSettings):
        if field.name != "polish":
            option = "held_out_boards" if field.name == "held_out" else field.name
            kind = type(field.default)
            p.add_argument("--" + option.replace("_", "-"), dest="s_" + field.name, type=kind, default=field.default,
                           metavar="X" if kind is float else "N", help=f"default: {field.default}")  # fmt: skip
    return p


def run(arguments: list[str]) -> float:
    """Draw, train, and return the held-out cross-entropy."""
    from maskoban.training.corpus import load

    a = parser().parse_args(arguments)
    if a.drawn.isdecimal():
        _check_enough(int(a.drawn))
    settings = CriticSettings(**{k[2:]: v for k, v in vars(a).items() if k.startswith("s_")})
    if a.boards_out is not None:
        check_place(a.boards_out)
    there = next(place for place in (a.out, *a.out.parents) if place.exists())
    if not there.is_dir():
        raise MaskobanError(f"{there}: is a file, and a folder for the run is wanted")
    if (a.out / FILE).is_file():
        raise MaskobanError(f"{a.out}: a critic is there already; give another --out")
    denoiser, facts = load_torch(named_folder(a.model), a.device)
    base_of(denoiser)  # before the drawing, which takes long
    real, held = (drawn_part(load(file), denoiser, file, "the model") for file in (a.corpus, a.held_out))
    boards, polish = drawings(denoiser, a.drawn, a.polish, facts.get("polish", 0), settings.seed)
    if a.boards_out is not None:
        with whole_file(a.boards_out) as file:
            np.savez_compressed(file, boards=boards, polish=polish)
    drawn = drawn_part(boards, denoiser, a.drawn, "the model")
    n = min(settings.held_out, len(held), len(drawn) // 5)
    settings = dataclasses.replace(settings, polish=polish)
    return CriticTrainer(denoiser, real, drawn[:-n], held[:n], drawn[-n:], settings, a.out).run()


def main() -> None:
    torch.set_float32_matmul_precision("high")
    try:
        print(f"held-out cross-entropy {run(sys.argv[1:]):.4f}")
    except MaskobanError as error:
        print(f"maskoban critic: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("maskoban critic: interrupted; if it was learning already, the best critic so far is in its folder",
              file=sys.stderr)  # fmt: skip
        sys.exit(130)


if __name__ == "__main__":
    main()
