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
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from maskoban.boards.errors import MaskobanError
from maskoban.boards.files import read_boards
from maskoban.boards.formats.npz import array_beside
from maskoban.boards.symmetry import symmetries
from maskoban.boards.tiles import MASK, Tokens
from maskoban.boards.writing import check_place, whole_file
from maskoban.diffusion.critic_network import CriticNetwork, fingerprint
from maskoban.diffusion.network import InteriorNetwork
from maskoban.diffusion.proving import prove_kernels
from maskoban.diffusion.sampler import Drawing, blank, draw_many, drawn_cells
from maskoban.diffusion.tensorfile import save_tensors
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.diffusion.torch_model import load_torch
from maskoban.interrupting import uninterrupted
from maskoban.training.checkpoint import named_folder
from maskoban.training.compiling import compiled
from maskoban.training.critic_scores import auc, calibration, cross_entropy, scores

#: Where in a seed's sequence the drawings lie that a critic learns from: nobody else's boards come from there, and a
#: critic knows the ones it learned from.
FIRST = 1 << 40

#: The file of a critic, in its run's folder and beside the model it belongs to.
FILE = "critic.safetensors"


@dataclass(frozen=True)
class CriticSettings:
    """Every number of a critic's training."""

    minutes: float = 5.0
    rank: int = 32
    batch: int = 1024
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: int = 100
    look_every: int = 1000
    held_out: int = 25_000  # boards of either kind
    seed: int = 0
    polish: int = 0  # sweeps over every drawing it learns from

    def __post_init__(self) -> None:
        if not self.minutes > 0:
            raise MaskobanError(f"the training time must be above 0 minutes, not {self.minutes:g}")
        for name in ("learning_rate", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                raise MaskobanError(f"{name} must be a number from 0 on, not {getattr(self, name)}")
        for name, least in (("rank", 1), ("batch", 2), ("warmup", 1), ("look_every", 1), ("held_out", 1)):
            if getattr(self, name) < least:
                raise MaskobanError(f"{name} must be at least {least}, not {getattr(self, name)}")


def _base(denoiser: TorchDenoiser) -> InteriorNetwork:
    """The network a critic is made of."""
    if not isinstance(denoiser.network, InteriorNetwork):
        raise MaskobanError("a critic can be made of the interior network only, not of the paper's")
    return denoiser.network


def turning_tables(rows: int, columns: int) -> NDArray[np.int64]:
    """For each of the eight symmetries, which cell of a board every cell of the turned one shows: (8, cells).

    Where a quarter turn would change the shape, its row is -1.

    >>> turning_tables(2, 2).tolist()[:2]
    [[0, 1, 2, 3], [1, 3, 0, 2]]
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    turned = symmetries(grid)  # type: ignore[arg-type]
    return np.stack([t.ravel() if t.shape == grid.shape else np.full(grid.size, -1) for t in turned])


class CriticTrainer:
    """Trains a critic of the denoiser on levels of the corpus and on drawings, (n, cells) tokens each."""

    def __init__(self, denoiser: TorchDenoiser, real: Tokens, drawn: Tokens, held_real: Tokens, held_drawn: Tokens,
                 settings: CriticSettings, out: Path) -> None:  # fmt: skip
        base = _base(denoiser)
        self.settings, self.out, self.device = settings, out, denoiser.device
        torch.manual_seed(settings.seed)
        self.critic = CriticNetwork(base, settings.rank).to(self.device)
        prove_kernels(base, settings.batch, backward=True)
        self.real, self.drawn = (torch.from_numpy(boards).to(self.device) for boards in (real, drawn))
        self.held = held_real, held_drawn
        self.tables = torch.from_numpy(turning_tables(base.rows, base.columns)).to(self.device)
        self.turns = torch.nonzero(self.tables[:, 0] >= 0)[:, 0]
        trained = [p for p in self.critic.parameters() if p.requires_grad]
        on_cuda = self.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            trained, settings.learning_rate, (0.9, 0.98), weight_decay=settings.weight_decay, fused=on_cuda
        )
        self.forward = compiled(self.critic) if on_cuda else self.critic
        self.kind = (torch.arange(settings.batch, device=self.device) < settings.batch // 2).float()

    def batch(self) -> tuple[Tensor, Tensor]:
        """Turned boards, real ones first, and by which symmetry each was turned."""
        half, device = self.settings.batch // 2, self.device
        real = self.real[torch.randint(len(self.real), (half,), device=device)]
        drawn = self.drawn[torch.randint(len(self.drawn), (self.settings.batch - half,), device=device)]
        turn = self.turns[torch.randint(len(self.turns), (self.settings.batch,), device=device)]
        return torch.cat([real, drawn]).long().gather(1, self.tables[turn]), turn

    def run(self) -> float:
        """Train for the time given, keep the best, return its held-out cross-entropy (ln 2 is a coin's).

        One that is no better than a coin is not kept, and where none is better this raises.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        coin = self.look(0, 0.0, 0.0)
        best = self._learn(coin)
        if not best < coin:
            raise MaskobanError(
                "this critic cannot tell drawings from levels, and is not kept; give it more minutes or drawings"
            )
        return best

    def _learn(self, best: float) -> float:
        s, step, total = self.settings, 0, torch.zeros((), device=self.device)
        start = time.perf_counter()
        self.critic.train()
        while (share := (time.perf_counter() - start) / (60 * s.minutes)) < 1:
            rate = s.learning_rate * min(1, (step + 1) / s.warmup) * (1 - share)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            try:
                boards, turn = self.batch()
                loss = F.binary_cross_entropy_with_logits(self.forward(boards, turn), self.kind)
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                with uninterrupted():
                    self.optimizer.step()
            except KeyboardInterrupt:
                self.look(step, float(total) / max(step % s.look_every, 1), best)
                raise
            total += loss.detach()
            step += 1
            if step % 50 == 0 and self.device.type == "cuda":
                torch.cuda.synchronize()  # the clock must not run ahead of the device
            if step % s.look_every == 0:
                best = min(best, self.look(step, float(total) / s.look_every, best))
                total.zero_()
        if step % s.look_every:
            best = min(best, self.look(step, float(total) / (step % s.look_every), best))
        return best

    def look(self, step: int, train_loss: float, best: float) -> float:
        """Measure on what is held out, calibrate the scores there, and save if it is the best so far.

        One whose scores are best read upside down has learned nothing yet.
        """
        real, drawn = (scores(self.critic, self.forward, boards, self.settings.batch) for boards in self.held)
        raw = cross_entropy(real, drawn)
        slope, shift = calibration(real, drawn)
        real, drawn = slope * real + shift, slope * drawn + shift
        loss = cross_entropy(real, drawn)
        line = {"step": step, "train_loss": train_loss, "held_out_loss": loss, "uncalibrated": raw, "slope": slope,
                "auc": auc(real, drawn), "kept_at_1": float(np.minimum(1, np.exp(drawn)).mean())}  # fmt: skip
        line = {name: round(value, 5) for name, value in line.items()}
        print(json.dumps(line), flush=True)
        with open(self.out / "log.jsonl", "a", encoding="utf-8") as file:
            print(json.dumps(line), file=file)
        if slope <= 0:
            loss = math.inf
        if loss < best:
            added = self.critic.added()
            added["head"], added["bias"] = slope * added["head"], slope * added["bias"] + shift
            halves = {name: value.half() for name, value in added.items()}
            told = {"settings": json.dumps(dataclasses.asdict(self.settings)), "facts": json.dumps(line)}
            told["model"] = fingerprint(self.critic.base)
            save_tensors(self.out / FILE, halves, told)
            np.savez(self.out / "scores.npz", real=real, drawn=drawn)
        self.critic.train()
        return loss


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


def _cells(denoiser: TorchDenoiser, boards: Tokens, whose: str) -> Tokens:
    """The cells that the model draws, (n, cells)."""
    if boards.shape[1:] != (denoiser.height, denoiser.width):
        size = "x".join(map(str, boards.shape[1:]))
        raise MaskobanError(
            f"{whose} has {size} boards, but the model draws {denoiser.height}x{denoiser.width}"
        )
    return boards.reshape(len(boards), -1)[:, drawn_cells(denoiser)]


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
    _base(denoiser)  # before the drawing, which takes long
    real, held = (_cells(denoiser, load(corpus), corpus) for corpus in (a.corpus, a.held_out))
    boards, polish = drawings(denoiser, a.drawn, a.polish, facts.get("polish", 0), settings.seed)
    if a.boards_out is not None:
        with whole_file(a.boards_out) as file:
            np.savez_compressed(file, boards=boards, polish=polish)
    drawn = _cells(denoiser, boards, a.drawn)
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
