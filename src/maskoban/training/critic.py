"""Training a critic: a discriminator between boards of the corpus and boards sampled from its model.

    maskoban train critic --model best --samples 400000 --minutes 4 --out runs/critic

Half of every batch are boards of the corpus, half are samples, each turned by a random symmetry that the critic is
given. It learns to tell them apart by cross-entropy, so its score estimates the log density ratio (``nn/critic.py``).
Samples are made as the model samples, but without a critic: one cell a step, then its Gibbs sweeps. The critic with the
lowest held-out loss is saved; one that overfits the corpus gets worse there. No solver is involved.
``training/conditional_critic.py`` has the boards for the critic of a conditional model.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from maskoban._util.files import atomic_file, check_can_write
from maskoban._util.signals import defer_interrupt
from maskoban.boards.corpus import load
from maskoban.boards.files import read_boards
from maskoban.boards.formats.arrays import extra_array
from maskoban.boards.geometry import turning_tables
from maskoban.boards.tiles import MASK, Tokens
from maskoban.diffusion.conditions import Conditioned
from maskoban.diffusion.denoiser import blank_boards, interior
from maskoban.diffusion.sampler import SamplerConfig
from maskoban.diffusion.trajectory import sample_boards
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import ConditionalNetwork
from maskoban.nn.critic import CriticNetwork, fingerprint
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.runtime import TorchDenoiser, default_device, load_torch
from maskoban.nn.self_test import kernel_self_test
from maskoban.nn.weight_files import save_tensors
from maskoban.training.checkpoint import named_folder
from maskoban.training.compiling import compiled
from maskoban.training.options import CriticOptions

#: The file of a critic, in its run's folder and beside its model.
FILE = "critic.safetensors"

#: The number of the first sample in the seed's sequence. A critic knows its training boards, so nobody else gets them.
FIRST = 1 << 40

Scores = NDArray[np.floating[Any]]


def train_critic(options: CriticOptions) -> float:
    """Sample boards, train a critic, and return its held-out cross-entropy."""
    if options.samples.isdecimal():
        _check_enough(int(options.samples), "--samples")
    if options.boards_out is not None:
        check_can_write(options.boards_out)
    out = Path(options.out)
    there = next(place for place in (out, *out.parents) if place.exists())
    if not there.is_dir():
        raise MaskobanError(f"{there}: is a file; expected a folder for the run")
    if (out / FILE).is_file():
        raise MaskobanError(f"{out}: holds a critic already; give another --out")
    denoiser, facts = load_torch(named_folder(options.model), options.device or default_device())
    if isinstance(denoiser, Conditioned):
        from maskoban.training.conditional_critic import conditional_trainer

        return conditional_trainer(denoiser.net, options, facts.get("polish", 0)).run()
    base = _base(denoiser)  # before the sampling, which takes long
    held_out = options.held_out or "boxoban-medium-valid"
    real, held = (interior(load(file), denoiser, file, "the model") for file in (options.corpus, held_out))
    boards, polish = samples_of(denoiser, options, facts.get("polish", 0))
    if options.boards_out is not None:
        with atomic_file(options.boards_out) as file:
            np.savez_compressed(file, boards=boards, polish=polish)
    sampled = interior(boards, denoiser, options.samples, "the model")
    n = min(options.held_out_boards, len(held), len(sampled) // 5)
    options = dataclasses.replace(options, polish=polish)
    both = TurnedBoards(base, options.batch, real, sampled[:-n], held[:n], sampled[-n:])
    kernel_self_test(base, options.batch, backward=True)
    critic = new_critic(base, options)
    forward = compiled(critic) if denoiser.device.type == "cuda" else critic
    return CriticTrainer(critic, forward, both, options).run()


def samples_of(denoiser: TorchDenoiser, options: CriticOptions, own: int) -> tuple[Tokens, int]:
    """Boards of the model, (n, height, width), sampled or from a file, and the number of their Gibbs sweeps.

    The number is the option's, else what the file says, else the model's ``own``.
    """
    if options.samples.isdecimal():
        config = SamplerConfig(sweeps=own if options.polish is None else options.polish)
        start, tenths = blank_boards(denoiser, int(options.samples)), 0

        def on_progress(done: int, total: int) -> None:
            nonlocal tenths
            if 10 * done // total > tenths:  # sampling may take hours
                tenths = 10 * done // total
                print(f"sampled {done:,} of {total:,} boards", file=sys.stderr, flush=True)

        numbers = range(FIRST, FIRST + len(start))
        made = sample_boards(denoiser, start, options.seed, config, numbers, on_progress=on_progress)
        return made.boards, config.sweeps
    boards, said = _read_samples(options.samples)
    polish = said if options.polish is None else options.polish
    if polish is None:
        raise MaskobanError(
            f"{options.samples}: does not say how many Gibbs sweeps its boards had; give --polish"
        )
    if said not in (None, polish):
        raise MaskobanError(f"{options.samples}: its boards had {said} Gibbs sweeps, got --polish {polish}")
    return boards, polish


def _read_samples(path: str) -> tuple[Tokens, int | None]:
    """The boards of a file, and the number of Gibbs sweeps that it gives."""
    if not Path(path).exists():
        raise MaskobanError(f"--samples: expected a number of boards or a file of them, got {path}")
    boards, polish = read_boards(path), extra_array(path, "polish", 1)
    _check_enough(len(boards), path)
    if (boards == MASK).any():
        raise MaskobanError(f"{path}: expected finished boards, got masked cells")
    if polish is None:
        return boards, None
    if polish.ndim or not np.issubdtype(polish.dtype, np.integer) or polish < 0:
        raise MaskobanError(f"{path}: polish: expected one whole number from 0 on")
    return boards, int(polish)


def _check_enough(count: int, source: str) -> None:
    if count < 5:
        raise MaskobanError(f"{source}: expected at least 5 boards, a fifth to hold out; got {count}")


def _base(denoiser: TorchDenoiser) -> InteriorNetwork:
    if not isinstance(denoiser.network, InteriorNetwork):
        raise MaskobanError("a critic needs a model with the interior or the conditional network")
    return denoiser.network


class BothKinds(Protocol):
    """The boards a critic learns to tell apart: of the corpus, and sampled."""

    def batch(self) -> tuple[dict[str, Tensor], Tensor]:
        """The critic's inputs for a batch of both kinds, and 1 for each that is of the corpus, 0 for a sample."""
        ...

    def held_out(self) -> tuple[Iterator[HeldOut], Iterator[HeldOut]]:
        """The held-out boards of both kinds, in batches of one size."""
        ...


