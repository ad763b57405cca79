"""Datasets whose processes are killed again and again, compared byte by byte with an undisturbed one.

    python benchmarks/bulk_killing.py --model small --steps 8 --count 100000
    python benchmarks/bulk_killing.py --model small --steps 8 --count 2000 --engines local --kills 2

Each engine makes the dataset once undisturbed and once with SIGKILL at random moments, on the first process and on one
of its workers in turns. A pool ends when a worker dies, and Ray starts another; what ended is started again, each time
with another number of workers. Linux only: it finds the workers in /proc.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Scene:
    """A dataset made by one engine, and the processes that were killed meanwhile."""

    engine: str
    out: Path
    options: list[str]
    dice: random.Random
    messages: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def start(self, workers: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "maskoban", "bulk", "--out", str(self.out), "--engine", self.engine]
        command += ["--workers", str(workers), *self.options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def undisturbed(self, workers: int) -> float:
        """Make it; returns the seconds it took."""
        start = time.perf_counter()
        self._end(self.start(workers), wanted=0)
        return time.perf_counter() - start

    def with_kills(self, shards: int, kills: int, pause: float = 0.3) -> None:
        """Make it with so many kills, each at a random number of finished shards and a moment later."""
        moments = sorted(self.dice.uniform(0, 0.8 * shards) for _ in range(kills))
        maker = self.start(self.dice.randint(1, 3))
        for number, moment in enumerate(moments):
            while len(list(self.out.glob("data/*.parquet"))) < moment and maker.poll() is None:
                time.sleep(0.01)
            time.sleep(self.dice.uniform(0, pause))
            on_worker = number % 2 == 0
            if self._kill(maker, on_worker):
                self._end(maker, wanted=2 if on_worker else -signal.SIGKILL)
                maker = self.start(self.dice.randint(1, 3))
        self._end(maker, wanted=0)

    def _kill(self, maker: subprocess.Popen[str], on_worker: bool) -> bool:
        """Kill the first process or one of its workers; returns whether the first ends by that."""
        victims = workers_of(maker.pid) if on_worker else [maker.pid]
        while not victims and maker.poll() is None:  # none was started yet
            time.sleep(0.05)
            victims = workers_of(maker.pid)
        if maker.poll() is not None:
            raise SystemExit(f"{self.engine}: ended with {maker.returncode} before it could be killed")
        victim = self.dice.choice(victims)
        self.killed.append(name_of(victim) if on_worker else "the first process")
        os.kill(victim, signal.SIGKILL)
        return not on_worker or self.engine == "local"

    def _end(self, maker: subprocess.Popen[str], wanted: int) -> None:
        _, said = maker.communicate()
        if maker.returncode != wanted:
            raise SystemExit(f"{self.engine}: ended with {maker.returncode}, not {wanted}: {said}")
        if said and wanted == 2:
            self.messages.append(said.strip())


def workers_of(pid: int) -> list[int]:
    """The workers under this process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # gone meanwhile
                continue
    under = {pid}
    while more := {child for child, parent in parents.items() if parent in under} - under:
        under |= more
    named = {child: name_of(child) for child in under - {pid}}
    return sorted(c for c, name in named.items() if name.startswith(("a process", "ray::Map")))


def name_of(pid: int) -> str:
    """The name of a worker."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
    return "a process of the pool" if "multiprocessing.spawn import spawn_main" in line else line


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def verdict(same: bool) -> str:
    return "the same bytes" if same else "OTHER BYTES"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="best")
    p.add_argument("--count", type=int, default=100_000)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--shard-size", type=int)
    p.add_argument("--engines", nargs="+", default=["local", "ray"])
    p.add_argument("--kills", type=int, default=6, help="under each engine")
    p.add_argument("--seed", type=int, default=0, help="of the moments")
    p.add_argument("--folder", type=Path, help="where the datasets stay; a temporary one by default")
    a = p.parse_args()
    options = ["--model", a.model, "--count", str(a.count), "--steps", str(a.steps), "--seed", "7"]
    options += ["--shard-size", str(a.shard_size)] if a.shard_size else []
    place = a.folder or Path(tempfile.mkdtemp(prefix="bulk-killing-"))
    dice = random.Random(a.seed)
    reference: dict[str, bytes] = {}
    try:
        for engine in a.engines:
            calm = Scene(engine, place / f"{engine}-calm", options, dice)
            seconds = calm.undisturbed(workers=2)
            if not reference:
                reference = contents(calm.out)
            shards = sum(name.startswith("data/") for name in reference)
            size = sum(map(len, reference.values())) / 1e6
            same = contents(calm.out) == reference
            rate = f"{a.count:,} boards in {seconds:.0f} s, {a.count / seconds:.0f} a second"
            print(
                f"{engine}, undisturbed: {rate}; {shards} shards, {size:.1f} MB; {verdict(same)}", flush=True
            )
            hard = Scene(engine, place / f"{engine}-killed", options, dice)
            hard.with_kills(shards, a.kills)
            unscathed = contents(hard.out) == reference
            victims = ", ".join(hard.killed)
            print(f"{engine}, killed {len(hard.killed)} times ({victims}): {verdict(unscathed)}", flush=True)
            for message in sorted(set(hard.messages)):
                print(f"  message: {message}", flush=True)
            if not (same and unscathed and len(hard.killed) == a.kills):
                raise SystemExit(1)
    finally:
        if a.folder is None:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
