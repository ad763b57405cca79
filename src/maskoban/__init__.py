"""Draw, complete, prove, repair, rate and play Sokoban boards.

>>> import maskoban
>>> level = maskoban.Level.parse('''
... ######
... #@$ .#
... ######
... ''')
>>> maskoban.solve(level).solution
'RR'
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; importing typing would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from maskoban.boards import Level, read, write
    from maskoban.diffusion.loading import load
    from maskoban.errors import MaskobanError
    from maskoban.solving import Limits, rate, solve, solve_many
    from maskoban.solving.repair import repair

    __version__: str

# Where each name comes from. Nothing is imported before it is used, so that `import maskoban` costs nothing
# and what needs no model never loads one.
_HOMES = {
    "Level": "maskoban.boards",
    "MaskobanError": "maskoban.errors",
    "read": "maskoban.boards",
    "write": "maskoban.boards",
    "load": "maskoban.diffusion.loading",
    "Limits": "maskoban.solving",
    "rate": "maskoban.solving",
    "repair": "maskoban.solving",
    "solve": "maskoban.solving",
    "solve_many": "maskoban.solving",
}

# What can be reached as maskoban.boards and so on, also where nobody has imported it yet.
_PARTS = {
    "boards",
    "nn",
    "bulk",
    "diffusion",
    "environment",
    "evaluation",
    "pictures",
    "solving",
    "studio",
    "training",
}

__all__ = [
    "Level",
    "Limits",
    "MaskobanError",
    "__version__",
    "load",
    "rate",
    "read",
    "repair",
    "solve",
    "solve_many",
    "write",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        return _version()
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PARTS:
        return import_module(f"maskoban.{name}")
    raise AttributeError(f"module 'maskoban' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("maskoban")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0+source"
