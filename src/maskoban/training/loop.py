"""The training loop.

    trainer = Trainer(PRESETS["tiny"], corpus, held_out, Path("runs/tiny"))
    trainer.run()

Nothing random has state: batch order follows from (seed, epoch) and noise from (seed, step). So a checkpoint
holds weights, moments and a step number, and a resumed run takes exactly the steps the uninterrupted one
would have taken.
"""

from __future__ import annotations

import dataclasses
import math
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

import maskoban
from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import MASK, WALL, Tokens
from maskoban.boards.writing import said, whole_file
from maskoban.diffusion.corruption import draw_times, hide_exactly, hide_independently
from maskoban.diffusion.network import InteriorNetwork, load_weights, restore_network
from maskoban.diffusion.objective import objective
from maskoban.diffusion.proving import prove_kernels
from maskoban.diffusion.sampler import blank, draw, drawn_cells, drawn_part
from maskoban.diffusion.schedule import masked_share, rarity, weights
from maskoban.diffusion.torch_denoiser import TorchDenoiser
from maskoban.interrupting import uninterrupted
from maskoban.training.averaging import Average
from maskoban.training.checkpoint import (
    Progress,
    load_checkpoint,
    named_folder,
    new_network,
    restore_optimizer,
    save_checkpoint,
)
from maskoban.training.compiling import alike, compiled, present_gradients, prove_gradients
from maskoban.training.journal import Journal
from maskoban.training.muon import StackedMuon
from maskoban.training.pace import Ending, rate_factor, share_done
from maskoban.training.presets import MEASURING, Preset
from maskoban.training.processes import Processes
from maskoban.training.recording import RecordedStep

_PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_READ_EVERY = 20  # steps between looks at the loss: each look waits for the device
_SAVE_AFTER = 300  # seconds: a checkpoint is never older, whatever the steps between two
_RECORD_AFTER = 5  # steps taken one kernel at a time before the step is recorded: all is compiled by then
_SEED_STRIDE = 1_000_003  # keeps the noise of neighbouring seeds apart


@dataclasses.dataclass(frozen=True)
class Options:
    """What a run takes beside its preset: how long, where, how it is saved."""

    minutes: float | None = None  # a wall-clock budget in place of the preset's steps
    stop_at: int | None = None  # leave after this step, to go on later; the schedule does not change
    anneal: int | None = None  # end so many steps after being resumed, the rate falling to zero
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    compile: bool = torch.cuda.is_available()
    save_every: int = 10_000
    compact: bool = False
    largest: int | None = None  # bytes a checkpoint file may have
    tensorboard: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.minutes is not None and not self.minutes > 0:
            raise MaskobanError(f"the training time must be above 0 minutes, not {self.minutes:g}")
        if self.stop_at is not None and self.stop_at < 1:
            raise MaskobanError(f"a run can be left after step 1 or later, not {self.stop_at}")
        if self.anneal is not None and self.anneal < 1:
            raise MaskobanError(f"annealing takes 1 step or more, not {self.anneal}")
        if self.save_every < 1:
            raise MaskobanError(f"saving takes place every 1 step or more, not {self.save_every}")


