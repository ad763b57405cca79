"""Sampling on a CPU: the shipped model against the obvious torch loop, in one run.

    python benchmarks/sampling.py [--boards 32] [--rounds 7]

The obvious loop is the paper's Algorithm 2 as one would write it: torch's own encoder layers in fp32 over 100
tokens, 100 steps, logits for every cell at every step, as many parameters as the shipped model was trained with. Ours
samples the 64 interior cells in 64 steps under ONNX Runtime, computes the last block only where a cell is revealed and
divides the boards among the cores. Both run in turns on the same cores; every step of either costs the same, so a few
of each are enough. Measure on a quiet machine: on a busy one the ratios come out larger. The gain of int8 depends on
the CPU's instruction set, which is printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from maskoban.diffusion.loading import model_folder
from maskoban.diffusion.onnx import OnnxDenoiser
from maskoban.diffusion.sampler import sample_tiles, softmax


class ObviousNetwork(nn.Module):
    """Embeddings, torch's encoder, a linear head."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.token, self.row, self.column = nn.Embedding(8, 256), nn.Embedding(10, 256), nn.Embedding(10, 256)
        self.time = nn.Sequential(nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 256))
        layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.1, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        self.head = nn.Linear(256, 7)

    def forward(self, tokens: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        cell = torch.arange(100)
        angle = t[:, None] * 10000 ** (-torch.arange(0, 256, 2) / 256)
        time_ = self.time(torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        x = self.token(tokens) + self.row(cell // 10) + self.column(cell % 10) + time_[:, None]
        return self.head(self.blocks(x))


def obvious_steps(network: ObviousNetwork, boards: int) -> Callable[[], None]:
    x = torch.full((boards, 100), 7)
    order = torch.rand(boards, 100).argsort(1)
    step = 0

    @torch.no_grad()
    def one() -> None:
        nonlocal step
        p = torch.softmax(network(x, torch.full((boards,), 100.0 - step)), -1)
        tiles = torch.multinomial(p.flatten(0, 1), 1).view(boards, 100)
        cell = order[:, step : step + 1]
        x.scatter_(1, cell, tiles.gather(1, cell))
        step = (step + 1) % 100

    return one


def our_steps(denoiser: OnnxDenoiser, boards: int) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    x = np.full((boards, 64), 7, np.uint8)
    order = rng.random((boards, 64)).argsort(1)
    step = 0

    def one() -> None:
        nonlocal step
        cell = order[:, step : step + 1]
        p = softmax(denoiser.logits(x, np.full(boards, 64 - step), cell), 1.0)
        np.put_along_axis(x, cell, sample_tiles(p, rng.random((boards, 1))).astype(np.uint8), 1)
        step = (step + 1) % 64

    return one


def instruction_set() -> str:
    """The widest set that int8 products use on this CPU, by /proc/cpuinfo."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    names = {"avx512_vnni": "AVX-512 VNNI", "avx_vnni": "AVX-VNNI", "avx512bw": "AVX-512", "avx2": "AVX2"}
    return next((name for flag, name in names.items() if flag in flags), "unknown")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--boards", type=int, default=32)
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    folder = model_folder("best")
    ours = {path.stem: OnnxDenoiser(path) for path in sorted(folder.glob("model*.onnx"))}
    parameters = next(iter(ours.values())).facts["parameters"]
    blocks = round(parameters / 789_760)
    network = ObviousNetwork(blocks).eval()
    theirs = sum(q.numel() for q in network.parameters())
    print(f"shipped: {parameters:,} parameters; obvious loop: {theirs:,} ({blocks} blocks)")
    print(f"instruction set: {instruction_set()}")
    runners = {"obvious torch loop": (obvious_steps(network, a.boards), 100)}
    runners |= {name: (our_steps(denoiser, a.boards), 64) for name, denoiser in ours.items()}
    times: dict[str, list[float]] = {name: [] for name in runners}
    for round_ in range(a.rounds + 1):
        for name, (one, _) in runners.items():
            start = time.perf_counter()
            one()
            if round_:  # the first round warms up
                times[name].append(time.perf_counter() - start)
    whole = {name: statistics.median(times[name]) * steps / a.boards for name, (_, steps) in runners.items()}
    for name, seconds in whole.items():
        ratio = whole["obvious torch loop"] / seconds
        print(f"{name:20} {seconds:6.2f} s a board ({a.boards} at once)   {ratio:4.1f}x")


if __name__ == "__main__":
    main()
