"""A solver process that never finishes the board ENDLESS, however fast or slow the machine is."""

from __future__ import annotations

import threading

from maskoban.studio import worker

#: A board of 3x5 cells; the name says what this process does with it.
ENDLESS = "#####\n#@$.#\n#####"


def answer(job: worker.Job) -> worker.Job:
    """Answer a job as the real worker does, except for the endless board."""
    if job.get("board") != ENDLESS:
        return worker.answer(job)
    if job["megabytes"] == 64:  # in the quick lane: not decided in its short time
        return {"verdict": "unknown", "limit_hit": "time"}
    threading.Event().wait()
    raise AssertionError


if __name__ == "__main__":
    worker.main(answer)