class Trainer:
    """One run in one folder: ``state*.safetensors``, ``log.jsonl`` and the boards it drew on the way."""

    def __init__(
        self, preset: Preset, corpus: Tokens, held_out: Tokens, folder: Path, options: Options | None = None,
        processes: Processes | None = None,
    ) -> None:  # fmt: skip
        self.preset, self.folder, self.options = preset, folder, options or Options()
        self.processes = processes or Processes()
        self.part = self.processes.part(preset.batch)
        try:
            self.device = torch.device(self.options.device)
            self.network = new_network(preset).to(self.device).compute_in(_PRECISIONS[preset.precision])
            if self.device.index is not None and self.device.type == "cuda":
                torch.cuda.set_device(self.device)  # kernels are launched on the current one
        except (RuntimeError, AssertionError) as error:
            raise MaskobanError(
                f"no device {self.options.device!r} here: {str(error).splitlines()[0]}"
            ) from error
        self.network.start_at(self.part.start)
        prove_kernels(self.network, self.part.stop - self.part.start, backward=True)
        self.corpus = self._cells(corpus, "the training corpus")
        self.held_out = self._cells(held_out, "the held-out corpus")[: preset.validation_boards]
        if len(self.held_out) > preset.batch:  # whole batches, as in training
            self.held_out = self.held_out[: len(self.held_out) // preset.batch * preset.batch]
        if len(self.corpus) < preset.batch:
            raise MaskobanError(
                f"the training corpus has {len(self.corpus)} boards, fewer than one batch of {preset.batch}"
            )
        if preset.corruption == "exact" and preset.diffusion_steps % self.network.cells:
            raise MaskobanError(
                f"diffusion_steps is {preset.diffusion_steps}, and {self.network.cells} cells are drawn: some numbers "
                f"of hidden cells would be learned more often than others; set diffusion_steps={self.network.cells}"
            )
        self._corpus_hash = sha256(self.corpus.cpu().numpy().tobytes()).hexdigest()[:16]
        if len(self.held_out) == 0:
            raise MaskobanError("there are no held-out boards to measure the validation loss on")
        curves = self.options.tensorboard and self.processes.first
        self.journal = Journal(folder, self.options.quiet, curves)
        self.optimizers = self._optimizers()
        self.average = Average(self.network, preset.ema)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=preset.precision == "fp16")
        self.progress = Progress()
        self.before = Progress()  # of the runs whose weights this one started from
        self.ending: Ending | None = None
        self.share = torch.tensor(masked_share(preset.schedule, preset.diffusion_steps), device=self.device)
        self.weights = torch.tensor(
            weights(preset.schedule, preset.diffusion_steps, preset.weight_cap), device=self.device
        )
        self.rarity = torch.tensor(rarity(preset.diffusion_steps, preset.time_power), device=self.device)
        self.loss = compiled(self._loss) if self.options.compile else self._loss
        self._epoch, self._order = -1, torch.empty(0)
        self._recorded: RecordedStep | None = None
        self._losses: list[Tensor] = []  # of the steps since the last note
        self._taken = 0

    # -- what a run is made of

    def _cells(self, boards: Tokens, what: str) -> Tensor:
        """The cells the network draws, on the device, after checking that the rest is as it assumes."""
        inside = drawn_part(boards, self.network, what, f"the preset {self.preset.name!r}")
        if (boards >= MASK).any():
            raise MaskobanError(
                f"{what} has masked cells, board {int(np.argmax((boards >= MASK).any((1, 2))))} first"
            )
        whole = boards.reshape(-1, self.network.height * self.network.width)
        border = np.delete(whole, drawn_cells(self.network), axis=1)
        if (border != WALL).any():
            first = int(np.argmax((border != WALL).any(1)))
            raise MaskobanError(
                f"{what} has a border that is not all wall, in board {first}; this network needs one"
            )
        return torch.from_numpy(np.ascontiguousarray(inside)).to(self.device)

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        preset = self.preset
        # Stacks of matrices are the blocks'; biases and norms of the paper's blocks are stacks of vectors.
        matrices = [p for p in self.network.parameters() if p.ndim >= 3 and p.shape[-2] > 2]
        rest = list(self.network.parameters())
        on_cuda = self.device.type == "cuda"
        optimizers: dict[str, torch.optim.Optimizer] = {}
        if preset.optimizer == "muon":
            rate = self._rate(preset.muon_learning_rate)
            optimizers["muon"] = StackedMuon(matrices, rate, preset.muon_momentum)
            taken = set(matrices)
            rest = [p for p in rest if p not in taken]
        optimizers["adamw"] = torch.optim.AdamW(
            rest, self._rate(preset.learning_rate), preset.betas, weight_decay=preset.weight_decay,
            fused=on_cuda, capturable=on_cuda,
        )  # fmt: skip
        return optimizers

    def _rate(self, value: float) -> float | Tensor:
        """A learning rate: on a CUDA device a tensor, which a recorded step reads anew each time."""
        return torch.tensor(value, device=self.device) if self.device.type == "cuda" else value

    def _noise(self, boards: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """What is random in the loss of these boards: times, a number a cell, and what dropout follows from."""
        preset = self.preset
        power = preset.time_power if self.network.training else 1.0  # held-out losses compare across powers
        t = draw_times(len(boards), preset.diffusion_steps, preset.stratified, boards.device, power)
        return t, torch.rand(boards.shape, device=boards.device), self.network.draw_seeds()

    def _loss(self, boards: Tensor, t: Tensor, noise: Tensor, seeds: Tensor | None) -> Tensor:
        """The objective on one batch, corruption included: the whole of it is compiled into one step.

        In training, noise is drawn for every board, so that it does not depend on which process holds which,
        and the loss is that of this process's part.
        """
        preset, training = self.preset, self.network.training
        if preset.corruption == "exact":
            corrupted = hide_exactly(boards, t, preset.diffusion_steps, noise)
        else:
            corrupted = hide_independently(boards, t, self.share, noise)
        if training:
            boards, corrupted = boards[self.part], corrupted.part(self.part)
        when = corrupted.t if self.network.timed else None
        logits = self.network(corrupted.tokens, when, seeds=seeds)
        return objective(logits, boards, corrupted, self.weights * self.rarity if training else self.weights)

    def _batch(self, step: int) -> Tensor:
        """Batch number ``step``: every epoch is a new order of the corpus, the incomplete last batch left out."""
        per_epoch = len(self.corpus) // self.preset.batch
        epoch, place = divmod(step, per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self.preset.seed * _SEED_STRIDE + epoch)
            self._order = torch.randperm(len(self.corpus), generator=generator).to(self.device)
            self._epoch = epoch
        rows = self._order[place * self.preset.batch : (place + 1) * self.preset.batch]
        return self.corpus[rows].long()

    def share_done(self) -> float:
        return share_done(self.preset, self.progress, self.options.minutes, self.ending)

    def rate_factor(self) -> float:
        return rate_factor(self.preset, self.progress, self.options.minutes, self.ending)

    def _steps_left(self) -> bool:
        return self.share_done() < 1.0 and self.progress.step < (self.options.stop_at or math.inf)

    # -- running

    def run(self) -> None:
        """Train to the end of the budget (or to ``stop_at``), saving on the way and when interrupted."""
        try:
            if self.processes.first:
                self._train_and_tell()
            else:
                self._train()
        except KeyboardInterrupt:  # on all processes, by agreement
            self.processes.wait()
            raise
        self.processes.wait()

    def _train_and_tell(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.journal.note({"event": "resume" if self.progress.step else "start", **self._circumstances()})
            try:
                self._train()
            except KeyboardInterrupt:
                self.save()
                self.journal.note({"event": "interrupted", "step": self.progress.step})
                self.journal.say(f"interrupted at step {self.progress.step}; saved in {self.folder}")
                raise
            self.save()
            self.journal.note(
                {"event": "end", "step": self.progress.step, "minutes": self.progress.seconds / 60}
            )
        except OSError as error:  # a full disk, above all; the last checkpoint is whole
            raise MaskobanError(
                f"{error.filename or self.folder}: cannot be written: {error.strerror}"
            ) from error
        finally:
            self.journal.close()

    def _train(self) -> None:
        if self.share_done() >= 1.0 and self.processes.first:
            self.journal.say(f"the run in {self.folder} has ended, at step {self.progress.step}")
        if (self.options.compile or self.device.type == "cuda") and self._steps_left():
            self.processes.together(self.prove)
        # Several processes must leave after the same step, so Ctrl-C waits until they have agreed on which.
        if self.processes.count > 1:
            with uninterrupted() as pressed:
                self._take_steps(pressed)
        else:
            self._take_steps(pressed=[])

    def prove(self) -> float | None:
        """Hold the step, compiled and with fused kernels, against the same in plain torch; returns how far it is off.

        Plain torch takes more memory than the step does: None where the device has not enough for it.
        """
        torch.manual_seed(self.preset.seed)
        self.network.train()
        boards = self._batch(self.progress.step)
        noise = self._noise(boards)
        # Much of a gradient is too small for fp16.
        louder = 1024.0 if self.preset.precision == "fp16" else 1.0
        try:
            off = prove_gradients(
                self.network,
                new_network(self.preset),
                lambda: louder * self.loss(boards, *noise),
                lambda: louder * self._loss(boards, *noise),
            )
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            self.journal.say("the training step is not proved: too little memory for the plain one")
            return None
        if self.processes.first:
            self.journal.note({"event": "proved", "step": self.progress.step, "gradients_off": round(off, 5)})
        return off

    def _take_steps(self, pressed: list[int]) -> None:
        clock = saved = time.perf_counter()
        while self._steps_left():
            with uninterrupted():
                loss = self.step()
                self.progress.step += 1
                if self.processes.first:
                    self._losses.append(loss)
            step = self.progress.step
            if step % _READ_EVERY == 0 and self.device.type == "cuda":
                torch.cuda.synchronize()  # or the clock would run ahead of the device
            now = time.perf_counter()
            seconds = self.progress.seconds + (now - clock)
            self.progress.seconds, stop = self.processes.agree(seconds, bool(pressed))
            clock = now
            if stop:
                raise KeyboardInterrupt
            if not self.processes.first:
                continue
            if step % _READ_EVERY == 0:
                rate = self.rate_factor()
                minutes = self.progress.seconds / 60
                self.journal.say_live(
                    f"step {step}  {minutes:.1f} min  loss {loss.item():.4f}  rate x{rate:.3f}"
                )
            if step % self.preset.validate_every == 0:
                self._note_losses()
            if step % self.preset.sample_every == 0:
                self.sample()
            if step % self.options.save_every == 0 or time.perf_counter() - saved > _SAVE_AFTER:
                self.save()
                saved = time.perf_counter()
            clock = time.perf_counter()  # measuring and saving do not count as training
        # A run that was interrupted while it measured for the last time does that when it is resumed.
        if self.processes.first and self.share_done() >= 1.0:
            noted = self.journal.noted(self.progress.step)
            if "valid" not in noted:
                self._note_losses()
            if "boards" not in noted:
                self.sample()

    def _note_losses(self) -> None:
        """The mean of the steps' losses since the last note, if there were any, and the held-out boards'."""
        record: dict[str, Any] = {"step": self.progress.step, "minutes": round(self.progress.seconds / 60, 4)}
        if self._losses:
            record["train"] = round(torch.stack(self._losses).mean().item(), 5)
            self._losses = []
        record["valid"] = round(self.validate(), 5)
        self._refuse_to_go_on(record.get("train", 0.0), record["valid"])
        self.journal.note(record | {"rate": round(self.rate_factor(), 5)})

    def _refuse_to_go_on(self, *losses: float) -> None:
        """A run whose loss is no number any more is over, and must not replace the checkpoint of when it was one."""
        if not all(map(math.isfinite, losses)):
            self._end_diverged("the loss is no number")

    def _end_diverged(self, what: str) -> NoReturn:
        raise MaskobanError(
            f"{what} any more at step {self.progress.step}: training has diverged; "
            f"a checkpoint from before stays in {self.folder}, if there was one"
        )

    def step(self) -> Tensor:
        """One optimiser step; returns its loss, still on the device."""
        torch.manual_seed(self.preset.seed * _SEED_STRIDE + self.progress.step)
        self._set_rates(self.rate_factor())
        boards = self._batch(self.progress.step)
        if self._recorded is not None:
            loss = self._recorded(boards)
        else:
            loss = self._update(boards)
            self._taken += 1
            alone = self.processes.count == 1 and not self.scaler.is_enabled()
            recordable = self.options.compile and self.device.type == "cuda" and alone
            if recordable and self._taken == _RECORD_AFTER:
                self._recorded = RecordedStep(self._update, boards)
                if not self._recording_is_right(boards):
                    self._recorded = None
                    self.journal.note({"event": "not recorded", "step": self.progress.step})
        self.average.follow(self.progress.step)
        return loss

    @torch.no_grad()
    def _recording_is_right(self, boards: Tensor) -> bool:
        """Whether the recorded step has the gradients of the step it was recorded from; takes neither."""
        assert self._recorded is not None
        moments = [v for o in self.optimizers.values() for state in o.state.values() for v in state.values()]
        held = [*self.network.parameters(), *(v for v in moments if torch.is_tensor(v))]
        kept = [value.clone() for value in held]

        def gradients(take: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
            torch.manual_seed(self.preset.seed)
            with torch.enable_grad():
                take(boards)
            found = present_gradients(self.network)
            for value, before in zip(held, kept, strict=True):
                value.copy_(before)
            return found

        # The recording first: it writes to the gradients it was recorded with, which the step then replaces.
        return alike(gradients(self._recorded), gradients(self._update))

    def _set_rates(self, factor: float) -> None:
        for key, optimizer in self.optimizers.items():
            base = self.preset.muon_learning_rate if key == "muon" else self.preset.learning_rate
            for group in optimizer.param_groups:
                if torch.is_tensor(group["lr"]):
                    group["lr"].fill_(base * factor)
                else:
                    group["lr"] = base * factor

    def _update(self, boards: Tensor) -> Tensor:
        """Loss, gradients and the optimisers' steps for one batch."""
        self.network.train()
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss(boards, *self._noise(boards))
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        loss = loss.detach()
        self.processes.average([loss, *(p.grad for p in self.network.parameters() if p.grad is not None)])
        if self.preset.clip is not None:
            for optimizer in self.optimizers.values():
                self.scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.preset.clip)
        for optimizer in self.optimizers.values():
            self.scaler.step(optimizer)
        self.scaler.update()
        return loss

    @torch.no_grad()
    def validate(self) -> float:
        """The objective on held-out boards, with the same noise every time and no dropout."""
        with self._judging():
            losses = []
            for start in range(0, len(self.held_out), self.preset.batch):
                torch.manual_seed(start)
                boards = self.held_out[start : start + self.preset.batch].long()
                losses.append(self.loss(boards, *self._noise(boards)).item())
            return sum(losses) / len(losses)

    def sample(self) -> None:
        """Draw fresh boards, keep them in the run's folder and, where the solver is built, judge them."""
        with self._judging():
            n = self.preset.sample_boards
            steps, schedule = self.preset.diffusion_steps, self.preset.schedule
            denoiser = TorchDenoiser(self.network, steps, batch=min(1024, n), schedule=schedule)
            boards = draw(denoiser, blank(denoiser, n), seed=self.preset.seed).boards
        path = self.folder / f"boards-{self.progress.step:07d}.npy"
        with whole_file(path) as file:
            np.save(file, boards)
        record: dict[str, Any] = {"step": self.progress.step, "boards": path.name}
        record["walls"] = round(float((boards == WALL).sum((1, 2)).mean()), 3)
        self.journal.note(record | judged(boards))

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """While measuring: evaluation mode, and the averaged weights in place of the raw ones."""
        try:
            self.average.use(True)
            self.network.eval()
            yield
        finally:
            self.average.use(False)
            self.network.train()

    # -- keeping

    def save(self) -> None:
        self.average.use(False)  # Ctrl-C may have come while measuring
        if not torch.stack([p.isfinite().all() for p in self.network.parameters()]).all():
            self._end_diverged("some weights are no numbers")
        with uninterrupted():
            save_checkpoint(
                self.folder, self.preset, self.progress, self.network, self.average.weights, self.optimizers,
                {
                    "scaler": self.scaler.state_dict(),
                    "minutes": self.options.minutes,
                    "corpus": self._corpus_hash,
                    "ending": self.ending and dataclasses.asdict(self.ending),
                    "before": dataclasses.asdict(self.before),
                    "losses": torch.stack(self._losses).tolist() if self._losses else [],
                },
                self.options.compact, self.options.largest,
            )  # fmt: skip

    def resume(self) -> Trainer:
        """Go on from the folder's checkpoint."""
        read = self.processes.from_first(lambda: load_checkpoint(self.folder))
        tensors, preset, self.progress, extra = read
        changed = [
            f.name
            for f in dataclasses.fields(Preset)
            if getattr(preset, f.name) != getattr(self.preset, f.name) and f.name not in MEASURING
        ]
        if changed:
            raise MaskobanError(f"{self.folder}: that run has other settings: {', '.join(changed)} differ")
        if extra.get("corpus", self._corpus_hash) != self._corpus_hash:
            raise MaskobanError(f"{self.folder}: that run learned from other boards")
        minutes = extra.get("minutes", self.options.minutes)
        if self.options.minutes not in (None, minutes):
            had = "no minutes" if minutes is None else f"{minutes:g} minutes"
            raise MaskobanError(f"{self.folder}: that run's schedule has {had}, not {self.options.minutes:g}")
        self.options = dataclasses.replace(self.options, minutes=minutes)
        self._end_early(extra.get("ending"))
        self.before = Progress(**extra.get("before", {}))
        self._losses = [torch.tensor(loss, device=self.device) for loss in extra.get("losses", [])]
        self.average.restore(tensors)
        load_weights(self.network, tensors, "net.")
        for key, optimizer in self.optimizers.items():
            restore_optimizer(key, optimizer, self.network, tensors)
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(extra["scaler"])
        return self

    def _end_early(self, begun: dict[str, Any] | None) -> None:
        """Go on with the last steps that were ``begun``, or begin them where the options ask for them."""
        asked = self.options.anneal
        if begun is not None:
            self.ending = Ending(**begun)
            if asked not in (None, self.ending.steps):
                raise MaskobanError(
                    f"{self.folder}: that run is ending already, in {self.ending.steps} steps, not {asked}"
                )
        elif asked is not None:
            if self.share_done() >= 1.0:
                raise MaskobanError(f"{self.folder}: that run has ended; there is no rate left to let fall")
            left = self.preset.steps - self.progress.step
            if self.options.minutes is None and asked > left:
                raise MaskobanError(f"{self.folder}: that run ends by itself in {left} steps, before {asked}")
            self.ending = Ending(self.progress.step, asked, self.rate_factor())
            if self.processes.first:
                self._keep_as_it_is()

    def _keep_as_it_is(self) -> None:
        """A copy of the run in a folder of its own, from where it can go on by its schedule after all."""
        aside = self.folder / f"before-annealing-{self.progress.step}"
        with said(aside, "written"):
            aside.mkdir(exist_ok=True)
            for file in (*self.folder.glob("state*.safetensors"), *self.folder.glob("log.jsonl")):
                shutil.copy(file, aside)
        self.journal.say(f"the run as it was is in {aside}")

    def start_from(self, source: str | Path) -> Trainer:
        """Begin a new run, with its own schedule, from another run's weights, or from a model's.

        Hidden units that were left out of a model come back as they are in a new network, and add nothing as yet.
        """
        tensors, _, trained, extra = self.processes.from_first(lambda: load_checkpoint(named_folder(source)))
        new = {name: value.clone() for name, value in self.network.state_dict().items()}
        restore_network(self.network, tensors)
        if isinstance(self.network, InteriorNetwork):
            up = self.network.up.data
            up.copy_(torch.where((up == 0).all(-1, keepdim=True), new["up"], up))
        earlier = Progress(**extra.get("before", {}))
        self.before = Progress(trained.step + earlier.step, trained.seconds + earlier.seconds)
        return self

    def _circumstances(self) -> dict[str, Any]:
        machine = (
            torch.cuda.get_device_name()
            if self.device.type == "cuda"
            else platform.processor() or platform.machine()
        )
        return {
            "settings": dataclasses.asdict(self.preset),
            "options": dataclasses.asdict(self.options),
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "processes": self.processes.count,
            "corpus": len(self.corpus),
            "held_out": len(self.held_out),
            "from_step": self.progress.step,
            "before": self.before.step,
            "corpus_hash": self._corpus_hash,
            "versions": {
                "maskoban": maskoban.__version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
            },
            "machine": machine,
        }


def judged(boards: Tokens) -> dict[str, float]:
    """Solvable share of some boards, or nothing where the native solver is not built."""
    try:
        from maskoban.solving.picking import PICKING
        from maskoban.solving.solver import solve_many
    except ImportError:
        return {}
    return {"solvable": round(float(solve_many(boards, solutions=False, limits=PICKING).solved.mean()), 5)}
