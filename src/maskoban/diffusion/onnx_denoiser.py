"""A network under ONNX Runtime, as a :class:`Denoiser`: what an installed maskoban draws with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import Tokens
from maskoban.diffusion.onnx_session import OnnxSession
from maskoban.diffusion.schedule import Schedule

#: Boards a core evaluates at once: few enough that a layer's activations stay in its cache.
SHARE = 4


class OnnxDenoiser:
    """An exported ``model.onnx``, on all cores or on so many ``threads``."""

    overlap = 1

    def __init__(self, path: Path, threads: int | None = None, batch: int = 16) -> None:
        self._session = OnnxSession(path, threads)
        self.facts = self._session.facts
        try:
            self.height, self.width = self.facts["height"], self.facts["width"]
            self.margin, self.steps = self.facts["margin"], self.facts["diffusion_steps"]
            self.timed = self.facts["timed"]
            self.schedule: Schedule = self.facts.get("schedule", "linear")
        except (KeyError, TypeError) as error:
            raise MaskobanError(
                f"{path}: not a model maskoban can load: nothing in it says {error}"
            ) from None
        self.batch = max(batch, SHARE * self._session.threads)

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        feed = {"tokens": tokens.astype(np.int64), "cells": np.ascontiguousarray(cells)}
        if self.timed:
            feed["t"] = t
        return self._session.run(feed, len(tokens), SHARE)
