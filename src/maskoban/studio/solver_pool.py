"""A pool of solver processes in two lanes, so that quick boards never wait for slow ones.

Every search first runs in the quick lane, for a tenth of a second. A search that is not decided by then runs again in
the slow lane, with its full time. A client that leaves frees its place, and when too many jobs wait, new ones are
refused.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from maskoban.errors import MaskobanError
from maskoban.studio import limits
from maskoban.studio.limits import Broken, Busy
from maskoban.studio.worker import Job

#: Seconds of a search in the quick lane, and of any other job there.
QUICK_SEARCH, QUICK_JOB = 0.1, 5.0

#: Bytes of one answer: a converted collection is the largest.
MAX_ANSWER = 16_000_000


class Worker:
    """A solver process; it is started with its first job, and again after one that was ended."""

    command = (sys.executable, "-m", "maskoban.studio.worker")

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._unread = 0  # lines: that it has started, and answers to jobs whose clients have left

    async def start(self) -> None:
        """Start the process, if it is not running, and wait until it has loaded the solver."""
        async with self._starting:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                self._process = await asyncio.create_subprocess_exec(
                    *self.command, stdin=pipe, stdout=pipe, limit=MAX_ANSWER
                )
                self._unread = 1
                await self._last_line()

    async def run(self, job: Job, patient: bool) -> Job:
        """The answer to a job. When its client leaves, the process is ended, unless it is ``patient``."""
        try:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._unread += 1
            await self._process.stdin.drain()
            answer: Job = json.loads(await self._last_line())
            return answer
        except asyncio.CancelledError:
            if not patient:
                await self.end()
            raise

    async def _last_line(self) -> bytes:
        line = b""
        while self._unread:
            assert self._process is not None
            assert self._process.stdout is not None
            line = await self._process.stdout.readuntil(b"\n")
            self._unread -= 1
        return line

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def end(self) -> None:
        """End the process, and wait until it has ended."""
        self.kill()
        process, self._process = self._process, None
        if process is not None:
            await process.wait()


class Lane:
    """A few workers with one job each; other jobs wait in order.

    In a ``patient`` lane a job whose client leaves runs to its end, because it is shorter than the start of a new
    process.
    """

    def __init__(self, size: int, patient: bool) -> None:
        self.patient, self.workers = patient, [Worker() for _ in range(size)]
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()
        self._stopped = False
        for worker in self.workers:
            self._idle.put_nowait(worker)

    async def run(self, job: Job, deadline: float) -> Job | None:
        """The answer, or None if it takes more seconds than ``deadline``."""
        worker = await self._idle.get()
        try:
            if self._stopped:
                raise Busy(limits.STOPPING)
            await worker.start()
            return await asyncio.wait_for(worker.run(job, self.patient), deadline)
        except TimeoutError:
            await worker.end()
            return None
        except (ConnectionError, EOFError, asyncio.LimitOverrunError):
            await worker.end()
            if self._stopped:
                raise Busy(limits.STOPPING) from None
            raise Broken("the solver process has ended unexpectedly") from None
        finally:
            self._idle.put_nowait(worker)

    def stop(self) -> None:
        """End all jobs, and take no more."""
        self._stopped = True
        for worker in self.workers:
            worker.kill()


class SolverPool:
    """Both lanes; at most ``capacity`` jobs wait or run."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.jobs = capacity, 0
        self.quick, self.slow = Lane(2, patient=True), Lane(2, patient=False)

    async def run(self, kind: str, **job: Any) -> Job:
        """The answer to a job of this kind (see worker.py). One of many searches may end at ``LONG_SECONDS``."""
        job["kind"] = kind
        found: Job | None
        if kind in ("solve", "rate"):
            found = await self._search(job, job["seconds"])
        elif kind in ("repair", "picture"):
            found = await self._run(
                self.slow, {**job, "seconds": limits.LONG_SECONDS / 4}, limits.LONG_SECONDS
            )
        else:
            found = await self._run(self.quick, job, QUICK_JOB)
        if found is None and kind == "repair":
            reason = f"time limit of {limits.LONG_SECONDS:g} seconds reached"
            return {"verdict": "unknown", "reason": reason, "walls": [], "limit_hit": "time", "board": None}
        if found is None:
            raise MaskobanError("this took too long; send less at a time")
        if "refused" in found:
            raise MaskobanError(found["refused"])
        return found

    async def _search(self, job: Job, seconds: float) -> Job:
        quick = {**job, "seconds": min(seconds, QUICK_SEARCH), "megabytes": 64}
        found = await self._run(self.quick, quick, QUICK_JOB)
        if (found is None or found.get("limit_hit") is not None) and seconds > QUICK_SEARCH:
            # A rating is three searches; the rest of the deadline is for the start of a process.
            found = await self._run(self.slow, job, 3 * seconds + QUICK_JOB)
        if found is None:
            raise Broken("the search did not end at its time limit")
        return found

    async def _run(self, lane: Lane, job: Job, deadline: float) -> Job | None:
        if self.jobs >= self.capacity:
            raise Busy(limits.FULL.format("solver"))
        most = {
            "megabytes": limits.MEGABYTES,
            "max_levels": limits.MAX_LEVELS,
            "max_letters": limits.MAX_LETTERS,
            "max_moves": limits.MAX_MOVES,
        }
        self.jobs += 1
        try:
            return await lane.run(most | job, deadline)
        finally:
            self.jobs -= 1

    async def warm(self) -> None:
        """Start the processes of the quick lane now."""
        for worker in self.quick.workers:
            await worker.start()

    def stop(self) -> None:
        """End all jobs, and take no more; the clients get an error."""
        self.quick.stop()
        self.slow.stop()

    async def close(self) -> None:
        """End all jobs and processes."""
        self.stop()
        await asyncio.gather(*(worker.end() for worker in self.quick.workers + self.slow.workers))
