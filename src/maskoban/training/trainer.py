"""The training loop.

    Trainer(PRESETS["tiny"], corpus, held_out, Path("runs/tiny")).run()

Nothing random has state: batch order follows from (seed, epoch) and noise from (seed, step). A checkpoint therefore
holds weights, moments and a step number, and a resumed run takes exactly the steps of an uninterrupted one.
"""

from __future__ import annotations

import dataclasses
import math
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import maskoban
from maskoban._util.files import atomic_file, file_errors
from maskoban._util.signals import defer_interrupt
from maskoban.boards.tiles import WALL, Tokens
from maskoban.diffusion.denoiser import blank_boards
from maskoban.diffusion.trajectory import sample_boards
from maskoban.errors import MaskobanError
from maskoban.nn.conditional import LENGTHS, ConditionalNetwork, start_tensors
from maskoban.nn.networks import InteriorNetwork
from maskoban.nn.runtime import default_device, make_denoiser
from maskoban.nn.self_test import kernel_self_test
from maskoban.nn.weight_files import load_weights, restore_network
from maskoban.training.checkpoint import (
    Progress,
    load_checkpoint,
    named_folder,
    new_network,
    restore_optimizer,
    save_checkpoint,
)
from maskoban.training.config import MEASURING, Preset
from maskoban.training.data import SEED_STRIDE, Batches, board_cells
from maskoban.training.distributed import Processes
from maskoban.training.log import RunLog
from maskoban.training.mixed import Batch, MixedBatches, MixedCorpus
from maskoban.training.optim import Anneal, WeightAverage, fraction_done, rate_factor, set_rates
from maskoban.training.options import TrainOptions
from maskoban.training.step import TrainStep

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_READ_EVERY = 20  # steps between two reads of the loss: each waits for the device
_SAVE_AFTER = 300  # seconds: a checkpoint is never older


