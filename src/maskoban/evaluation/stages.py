"""Work in stages, each kept in a folder once it is done: what was interrupted goes on where it stopped.

A stage is kept together with what it was made from (settings, and the hash of the boards). When any of that has
changed it is made again; so a second run of the same command makes nothing, and a different one never
reuses what does not belong to it.
"""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maskoban._util.files import atomic_file

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


class Stages:
    """Named results in a folder; ``say`` is told what becomes of each."""

    def __init__(self, folder: str | Path, say: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder, self._say = Path(folder), say
        self.folder.mkdir(parents=True, exist_ok=True)

    def numbers(self, name: str, inputs: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """What ``make`` returns (a dataclass or plain values), as plain values, made once.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stages = Stages(folder)
        ...     [stages.numbers("sum", {"of": 3}, lambda: 3 + each) for each in (0, 1)]
        [3, 3]
        """
        path, wanted = self.folder / f"{name}.json", plain(inputs)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = None
        if isinstance(kept, dict) and "result" in kept and kept.get("inputs") == wanted:
            self._say(f"{name}: as before")
            return kept["result"]
        result = plain(self._made(name, make))
        with atomic_file(path) as file:
            file.write(json.dumps({"inputs": wanted, "result": result}, ensure_ascii=False).encode())
        return result

    def arrays(self, name: str, inputs: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """The arrays that ``make`` returns by name, made once.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Stages(folder).arrays("ones", {}, lambda: {"ones": np.ones(2)})
        {'ones': array([1., 1.])}
        """
        path, wanted = self.folder / f"{name}.npz", json.dumps(plain(inputs), sort_keys=True)
        try:
            with np.load(path) as file:
                if str(file["inputs"]) == wanted:
                    self._say(f"{name}: as before")
                    return {key: file[key] for key in file if key != "inputs"}
        except (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile):
            pass
        arrays = self._made(name, make)
        with atomic_file(path) as file:
            np.savez_compressed(file, inputs=np.array(wanted), **arrays)
        return arrays

    def _made(self, name: str, make: Callable[[], T]) -> T:
        self._say(f"{name} ...")
        start = time.perf_counter()
        result = make()
        self._say(f"{name}: {time.perf_counter() - start:.1f} s")
        return result


def plain(value: Any) -> Any:
    """Dataclasses and mappings as JSON has them, so that a result is the same new and read again.

    >>> from maskoban.evaluation.shares import share_of
    >>> plain({250: share_of(0, 1)})
    {'250': {'count': 0, 'total': 1, 'share': 0.0, 'low': 0.0, 'high': 0.7934506856227626}}
    """
    return json.loads(json.dumps(value, default=_as_json))


def _as_json(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"no JSON for {type(value)}")


def fingerprint(*arrays: NDArray[Any] | None) -> str:
    """A hash of arrays' contents and shapes.

    >>> fingerprint(np.zeros((1, 2))) == fingerprint(np.zeros((2, 1)))
    False
    """
    digest = sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
