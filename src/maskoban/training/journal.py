"""What a run tells of itself: notes in its ``log.jsonl``, TensorBoard events, lines on the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from maskoban.boards.errors import MaskobanError

#: The numbers of a note that become TensorBoard's curves.
_CURVES = ("train", "valid", "rate", "walls", "solvable")


class Journal:
    """The journal of the run in one folder, which need not be there before the first note.

    >>> import tempfile; journal = Journal(Path(tempfile.mkdtemp()), quiet=True)
    >>> journal.note({"step": 4, "valid": 0.5}); sorted(journal.noted(step=4))
    ['step', 'valid']
    """

    def __init__(self, folder: Path, quiet: bool = False, tensorboard: bool = False) -> None:
        self._log, self._quiet = folder / "log.jsonl", quiet
        self._curves = open_tensorboard(folder) if tensorboard else None

    def note(self, record: dict[str, Any]) -> None:
        """One more line of the log; an event is told nowhere else."""
        with open(self._log, "ab+") as log:
            log.seek(max(log.tell() - 1, 0))
            half = log.read(1) not in (b"", b"\n")  # what a killed run left of a line spoils no other
            log.write(b"\n" * half + json.dumps(record).encode() + b"\n")
        if "event" in record:
            return
        if self._curves is not None:
            for name in _CURVES:
                if name in record:
                    self._curves.add_scalar(name, record[name], record["step"])
        self.say("  ".join(f"{k} {v}" for k, v in record.items()))

    def noted(self, step: int) -> set[str]:
        """What the log tells of this step, as it was reached last."""
        noted: set[str] = set()
        for line in self._log.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # the half line of a full disk; no reason to lose the run now
                continue
            if "from_step" in entry and entry["from_step"] < step:
                noted.clear()
            elif "event" not in entry and entry["step"] == step:
                noted |= entry.keys()
        return noted

    def say(self, line: str) -> None:
        """A line on the terminal, in place of the live one."""
        self._print(line, end="\n")

    def say_live(self, line: str) -> None:
        """The line that the next takes the place of. It is for terminals; files get the notes alone."""
        if sys.stderr.isatty():
            self._print(line, end="")

    def _print(self, line: str, end: str) -> None:
        if not self._quiet:
            clear = "\r\033[K" if sys.stderr.isatty() else ""
            print(clear + line, end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._curves is not None:
            self._curves.close()


def open_tensorboard(folder: Path) -> Any:
    """A writer of TensorBoard events into the run's folder; the package is asked for only here."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MaskobanError("TensorBoard events need its package: pip install tensorboard") from error
    return SummaryWriter(str(folder))
