"""The models in the package: their names, and where they lie."""

from __future__ import annotations

from pathlib import Path

WEIGHTS = Path(__file__).parents[1] / "weights"


def shipped() -> list[str]:
    """The names of the models in the package.

    >>> shipped()
    ['best', 'paper']
    """
    return sorted(path.parent.name for path in WEIGHTS.glob("*/model.onnx"))


def shipped_folder(source: object) -> Path | None:
    """Where the model lies whose bare name this is; None of anything else: ``"./best"`` and ``Path("best")`` are paths.

    >>> shipped_folder("./best") is None
    True
    """
    return WEIGHTS / source if isinstance(source, str) and source in shipped() else None
