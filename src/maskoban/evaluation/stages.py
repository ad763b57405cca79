"""Work in stages, each kept in a folder once it is done, so that interrupted work resumes.

A stage is kept together with its inputs (settings, and the hash of the boards), and made again when any of them has
changed: the same command again makes nothing, and a different one never reuses what does not belong to it.
"""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from maskoban._util.files import atomic_file

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


class Stages:
    """Named results in a folder; ``say`` gets a line for each."""

    def __init__(self, folder: str | Path, say: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self._say = Path(folder), say
        self.folder.mkdir(parents=True, exist_ok=True)

    def value(self, name: str, inputs: Mapping[str, Any], kind: type[T], make: Callable[[], T]) -> T:
        """What ``make`` returns, a value of the type ``kind``, made once.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stages = Stages(folder)
        ...     [stages.value("sum", {"of": 3}, int, lambda: 3 + each) for each in (0, 1)]
        [3, 3]
        """
        arrays = self.arrays(name, inputs, lambda: {"json": np.array(json.dumps(plain(make())))})
        result: T = from_plain(kind, json.loads(str(arrays["json"])))
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
        self._say(f"{name} ...")
        start = time.perf_counter()
        arrays = make()
        self._say(f"{name}: {time.perf_counter() - start:.1f} s")
        with atomic_file(path) as file:
            np.savez_compressed(file, inputs=np.array(wanted), **arrays)  # type: ignore[arg-type]
        return arrays


def plain(value: Any) -> Any:
    """Dataclasses, mappings and arrays as JSON has them.

    >>> from maskoban.evaluation.measures.share import share_of
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


def from_plain(kind: Any, data: Any) -> Any:
    """The value of a type whose `plain` form this is. Fields that a dataclass does not have are left out.

    >>> from_plain(dict[int, float | None], {"250": 1.5, "500": None})
    {250: 1.5, 500: None}
    """
    origin, of = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if data is None and NoneType in of:
            return None
        return from_plain(next(each for each in of if each is not NoneType), data)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = (each.name for each in fields(kind) if each.name in data)
        return kind(**{name: from_plain(hints[name], data[name]) for name in known})  # type: ignore[operator]
    if origin is list:
        return [from_plain(of[0], each) for each in data]
    if origin is dict:
        return {from_plain(of[0], key): from_plain(of[1], each) for key, each in data.items()}
    return kind(data) if kind in (int, float) else data


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
