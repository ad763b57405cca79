"""The log of a run: records in ``log.jsonl``, TensorBoard events, lines on the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from maskoban._util.files import file_errors
from maskoban._util.signals import defer_interrupt
from maskoban.errors import MaskobanError

#: The values of a record that become TensorBoard curves.
_CURVES = ("train", "valid", "rate", "walls", "solvable")


class RunLog:
    """The log of the run in one folder, which must exist when the first record is written.

    Ctrl-C waits until a record or a line is written, so that none is torn.

    >>> import tempfile; log = RunLog(Path(tempfile.mkdtemp()), quiet=True)
    >>> log.record({"step": 4, "valid": 0.5}); sorted(log.recorded(step=4))
    ['step', 'valid']
    """

    def __init__(self, folder: Path, quiet: bool = False, tensorboard: bool = False) -> None:
        self._path, self._quiet = folder / "log.jsonl", quiet
        self._curves: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise MaskobanError("TensorBoard events need its package: pip install tensorboard") from error
            self._curves = SummaryWriter(str(folder))

    def record(self, values: dict[str, Any]) -> None:
        """Append a record. Measurements also go to TensorBoard and the terminal; events do not."""
        with defer_interrupt():
            with file_errors(self._path, "written"), open(self._path, "ab+") as file:
                file.seek(max(file.tell() - 1, 0))
                torn = file.read(1) not in (b"", b"\n")  # a killed run may leave half a line
                file.write(b"\n" * torn + json.dumps(values).encode() + b"\n")
            if "event" in values:
                return
            if self._curves is not None:
                for name in _CURVES:
                    if name in values:
                        self._curves.add_scalar(name, values[name], values["step"])
            self.say("  ".join(f"{k} {v}" for k, v in values.items()))

    def recorded(self, step: int) -> set[str]:
        """The names of all values recorded at this step since the run last came from before it."""
        names: set[str] = set()
        for line in self._path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # half a line
                continue
            if "from_step" in entry and entry["from_step"] < step:
                names.clear()
            elif "event" not in entry and entry["step"] == step:
                names |= entry.keys()
        return names

    def say(self, line: str) -> None:
        """Print a line to standard error, in place of the live one."""
        self._print(line + "\n")

    def say_live(self, line: str) -> None:
        """Print a line that the next one replaces. Only terminals show it."""
        if sys.stderr.isatty():
            self._print(line)

    def _print(self, text: str) -> None:
        if not self._quiet:
            clear = "\r\033[K" if sys.stderr.isatty() else ""
            with defer_interrupt():
                sys.stderr.write(clear + text)
                sys.stderr.flush()

    def close(self) -> None:
        if self._curves is not None:
            self._curves.close()
