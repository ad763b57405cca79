"""Solver work for many people at once: a short wait for quick boards, whatever others have asked for.

Every search is tried in the quick lane first, for a blink. What is not decided by then moves to the slow lane
with the time it was given. So slow boards only ever wait for slow boards. Whoever leaves frees the
place at once, and when too many wait, newcomers are told so.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from maskoban.boards import MaskobanError
from maskoban.studio.refusals import Broken, Busy
from maskoban.studio.worker import Job

#: Seconds a search may take in the quick lane, and a job of any other kind there.
BLINK = 0.1
QUICK_DEADLINE = 5.0

#: Bytes of one answer: a converted collection is the largest.
MAX_ANSWER = 16_000_000


class Worker:
    """A running solver process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls) -> Worker:
        """A process that will take jobs as soon as it has loaded the solver."""
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "maskoban.studio.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MAX_ANSWER,
            )
        )

    async def ask(self, job: Job) -> Job:
        """The answer to a job."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(job).encode() + b"\n")
            await stdin.drain()
            line = await stdout.readline()
        except (ConnectionError, ValueError) as error:
            raise Broken("the solver process has ended unexpectedly") from error
        if not line.endswith(b"\n"):
            raise Broken("the solver process has ended unexpectedly")
        answer: Job = json.loads(line)
        return answer

    async def end(self) -> None:
        """End the process now, whatever it is doing."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


class Lane:
    """A few workers, each with one job at a time; jobs wait in the order they came.

    ``patient`` says what becomes of a job whose asker left: a patient lane lets it finish, because its jobs
    are shorter than the start of a new process; the other ends it.
    """

    def __init__(self, size: int, patient: bool) -> None:
        self.patient = patient
        self._idle: asyncio.Queue[Worker | None] = asyncio.Queue()  # None: a place without a process yet
        self._running: set[asyncio.Task[Job]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._stopped = False
        for _ in range(size):
            self._idle.put_nowait(None)

    async def run(self, job: Job, deadline: float) -> Job | None:
        """The answer, or None when the deadline passed first."""
        place = await self._idle.get()
        if self._stopped:
            self._idle.put_nowait(place)
            raise Busy.stopping()
        task = asyncio.create_task(self._work(place, job, deadline))
        self._running.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            if self._stopped and task.cancelled():
                raise Busy.stopping() from None
            if not self.patient:
                task.cancel()
            raise

    def _finished(self, task: asyncio.Task[Job]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains when the asker has left

    async def _work(self, worker: Worker | None, job: Job, deadline: float) -> Job:
        fit = False
        try:
            if worker is None:
                worker = await Worker.start()
            answer = await asyncio.wait_for(worker.ask(job), deadline)
            fit = True
            return answer
        finally:
            if worker is not None and not fit:
                ending = asyncio.create_task(worker.end())
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
            self._idle.put_nowait(worker if fit else None)

    async def warm(self) -> None:
        """Start every process now, so that nobody waits for it later."""
        places = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        for place in places:
            self._idle.put_nowait(place or await Worker.start())

    def stop(self) -> None:
        """End all jobs, and take no more."""
        self._stopped = True
        for task in list(self._running):
            task.cancel()

    async def close(self) -> None:
        """End all jobs and processes."""
        self.stop()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*self._ending)
        while not self._idle.empty():
            if worker := self._idle.get_nowait():
                await worker.end()


class Searches:
    """Where the server takes its solver work; at most ``capacity`` jobs wait or run."""

    def __init__(self, capacity: int = 64, megabytes: int = 256) -> None:
        self.capacity, self.megabytes = capacity, megabytes
        self.inside = 0
        self.quick, self.slow = Lane(2, patient=True), Lane(2, patient=False)

    async def search(self, job: Job, seconds: float) -> Job:
        """A solve or a rating, given up on after ``seconds``."""
        brief = {**job, "seconds": min(seconds, BLINK), "megabytes": 64}
        found = await self._admitted(self.quick, brief, QUICK_DEADLINE)
        cut_short = found is None or "limit of" in found.get("reason", "")
        if cut_short and seconds > BLINK:
            full = {**job, "seconds": seconds, "megabytes": self.megabytes}
            # A rating is two searches; beyond their own limits lies only the start of the process.
            found = await self._admitted(self.slow, full, 2 * seconds + QUICK_DEADLINE)
        if found is None:
            raise Broken("the search did not end when its time was over")
        return _accepted(found)

    async def long(self, job: Job, seconds: float) -> Job | None:
        """A job of many searches; None when the time for all of them is over."""
        full = {**job, "seconds": seconds / 4, "megabytes": self.megabytes}
        found = await self._admitted(self.slow, full, seconds)
        return None if found is None else _accepted(found)

    async def short(self, job: Job) -> Job:
        """A job without a search."""
        found = await self._admitted(self.quick, job, QUICK_DEADLINE)
        if found is None:
            raise MaskobanError(f"this took longer than {QUICK_DEADLINE:g} seconds; send less at a time")
        return _accepted(found)

    def stop(self) -> None:
        """End all jobs, and take no more; whoever waits is told so."""
        self.quick.stop()
        self.slow.stop()

    async def close(self) -> None:
        """End everything."""
        await self.quick.close()
        await self.slow.close()

    async def _admitted(self, lane: Lane, job: Job, deadline: float) -> Job | None:
        if self.inside >= self.capacity:
            raise Busy.crowded("solver")
        self.inside += 1
        try:
            return await lane.run(job, deadline)
        finally:
            self.inside -= 1


def _accepted(found: dict[str, Any]) -> Job:
    if "refused" in found:
        raise MaskobanError(found["refused"])
    return found
