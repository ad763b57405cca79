"""Muon's orthogonalisation on a CPU in fp32 and in bf16: CPU milliseconds a step, one thread.

    python benchmarks/muon.py

For the matrices of the presets `tiny` and `best`. Times are the best of several runs, taken in turns.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import torch

from maskoban.nn.networks import build_network
from maskoban.training.config import BEST, TINY
from maskoban.training.optim import orthogonalise

RUNS = 9


def milliseconds(stacks: list[torch.Tensor]) -> float:
    start = time.process_time()
    for stack in stacks:
        orthogonalise(stack)
    return 1000 * (time.process_time() - start)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cpu = Path("/proc/cpuinfo")
    known = {
        name
        for name in ("avx512_bf16", "amx_bf16", "bf16")
        if cpu.exists() and name in cpu.read_text().split()
    }
    print(f"torch {torch.__version__}, instructions for bf16: {', '.join(sorted(known)) or 'none'}")
    for preset in (TINY, BEST):
        shapes = [matrix.shape for matrix in build_network(asdict(preset)).matrices()]
        fp32 = [torch.randn(shape).flatten(0, -3) for shape in shapes]
        bf16 = [stack.bfloat16() for stack in fp32]
        times = [(milliseconds(fp32), milliseconds(bf16)) for _ in range(RUNS)]
        best = [min(column) for column in zip(*times, strict=True)]
        print(f"{preset.name}: fp32 {best[0]:.1f} ms, bf16 {best[1]:.1f} ms a step")


if __name__ == "__main__":
    main()
