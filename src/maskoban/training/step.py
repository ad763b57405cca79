"""One training step: the loss, its gradients, the optimisers' updates. Compiled on CUDA and recorded as a graph."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskoban.diffusion.rng import uniforms
from maskoban.nn.networks import Network
from maskoban.training.checkpoint import new_network
from maskoban.training.compiling import RecordedStep, check_gradients, same_step
from maskoban.training.config import Preset
from maskoban.training.distributed import Processes
from maskoban.training.mixed import Batch, MixedLoss
from maskoban.training.objective import TrainingLoss
from maskoban.training.optim import build_optimizers

_RECORD_AFTER = 5  # updates before the step is recorded as a CUDA graph: all is compiled by then


class TrainStep:
    """``step(boards)`` updates the network and returns the loss, still on the device."""

    def __init__(
        self, network: Network, preset: Preset, processes: Processes, device: torch.device, compile: bool
    ) -> None:
        self.network, self.preset, self.processes = network, preset, processes
        objective: Any = MixedLoss if preset.network == "conditional" else TrainingLoss
        self.objective = objective(network, preset, processes.part(preset.batch), device)
        self.loss: Any = self.objective.compiled() if compile else self.objective.loss
        self.optimizers = build_optimizers(network, preset, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=preset.precision == "fp16")
        alone = processes.count == 1 and not self.scaler.is_enabled()
        self._to_record = compile and device.type == "cuda" and alone
        # One graph for each number of passes and each number of cells, in one pool of memory.
        self._recorded: dict[tuple[int | None, int], RecordedStep[Any]] = {}
        self._updates = Counter[tuple[int | None, int]]()
        self._pool: Any = None

    def passes(self, step: int) -> int | None:
        """The passes of a looped network in this step, where they vary: the same on all processes."""
        least, most = self.preset.least_passes, self.preset.passes
        if least is None:
            return None
        u = float(uniforms(self.preset.seed, np.array([step]), 0, 1)[0, 0])
        return least + int(u * (most - least + 1))

    def __call__(self, boards: Tensor | Batch, passes: int | None = None) -> Tensor:
        kind = passes, (boards if isinstance(boards, Tensor) else boards.tokens).shape[1]
        if kind in self._recorded:
            return self._recorded[kind](boards)
        loss = self.update(boards, passes)
        self._updates[kind] += 1
        if self._to_record and self._updates[kind] == _RECORD_AFTER:
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            update = partial(self.update, passes=passes)
            recorded = RecordedStep(update, boards, self._pool)
            if same_step(self.network, self.optimizers, recorded, update, boards, self.preset.seed):
                self._recorded[kind] = recorded
            else:
                warnings.warn(
                    "the recorded training step is wrong; training goes on without it", stacklevel=2
                )
        return loss

    def update(self, boards: Tensor | Batch, passes: int | None = None) -> Tensor:
        """The step as plain calls, not replayed."""
        self.network.train()
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss: Tensor = self.loss(boards, *self.objective.noise(boards), passes)
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

    def check(self, boards: Tensor | Batch) -> float:
        """The largest relative error of the compiled step's gradients against plain torch's."""
        torch.manual_seed(self.preset.seed)
        self.network.train()
        noise = self.objective.noise(boards)
        scale = 1024.0 if self.preset.precision == "fp16" else 1.0  # much of a gradient is too small for fp16
        least, most = self.preset.least_passes, self.preset.passes
        return max(
            check_gradients(
                self.network,
                new_network(self.preset),
                lambda: scale * self.loss(boards, *noise, passes),  # noqa: B023
                lambda: scale * self.objective.loss(boards, *noise, passes),  # noqa: B023
            )
            for passes in ([None] if least is None else range(least, most + 1))
        )
