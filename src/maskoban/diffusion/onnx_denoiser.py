"""A network under ONNX Runtime, as a :class:`Denoiser`: what an installed maskoban draws with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import Tokens


class OnnxDenoiser:
    """An exported ``model.onnx``; the weights it names must lie beside it."""

    overlap = 1

    def __init__(self, path: Path, threads: int | None = None, batch: int = 32) -> None:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self.facts: dict[str, Any] = json.loads(
                self._session.get_modelmeta().custom_metadata_map["maskoban"]
            )
        except Exception as error:  # ONNX Runtime's own exceptions share no base but this
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise MaskobanError(f"{path}: not a model maskoban can load: {reason}") from error
        self.height, self.width = self.facts["height"], self.facts["width"]
        self.margin, self.steps = self.facts["margin"], self.facts["diffusion_steps"]
        self.batch = batch

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        feed = {"tokens": tokens.astype(np.int64), "cells": np.ascontiguousarray(cells)}
        if self.facts["timed"]:
            feed["t"] = t
        (logits,) = self._session.run(None, feed)
        result: NDArray[np.float32] = logits
        return result
