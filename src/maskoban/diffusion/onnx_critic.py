"""A critic under ONNX Runtime: what an installed maskoban judges its drawings with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.tiles import Tokens
from maskoban.diffusion.onnx_session import OnnxSession


class OnnxCritic:
    """An exported ``critic.onnx``, on all cores or on so many ``threads``.

    >>> OnnxCritic(Path("critic.onnx")).scores(np.zeros((2, 64), np.uint8)).shape  # doctest: +SKIP
    (2,)
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self._session = OnnxSession(path, threads)
        self.facts = self._session.facts

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores (n,) of finished boards (n, drawn cells).

        Boards are evaluated one by one: a product may round differently at another size, and a score must not depend
        on what is judged beside it.
        """
        if not len(tokens):
            return np.zeros(0, np.float32)
        return self._session.run({"tokens": tokens.astype(np.int64)}, len(tokens), most=1)
