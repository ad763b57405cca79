"""Named extension points, and the plugins that add to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Generic, TypeVar

from maskoban.errors import MaskobanError

T = TypeVar("T")

#: An environment variable: modules, or paths of ``.py`` files, separated as in ``PATH``.
PLUGINS = "MASKOBAN_PLUGINS"


class Registry(Generic[T]):
    """Values of one kind by name: the package's own, and those that plugins register.

    A name that is not known makes the plugins load. So every command, and every process that a command starts,
    finds what the modules in ``MASKOBAN_PLUGINS`` register.

    >>> colours = Registry[int]("colour", {"red": 1})
    >>> colours.register("blue", 2); list(colours), colours["blue"]
    (['red', 'blue'], 2)
    >>> colours["green"]
    Traceback (most recent call last):
        ...
    maskoban.errors.MaskobanError: colour: expected one of red, blue, got 'green'
    """

    def __init__(self, kind: str, values: dict[str, T] | None = None) -> None:
        self._kind, self._values = kind, dict(values or {})

    def register(self, name: str, value: T) -> None:
        if name in self._values:
            raise MaskobanError(f"a {self._kind} is already called {name!r}")
        self._values[name] = value

    def __contains__(self, name: object) -> bool:
        if name not in self._values:
            load_plugins()
        return name in self._values

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise MaskobanError(f"{self._kind}: expected one of {', '.join(self._values)}, got {name!r}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(self._values)


def load_plugins() -> None:
    """Import what ``MASKOBAN_PLUGINS`` lists. A second call imports nothing again."""
    for source in filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)):
        name, path = source, Path(source).resolve()
        if path.suffix == ".py":
            name = path.stem
            if str(path.parent) not in sys.path:
                sys.path.append(str(path.parent))
        try:
            import_module(name)
        except ImportError as error:
            raise MaskobanError(f"{PLUGINS}: {source} cannot be imported: {error}") from error
