"""Two hundred people at once: does the studio's server keep its promises under load?

python benchmarks/studio.py --seconds 20

Clients on this machine ask for solutions and drawings without pause, for a bounded time. Every answer is checked
against what the library itself says, so a lost or mixed-up one is found. A 503 is an honest answer, any other 5xx
is not. In the middle of a second, shorter round the server is killed and started again: nobody may get a wrong answer,
and the same clients must be served again afterwards. Numbers are for comparing the two kinds of request in one
run, not for comparing machines.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from maskoban.boards import Level
from maskoban.boards.synth import synthesize
from maskoban.diffusion.loading import load
from maskoban.solving import solve, solves

#: One drawing for so many solves: drawing a board takes a network some hundred evaluations.
SOLVES_A_DRAWING = 50

#: Seeds that drawings are asked for: few, so that what each must give can be known beforehand.
SEEDS = 4


@dataclass
class Tally:
    """What the clients saw."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"solve": [], "generate": []})
    wrong: list[str] = field(default_factory=list)


class Studio:
    """The server as people start it, in a process of its own."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "maskoban", "studio", "--no-browser", "--port", str(self.port)]
        began = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while True:
            try:
                if httpx.get(f"{self.address}/api/health", timeout=5).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.02)
        self.seconds_to_start = time.monotonic() - began

    def megabytes(self) -> float:
        """Resident memory of the server and its solver processes."""
        pids = [self.process.pid]
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        if children.exists():
            pids += [int(pid) for pid in children.read_text().split()]
        pages = 0
        for pid in pids:
            try:
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:
                continue  # ended in between, or a system without /proc
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def client(
    number: int, address: str, levels: list[Level], drawn: list[str], until: float, tally: Tally
) -> None:
    """One person who asks again as soon as there is an answer."""
    dice = random.Random(number)
    async with httpx.AsyncClient(base_url=address, timeout=60, verify=False) as connection:
        while time.monotonic() < until:
            kind = "generate" if dice.randrange(SOLVES_A_DRAWING) == 0 else "solve"
            which = dice.randrange(SEEDS if kind == "generate" else len(levels))
            asked = {"count": 1, "seed": which} if kind == "generate" else {"board": str(levels[which])}
            began = time.monotonic()
            try:
                answer = await connection.post(f"/api/{kind}", json=asked)
            except httpx.TransportError:
                tally.statuses["no answer"] += 1
                await asyncio.sleep(0.2)
                continue
            tally.statuses[str(answer.status_code)] += 1
            if answer.status_code == 200:
                tally.seconds[kind].append(time.monotonic() - began)
                found = answer.json()
                if kind == "generate":
                    right = found["seed"] == which and found["boards"][0]["board"] == drawn[which]
                else:
                    right = found["verdict"] == "solved" and solves(levels[which], found["solution"])
                if not right:
                    tally.wrong.append(f"{kind} {which}: {answer.text[:200]}")
            elif answer.status_code == 503:
                await asyncio.sleep(float(answer.headers["retry-after"]) * dice.uniform(0.5, 1))


async def crowd(
    studio: Studio, clients: int, seconds: float, levels: list[Level], drawn: list[str], restart: bool
) -> tuple[Tally, list[float]]:
    tally, memory = Tally(), []
    until = time.monotonic() + seconds
    people = [
        asyncio.create_task(client(number, studio.address, levels, drawn, until, tally))
        for number in range(clients)
    ]
    restarted = not restart
    while not all(person.done() for person in people):
        await asyncio.sleep(0.5)
        memory.append(studio.megabytes())
        if not restarted and time.monotonic() > until - seconds / 2:
            restarted = True
            studio.process.send_signal(signal.SIGKILL)
            studio.process.wait()
            await asyncio.to_thread(studio.start)
            tally.seconds = {"solve": [], "generate": []}  # from here on: those served by the new server
    await asyncio.gather(*people)
    return tally, memory


def told(name: str, tally: Tally, memory: list[float]) -> None:
    print(
        f"\n{name}: " + ", ".join(f"{count:,} x {status}" for status, count in tally.statuses.most_common())
    )
    for kind, seconds in tally.seconds.items():
        if seconds:
            marks = np.percentile(seconds, [50, 90, 99])
            line = ", ".join(
                f"p{q} {1000 * mark:,.0f} ms" for q, mark in zip((50, 90, 99), marks, strict=True)
            )
            print(f"  {kind}: {len(seconds):,} served, {line}")
    quarter = max(1, len(memory) // 4)
    print(f"  memory: {np.mean(memory[quarter : 2 * quarter]):.0f} MB in the second quarter, "
          f"{np.mean(memory[-quarter:]):.0f} MB in the last")  # fmt: skip
    print(f"  wrong or mixed-up answers: {len(tally.wrong)}")
    for sentence in tally.wrong[:5]:
        print(f"    {sentence}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    levels = [Level(board) for board in synthesize(200, seed=1)]
    levels = [level for level in levels if solve(level).solved]
    drawn = [str(load().generate(1, seed=seed)[0]) for seed in range(SEEDS)]
    studio = Studio()
    print(f"started in {studio.seconds_to_start:.2f} s")
    try:
        first = asyncio.run(crowd(studio, options.clients, options.seconds, levels, drawn, restart=False))
        told(f"{options.clients} clients for {options.seconds:g} s", *first)
        second = asyncio.run(crowd(studio, options.clients, options.seconds, levels, drawn, restart=True))
        told("the same, the server killed and started again half way", *second)
    finally:
        studio.process.terminate()
        studio.process.wait()
    bad = [
        status for tally, _ in (first, second) for status in tally.statuses if status not in ("200", "503")
    ]
    if first[0].wrong or second[0].wrong or set(bad) - {"no answer"} or first[0].statuses["no answer"]:
        sys.exit("the studio did not keep its promises")
    print("\nevery answer was right or an honest 503; those asked during the restart simply got none")


if __name__ == "__main__":
    main()