#: The critic's inputs for a batch, and how many of its boards count; the last batch is filled up.
HeldOut = tuple[dict[str, Tensor], int]


class TurnedBoards:
    """Boards of one size, (n, cells) tokens, each turned by a random symmetry in training."""

    def __init__(
        self, base: InteriorNetwork, batch: int, real: Tokens, sampled: Tokens, held_real: Tokens, held_sampled: Tokens
    ) -> None:  # fmt: skip
        device = base.head.device
        self._real, self._sampled = (torch.from_numpy(boards).to(device) for boards in (real, sampled))
        self._held = held_real, held_sampled
        self._tables = torch.from_numpy(turning_tables(base.rows, base.columns)).to(device)
        self._turns = torch.nonzero(self._tables[:, 0] >= 0)[:, 0]
        self._size, self._device = batch, device
        self._is_real = (torch.arange(batch, device=device) < batch // 2).float()

    def batch(self) -> tuple[dict[str, Tensor], Tensor]:
        size, device = self._size, self._device
        real = self._real[torch.randint(len(self._real), (size // 2,), device=device)]
        sampled = self._sampled[torch.randint(len(self._sampled), (size - size // 2,), device=device)]
        turn = self._turns[torch.randint(len(self._turns), (size,), device=device)]
        tokens = torch.cat([real, sampled]).long().gather(1, self._tables[turn])
        return {"tokens": tokens, "turn": turn}, self._is_real

    def held_out(self) -> tuple[Iterator[HeldOut], Iterator[HeldOut]]:
        real, sampled = self._held
        return self._in_batches(real), self._in_batches(sampled)

    def _in_batches(self, boards: Tokens) -> Iterator[HeldOut]:
        turn = torch.zeros(self._size, dtype=torch.int64, device=self._device)
        for start in range(0, len(boards), self._size):
            part = torch.from_numpy(boards[start : start + self._size]).long()
            filled = torch.cat([part, part[:1].expand(self._size - len(part), -1)])
            yield {"tokens": filled.to(self._device), "turn": turn}, len(part)


def new_critic(base: InteriorNetwork | ConditionalNetwork, options: CriticOptions) -> CriticNetwork:
    """A critic of this network, from the options' seed."""
    torch.manual_seed(options.seed)
    return CriticNetwork(base, options.rank).to(base.head.device)


class CriticTrainer:
    """Trains a critic; ``forward`` is the critic, or a compiled one, as a function of a batch's inputs."""

    def __init__(
        self, critic: CriticNetwork, forward: Callable[..., Tensor], boards: BothKinds, options: CriticOptions
    ) -> None:
        self.critic, self.forward, self.boards, self.options = critic, forward, boards, options
        self.out, self.device = Path(options.out), critic.bias.device
        self.optimizer = torch.optim.AdamW(
            [p for p in critic.parameters() if p.requires_grad], options.learning_rate, (0.9, 0.98),
            weight_decay=options.weight_decay, fused=self.device.type == "cuda",
        )  # fmt: skip

    def run(self) -> float:
        """Train for the time given, save the best critic, and return its held-out cross-entropy (ln 2 is chance)."""
        options, step, total = self.options, 0, torch.zeros((), device=self.device)
        self.out.mkdir(parents=True, exist_ok=True)
        best = chance = self.validate(0, 0.0, 0.0)
        start = time.perf_counter()
        while (done := (time.perf_counter() - start) / (60 * options.minutes)) < 1:
            for group in self.optimizer.param_groups:
                group["lr"] = options.learning_rate * min(1, (step + 1) / options.warmup) * (1 - done)
            try:
                total += self.train_step()
            except KeyboardInterrupt:
                self.validate(step, float(total) / max(step % options.validate_every, 1), best)
                raise KeyboardInterrupt(f"interrupted; the best critic so far is in {self.out}") from None
            step += 1
            if step % 50 == 0 and self.device.type == "cuda":
                torch.cuda.synchronize()  # or the clock would run ahead of the device
            if step % options.validate_every == 0:
                best = min(best, self.validate(step, float(total) / options.validate_every, best))
                total.zero_()
        if step % options.validate_every:
            best = min(best, self.validate(step, float(total) / (step % options.validate_every), best))
        if not best < chance:
            raise MaskobanError(
                "the critic is no better than chance and is not saved; give it more --minutes"
            )
        return best

    def train_step(self) -> Tensor:
        inputs, is_real = self.boards.batch()
        loss = F.binary_cross_entropy_with_logits(self.forward(**inputs), is_real)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        with defer_interrupt():
            self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def scores(self, batches: Iterable[HeldOut]) -> NDArray[np.float32]:
        """Scores of held-out boards."""
        return np.concatenate([self.forward(**inputs)[:n].float().cpu().numpy() for inputs, n in batches])

    def validate(self, step: int, train_loss: float, best: float) -> float:
        """The held-out loss with calibrated scores; the critic is saved where it is the best so far.

        A calibration with a negative slope means that nothing is learned yet.
        """
        self.critic.eval()
        real, sampled = (self.scores(batches) for batches in self.boards.held_out())
        uncalibrated = cross_entropy(real, sampled)
        slope, shift = calibration(real, sampled)
        real, sampled = slope * real + shift, slope * sampled + shift
        loss = cross_entropy(real, sampled)
        values = {"step": step, "train_loss": train_loss, "held_out_loss": loss, "uncalibrated": uncalibrated,
                  "slope": slope, "auc": auc(real, sampled),
                  "kept_at_1": float(np.minimum(1, np.exp(sampled)).mean())}  # fmt: skip
        line = json.dumps({name: round(value, 5) for name, value in values.items()})
        print(line, flush=True)
        with open(self.out / "log.jsonl", "a", encoding="utf-8") as file:
            print(line, file=file)
        if slope <= 0:
            loss = math.inf
        if loss < best:
            added = self.critic.added()
            added["head"], added["bias"] = slope * added["head"], slope * added["bias"] + shift
            halves = {name: value.half() for name, value in added.items()}
            settings = json.dumps(dataclasses.asdict(self.options), default=str)
            metadata = {"settings": settings, "facts": line, "model": fingerprint(self.critic.base)}
            save_tensors(self.out / FILE, halves, metadata)
            np.savez(self.out / "scores.npz", real=real, sampled=sampled)
        self.critic.train()
        return loss


def cross_entropy(real: Scores, sampled: Scores) -> float:
    """Binary cross-entropy of scores as log-odds, both kinds weighted alike."""
    return float(np.logaddexp(0, -real).mean() + np.logaddexp(0, sampled).mean()) / 2


def calibration(real: Scores, sampled: Scores) -> tuple[float, float]:
    """The slope a and shift b for which a score + b has the least cross-entropy (Newton's method).

    A critic that begins to overfit is too sure of its scores, but its order of boards is still good.
    """
    x = np.concatenate([real, sampled]).astype(np.float64)
    is_real = np.concatenate([np.ones(len(real)) / len(real), np.zeros(len(sampled))])
    weight = np.concatenate([np.ones(len(real)) / len(real), np.ones(len(sampled)) / len(sampled)])
    if x.std() < 1e-6:
        return 1.0, 0.0
    a, b = 0.0, 0.0  # from a slope that is far too large, the method would diverge
    for _ in range(20):
        p = 1 / (1 + np.exp(-(a * x + b)))
        wrong, firm = weight * p - is_real, weight * p * (1 - p) + 1e-12
        gradient = np.array([wrong @ x, wrong.sum()])
        curve = np.array([[firm @ (x * x), firm @ x], [firm @ x, firm.sum()]])
        step = np.linalg.solve(curve, gradient)
        a, b = a - float(step[0]), b - float(step[1])
    return a, b


def auc(high: Scores, low: Scores) -> float:
    """How often a score of the first kind is above one of the second; equal ones count half.

    >>> auc(np.array([2.0, 3.0]), np.array([1.0, 2.5])), auc(np.zeros(3), np.zeros(2))
    (0.75, 0.5)
    """
    _, place, count = np.unique(np.concatenate([high, low]), return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count + 1) / 2)[place]  # from 0 on, equals at the mean of theirs
    return float((rank[: len(high)].sum() - len(high) * (len(high) - 1) / 2) / (len(high) * len(low)))