class Trainer:
    """One run in one folder: ``state*.safetensors``, ``log.jsonl`` and the boards sampled on the way."""

    def __init__(
        self, preset: Preset, corpus: Tokens | MixedCorpus, held_out: Tokens | MixedCorpus, folder: Path,
        options: TrainOptions | None = None, processes: Processes | None = None,
    ) -> None:  # fmt: skip
        self.preset, self.folder, self.options = preset, folder, options or TrainOptions()
        self.processes = processes or Processes()
        part = self.processes.part(preset.batch)
        name = self.options.device or default_device()
        try:
            self.device = torch.device(name)
            self.network = new_network(preset).to(self.device).compute_in(_PRECISIONS[preset.precision])
            if self.device.index is not None and self.device.type == "cuda":
                torch.cuda.set_device(self.device)  # kernels are launched on the current one
        except (RuntimeError, AssertionError) as error:
            raise MaskobanError(f"device {name!r}: {str(error).splitlines()[0]}") from error
        on_cuda = self.device.type == "cuda"
        self.compile = on_cuda if self.options.compile is None else self.options.compile
        self.network.start_at(part.start)
        kernel_self_test(self.network, part.stop - part.start, backward=True)
        self._load(corpus, held_out)
        self.step = TrainStep(self.network, preset, self.processes, self.device, self.compile)
        self.average = WeightAverage(self.network, preset.ema)
        self.log = RunLog(folder, self.options.quiet, self.options.tensorboard and self.processes.first)
        self.progress = Progress()
        self.before = Progress()  # of the runs whose weights this one started from
        self.anneal: Anneal | None = None
        self._losses: list[Tensor] = []  # of the steps since the last record

    def _load(self, corpus: Tokens | MixedCorpus, held_out: Tokens | MixedCorpus) -> None:
        """Set ``batches`` and, as a list of batches, ``held_out``."""
        preset = self.preset
        self.batches: Batches | MixedBatches
        self.held_out: list[Tensor] | list[Batch]
        if len(held_out) == 0:
            raise MaskobanError("the held-out corpus has no boards")
        if isinstance(corpus, MixedCorpus) or isinstance(held_out, MixedCorpus):
            assert isinstance(corpus, MixedCorpus)
            assert isinstance(held_out, MixedCorpus)
            self.batches = MixedBatches(corpus, preset.batch, preset.seed, self.device)
            size = min(preset.batch, len(held_out) // (2 * len(LENGTHS)) + 1)
            held = MixedBatches(held_out, size, preset.seed, self.device)
            self.held_out = held.some(max(preset.validation_boards // size, 1))
            return
        self.batches = Batches(board_cells(corpus, self.network, "the training corpus", self.device), preset)
        held_out = held_out[: preset.validation_boards]
        if len(held_out) > preset.batch:  # whole batches, as in training
            held_out = held_out[: len(held_out) // preset.batch * preset.batch]
        cells = board_cells(held_out, self.network, "the held-out corpus", self.device)
        self.held_out = [part.long() for part in torch.split(cells, preset.batch)]
        if preset.corruption == "exact" and preset.diffusion_steps % self.network.cells:
            raise MaskobanError(
                f"diffusion_steps: expected a multiple of the {self.network.cells} cells with corruption=exact, "
                f"got {preset.diffusion_steps}; set diffusion_steps={self.network.cells}"
            )

    def fraction_done(self) -> float:
        return fraction_done(self.preset, self.progress, self.options.minutes, self.anneal)

    def rate_factor(self) -> float:
        return rate_factor(self.preset, self.progress, self.options.minutes, self.anneal)

    def steps_left(self) -> bool:
        return self.fraction_done() < 1.0 and self.progress.step < (self.options.stop_at or math.inf)

    # -- the loop

    def run(self) -> None:
        """Train to the end of the budget or to ``stop_at``. Saves on the way, at the end and when interrupted."""
        self._start()
        try:
            self._train()
            self._end("end")
        except KeyboardInterrupt:  # on all processes after the same step
            self._end("interrupted")
            self.processes.wait()
            raise
        finally:
            self.log.close()
        self.processes.wait()

    def _train(self) -> None:
        preset, progress, first = self.preset, self.progress, self.processes.first
        if (self.compile or self.device.type == "cuda") and self.steps_left():
            self.processes.together(self.check_step)
        clock = saved = time.perf_counter()
        # Several processes must stop after the same step: there, Ctrl-C waits until they agree.
        with defer_interrupt() if self.processes.count > 1 else nullcontext(list[int]()) as pressed:
            while self.steps_left():
                loss = self.train_step()
                if self._due(_READ_EVERY) and self.device.type == "cuda":
                    torch.cuda.synchronize()  # or the clock would run ahead of the device
                now = time.perf_counter()
                progress.seconds, stop = self.processes.agree(progress.seconds + now - clock, bool(pressed))
                clock = now
                if stop:
                    raise KeyboardInterrupt
                if not first:
                    continue
                if self._due(_READ_EVERY):
                    self._show(loss)
                if self._due(preset.validate_every):
                    self.record_losses()
                if self._due(preset.sample_every):
                    self.sample()
                if self._due(self.options.save_every) or time.perf_counter() - saved > _SAVE_AFTER:
                    self.save()
                    saved = time.perf_counter()
                clock = time.perf_counter()  # measuring and saving are not training time
        if first and self.fraction_done() >= 1.0:
            recorded = self.log.recorded(progress.step)  # by a run that was interrupted here
            if "valid" not in recorded:
                self.record_losses()
            if "boards" not in recorded:
                self.sample()

    def _due(self, every: int) -> bool:
        return self.progress.step % every == 0

    def train_step(self) -> Tensor:
        """One optimiser step; returns its loss, still on the device."""
        step = self.progress.step
        torch.manual_seed(self.preset.seed * SEED_STRIDE + step)
        boards = self.batches(step)
        with defer_interrupt():
            set_rates(self.step.optimizers, self.preset, self.rate_factor())
            loss = self.step(boards, self.step.passes(step))
            self.average.update(step)
            self.progress.step += 1
            if self.processes.first:
                self._losses.append(loss)
        return loss

    def check_step(self) -> float | None:
        """Compare the compiled step's gradients with plain torch's; returns the largest relative error.

        None where the device has too little memory for the plain step.
        """
        try:
            off = self.step.check(self.batches(self.progress.step))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            self.log.say("the training step is not checked: too little memory for the plain one")
            return None
        if self.processes.first:
            self.log.record({"event": "checked", "step": self.progress.step, "gradients_off": round(off, 5)})
        return off

    # -- measuring

    def _show(self, loss: Tensor) -> None:
        minutes, rate = self.progress.seconds / 60, self.rate_factor()
        self.log.say_live(
            f"step {self.progress.step}  {minutes:.1f} min  loss {loss.item():.4f}  rate x{rate:.3f}"
        )

    def record_losses(self) -> None:
        """Record the mean training loss since the last record, and the held-out loss."""
        values: dict[str, Any] = {"step": self.progress.step, "minutes": round(self.progress.seconds / 60, 4)}
        if self._losses:
            values["train"] = round(torch.stack(self._losses).mean().item(), 5)
            self._losses = []
        values["valid"] = round(self.validate(), 5)
        if not math.isfinite(values.get("train", 0.0) + values["valid"]):
            raise self._diverged("the loss")
        self.log.record(values | {"rate": round(self.rate_factor(), 5)})

    @torch.no_grad()
    def validate(self) -> float:
        """The held-out loss, with the same noise every time and no dropout."""
        with self._measuring():
            losses: list[float] = []
            for number, boards in enumerate(self.held_out):
                torch.manual_seed(number * self.preset.batch)
                losses.append(self.step.loss(boards, *self.step.objective.noise(boards)).item())
            return sum(losses) / len(losses)

    def sample(self) -> None:
        """Sample boards, save them in the run's folder, and record how many the solver solves."""
        with self._measuring():
            n, steps = self.preset.sample_boards, self.preset.diffusion_steps
            denoiser = make_denoiser(self.network, steps, min(1024, n), self.preset.schedule)
            boards = sample_boards(denoiser, blank_boards(denoiser, n), self.preset.seed).boards
        path = self.folder / f"boards-{self.progress.step:07d}.npy"
        with atomic_file(path) as file:
            np.save(file, boards)
        walls = round(float((boards == WALL).sum((1, 2)).mean()), 3)
        self.log.record(
            {"step": self.progress.step, "boards": path.name, "walls": walls} | solvable_share(boards)
        )

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """Evaluation mode, and the averaged weights in place of the raw ones."""
        try:
            self.average.use(True)
            self.network.eval()
            yield
        finally:
            self.average.use(False)
            self.network.train()

    def _diverged(self, what: str) -> MaskobanError:
        return MaskobanError(
            f"{what} is not finite at step {self.progress.step}: training has diverged; "
            f"the last checkpoint in {self.folder} is from before"
        )

    # -- start and end

    def _start(self) -> None:
        if not self.processes.first:
            return
        with file_errors(self.folder, "written"):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.log.record({"event": "resume" if self.progress.step else "start", **self._circumstances()})
        if self.fraction_done() >= 1.0:
            self.log.say(f"the run in {self.folder} has ended, at step {self.progress.step}")

    def _end(self, event: str) -> None:
        if not self.processes.first:
            return
        self.save()
        self.log.record({"event": event, "step": self.progress.step, "minutes": self.progress.seconds / 60})
        if event == "interrupted":
            self.log.say(f"interrupted at step {self.progress.step}; saved in {self.folder}")

    def save(self) -> None:
        """Write the checkpoint. A state that has diverged does not replace the one from before."""
        self.average.use(False)  # Ctrl-C may have come while measuring
        if not torch.stack([p.isfinite().all() for p in self.network.parameters()]).all():
            raise self._diverged("a weight")
        largest = self.options.largest_file
        extra = {
            "scaler": self.step.scaler.state_dict(),
            "minutes": self.options.minutes,
            "corpus": self.batches.hash,
            "ending": self.anneal and dataclasses.asdict(self.anneal),  # the key of the first checkpoints
            "before": dataclasses.asdict(self.before),
            "losses": torch.stack(self._losses).tolist() if self._losses else [],
        }
        with defer_interrupt():
            save_checkpoint(
                self.folder, self.preset, self.progress, self.network, self.average.weights, self.step.optimizers,
                extra, self.options.compact, None if largest is None else int(largest * 1e6),
            )  # fmt: skip

    def resume(self) -> Trainer:
        """Continue from the checkpoint in the folder."""
        tensors, preset, self.progress, extra = self.processes.from_first(
            lambda: load_checkpoint(self.folder)
        )
        changed = [
            f.name
            for f in dataclasses.fields(Preset)
            if getattr(preset, f.name) != getattr(self.preset, f.name) and f.name not in MEASURING
        ]
        if changed:
            raise MaskobanError(f"{self.folder}: the run has other settings: {', '.join(changed)} differ")
        if extra.get("corpus", self.batches.hash) != self.batches.hash:
            raise MaskobanError(f"{self.folder}: the run was trained on other boards")
        minutes = extra.get("minutes", self.options.minutes)
        if self.options.minutes not in (None, minutes):
            had = "steps" if minutes is None else f"{minutes:g} minutes"
            raise MaskobanError(
                f"{self.folder}: the run's budget is in {had}, got --minutes {self.options.minutes:g}"
            )
        self.options = dataclasses.replace(self.options, minutes=minutes)
        self._resume_anneal(extra.get("ending"))
        self.before = Progress(**extra.get("before", {}))
        self._losses = [torch.tensor(loss, device=self.device) for loss in extra.get("losses", [])]
        self.average.restore(tensors)
        load_weights(self.network, tensors, "net.")
        for key, optimizer in self.step.optimizers.items():
            restore_optimizer(key, optimizer, self.network, tensors)
        if self.step.scaler.is_enabled():
            self.step.scaler.load_state_dict(extra["scaler"])
        return self

    def _resume_anneal(self, begun: dict[str, Any] | None) -> None:
        """Continue the anneal that has ``begun``, or begin one where the options say so."""
        steps = self.options.anneal
        if begun is not None:
            self.anneal = Anneal(**begun)
            if steps not in (None, self.anneal.steps):
                raise MaskobanError(
                    f"{self.folder}: the run is annealing already, over {self.anneal.steps} steps; got --anneal {steps}"
                )
        elif steps is not None:
            left = self.preset.steps - self.progress.step
            if self.fraction_done() >= 1.0 or (self.options.minutes is None and steps > left):
                raise MaskobanError(
                    f"{self.folder}: the run ends in {max(left, 0)} steps; got --anneal {steps}"
                )
            self.anneal = Anneal(self.progress.step, steps, self.rate_factor())
            if self.processes.first:
                self._copy_aside(self.folder / f"before-annealing-{self.progress.step}")

    def _copy_aside(self, aside: Path) -> None:
        """Keep a copy of the run, from which it can continue with its own schedule."""
        with file_errors(aside, "written"):
            aside.mkdir(exist_ok=True)
            for file in (*self.folder.glob("state*.safetensors"), *self.folder.glob("log.jsonl")):
                shutil.copy(file, aside)
        self.log.say(f"the run before annealing is in {aside}")

    def start_from(self, source: str | Path) -> Trainer:
        """Start a new run, with its own schedule, from the weights of another run or of a model.

        A conditional network can start from one of our networks for one size.
        Hidden units that were pruned from a model start as in a new network, with no effect at first.
        """
        tensors, _, trained, extra = self.processes.from_first(lambda: load_checkpoint(named_folder(source)))
        new = {name: value.clone() for name, value in self.network.state_dict().items()}
        if isinstance(self.network, ConditionalNetwork):
            tensors = start_tensors(self.network, tensors)
        restore_network(self.network, tensors)
        if isinstance(self.network, InteriorNetwork):
            up = self.network.up.data
            up.copy_(torch.where((up == 0).all(-1, keepdim=True), new["up"], up))
        earlier = Progress(**extra.get("before", {}))
        self.before = Progress(trained.step + earlier.step, trained.seconds + earlier.seconds)
        return self

    def _circumstances(self) -> dict[str, Any]:
        """What a run's log says about it."""
        on_cuda = self.device.type == "cuda"
        return {
            "settings": dataclasses.asdict(self.preset),
            "options": dataclasses.asdict(self.options),
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "processes": self.processes.count,
            "threads": torch.get_num_threads(),
            "corpus": len(self.batches.corpus),
            "held_out": sum(len(boards) for boards in self.held_out),
            "from_step": self.progress.step,
            "before": self.before.step,
            "corpus_hash": self.batches.hash,
            "versions": {"maskoban": maskoban.__version__, "python": platform.python_version(),
                         "torch": torch.__version__, "numpy": np.__version__},
            "machine": torch.cuda.get_device_name() if on_cuda else platform.processor() or platform.machine(),
        }  # fmt: skip


def solvable_share(boards: Tokens) -> dict[str, float]:
    """The share of boards that the solver solves; empty where the native solver is not built."""
    try:
        from maskoban.solving.filters import FILTER_LIMITS
        from maskoban.solving.solver import solve_many
    except ImportError:
        return {}
    solved = solve_many(boards, solutions=False, limits=FILTER_LIMITS).solved
    return {"solvable": round(float(solved.mean()), 5)}
