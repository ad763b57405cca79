"""Training a critic: which boards are levels of the corpus, and which are drawings of its model."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from maskoban.boards.errors import MaskobanError
from maskoban.boards.symmetry import symmetries
from maskoban.boards.tiles import Tokens
from maskoban.diffusion.critic_network import CriticNetwork, fingerprint
from maskoban.diffusion.network import InteriorNetwork
from maskoban.diffusion.proving import prove_kernels
from maskoban.diffusion.tensorfile import save_tensors
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.interrupting import uninterrupted
from maskoban.training.compiling import compiled
from maskoban.training.critic_scores import auc, calibration, cross_entropy, scores

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


def base_of(denoiser: TorchDenoiser) -> InteriorNetwork:
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
        base = base_of(denoiser)
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
