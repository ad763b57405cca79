"""One training step: the loss, its gradients, the optimisers' updates. Compiled on CUDA and recorded as a graph."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from maskoban.nn.networks import Network
from maskoban.training.checkpoint import new_network
from maskoban.training.compiling import RecordedStep, check_gradients, compiled, same_step
from maskoban.training.config import Preset
from maskoban.training.distributed import Processes
from maskoban.training.objective import TrainingLoss
from maskoban.training.optim import build_optimizers

_RECORD_AFTER = 5  # updates before the step is recorded as a CUDA graph: all is compiled by then


class TrainStep:
    """``step(boards)`` updates the network and returns the loss, still on the device."""

    def __init__(
        self, network: Network, preset: Preset, processes: Processes, device: torch.device, compile: bool
    ) -> None:
        self.network, self.preset, self.processes = network, preset, processes
        self.objective = TrainingLoss(network, preset, processes.part(preset.batch), device)
        self.loss = compiled(self.objective.loss) if compile else self.objective.loss
        self.optimizers = build_optimizers(network, preset, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=preset.precision == "fp16")
        alone = processes.count == 1 and not self.scaler.is_enabled()
        self._to_record = compile and device.type == "cuda" and alone
        self._recorded: RecordedStep | None = None
        self._updates = 0

    def __call__(self, boards: Tensor) -> Tensor:
        if self._recorded is not None:
            return self._recorded(boards)
        loss = self.update(boards)
        self._updates += 1
        if self._to_record and self._updates == _RECORD_AFTER:
            recorded = RecordedStep(self.update, boards)
            if same_step(self.network, self.optimizers, recorded, self.update, boards, self.preset.seed):
                self._recorded = recorded
            else:
                warnings.warn(
                    "the recorded training step is wrong; training goes on without it", stacklevel=2
                )
        return loss

    def update(self, boards: Tensor) -> Tensor:
        """The step as plain calls, not replayed."""
        self.network.train()
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss(boards, *self.objective.noise(boards))
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

    def check(self, boards: Tensor) -> float:
        """The largest relative error of the compiled step's gradients against plain torch's."""
        torch.manual_seed(self.preset.seed)
        self.network.train()
        noise = self.objective.noise(boards)
        scale = 1024.0 if self.preset.precision == "fp16" else 1.0  # much of a gradient is too small for fp16
        return check_gradients(
            self.network,
            new_network(self.preset),
            lambda: scale * self.loss(boards, *noise),
            lambda: scale * self.objective.loss(boards, *noise),
        )
