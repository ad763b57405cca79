"""Training and drawing on one accelerator: where the rate of the matrix units goes.

    python benchmarks/device.py            everything, as a table
    python benchmarks/device.py --profile  also the kernels one training step of the small net spends its time in

Every rate is beside the rate of a large bf16 matrix product measured in the same run. Runs from a source
checkout: PYTHONPATH=src, torch and NumPy are enough. Random boards: the arithmetic does not depend on them.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from maskoban.boards.tiles import WALL
from maskoban.diffusion.denoiser import blank_boards
from maskoban.diffusion.trajectory import sample_boards
from maskoban.nn.networks import Network
from maskoban.nn.runtime import TorchDenoiser
from maskoban.nn.self_test import kernel_self_test
from maskoban.training.checkpoint import new_network
from maskoban.training.config import BEST, PAPER, Preset
from maskoban.training.options import TrainOptions
from maskoban.training.trainer import Trainer

SMALL = dataclasses.replace(BEST, name="interior 4.7M", blocks=6)


def boards(n: int) -> np.ndarray:
    made = np.random.default_rng(0).integers(0, 5, (n, 10, 10)).astype(np.uint8)
    made[:, [0, -1]] = WALL
    made[:, :, [0, -1]] = WALL
    return made


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median time of one call, measured over the second half of many."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times[repeats // 2 :]))


def products(preset: Preset, cells: int) -> float:
    """Floating-point operations of one forward pass a token: weight products and attention."""
    d = preset.d
    return 2.0 * preset.blocks * (4 * d * d + 2 * d * preset.hidden + 2 * cells * d)


def ceiling() -> float:
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    return 2 * 8192**3 / seconds(lambda: a @ b, 20)


def say_checked(network: Network, boards: int, backward: bool) -> None:
    """A kernel that is wrong ends the benchmark here: there is no use in timing it."""
    found = kernel_self_test(network, boards, backward)
    print("relative errors:", ", ".join(f"{name} {off:.1e}" for name, off in found.items()), flush=True)


def training(preset: Preset, top: float, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            preset, boards(200_000), boards(4096), Path(folder), TrainOptions(device="cuda", compile=True)
        )

        def several() -> None:
            for _ in range(10):
                trainer.train_step()

        say_checked(trainer.network, preset.batch, backward=True)
        start = time.perf_counter()
        print(f"gradients off plain torch's: {trainer.check_step() or float('nan'):.1e} at most", flush=True)
        several()
        torch.cuda.synchronize()
        compiling = time.perf_counter() - start
        step = seconds(several, 10) / 10
        tokens = preset.batch * trainer.network.cells / step
        rate = 3 * products(preset, trainer.network.cells) * tokens
        print(
            f"train {preset.name:14} {step * 1e3:6.2f} ms a step  {tokens / 1e6:5.2f} M tokens/s  "
            f"{rate / 1e12:4.0f} TFLOP/s  {rate / top:.0%} of a large product  (compiled in {compiling:.0f} s)",
            flush=True,
        )
        if profile:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as report:
                several()
                torch.cuda.synchronize()
            print(
                report.key_averages().table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=90)
            )


def drawing(preset: Preset, top: float, batch: int) -> None:
    network = new_network(preset).cuda().compute_in(torch.bfloat16).eval()
    say_checked(network, batch, backward=False)
    denoiser = TorchDenoiser(network, preset.diffusion_steps, batch, compiled=True)
    start = blank_boards(denoiser, 8 * batch)
    sample_boards(denoiser, start[:1], 0)  # compiles
    rate = len(start) / seconds(lambda: sample_boards(denoiser, start, 0), 2)
    work = products(preset, network.cells) * network.cells * network.cells
    print(
        f"draw  {preset.name:14} {rate:6.0f} boards/s, one reveal a step, {batch} at once  "
        f"(as if all cells were computed: {rate * work / 1e12:.0f} TFLOP/s, {rate * work / top:.0%})",
        flush=True,
    )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--profile", action="store_true")
    profile = p.parse_args().profile
    torch.set_float32_matmul_precision("high")
    top = ceiling()
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}: a large bf16 product {top / 1e12:.0f} TFLOP/s"
    )
    training(SMALL, top, profile)
    training(PAPER, top, profile)
    training(BEST, top, False)
    for batch in (512, 2048, 8192):
        drawing(SMALL, top, batch)
    drawing(BEST, top, 2048)


if __name__ == "__main__":
    main()
