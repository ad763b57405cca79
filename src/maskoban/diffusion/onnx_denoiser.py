"""A network under ONNX Runtime, as a :class:`Denoiser`: what an installed maskoban draws with."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.boards.tiles import Tokens

#: Boards a core evaluates at once: few enough that a layer's activations stay in its cache.
SHARE = 4


class OnnxDenoiser:
    """An exported ``model.onnx``; the weights it names must lie beside it.

    Boards are shared out among ``threads``, all cores by default, each of which evaluates its boards alone: ONNX
    Runtime's own threads would wait for each other after every operator, which on a busy machine is most of the time.
    """

    overlap = 1

    def __init__(self, path: Path, threads: int | None = None, batch: int = 32) -> None:
        self._threads = threads or _cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="denoising")
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
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
        self.batch = max(batch, SHARE * self._threads)

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        feed = {"tokens": tokens.astype(np.int64), "cells": np.ascontiguousarray(cells)}
        if self.facts["timed"]:
            feed["t"] = t
        share = min(SHARE, -(-len(tokens) // self._threads))
        shares = [slice(i, i + share) for i in range(0, len(tokens), share)]

        def evaluate(part: slice) -> NDArray[np.float32]:
            (logits,) = self._session.run(None, {name: array[part] for name, array in feed.items()})
            result: NDArray[np.float32] = logits
            return result

        side_by_side = map if self._threads == 1 else self._pool.map
        return np.concatenate(list(side_by_side(evaluate, shares)))


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
