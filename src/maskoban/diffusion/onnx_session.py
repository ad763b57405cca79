"""A graph of ours under ONNX Runtime, its boards shared out among threads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from maskoban.boards.errors import MaskobanError
from maskoban.cores import cores


class OnnxSession:
    """An exported graph; the weights it names must lie beside it. ``facts`` is what is known of its model.

    Boards are shared out among ``threads``, all cores by default, each of which evaluates its boards alone: ONNX
    Runtime's own threads would wait for each other after every operator, which on a busy machine is most of the time.

    >>> OnnxSession(Path("model.onnx"), threads=1).facts["name"]  # doctest: +SKIP
    'best'
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.path, self.threads = path.absolute(), threads or cores()
        self._pool, self._process = self._new_pool(), os.getpid()
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

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxSession, (self.path, self.threads)

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="evaluating")

    def run(self, feed: Mapping[str, NDArray[np.int64]], boards: int, most: int) -> NDArray[np.float32]:
        """The graph's output for so many boards, at most ``most`` of them evaluated at once by a thread."""
        share = min(most, -(-boards // self.threads))
        shares = [slice(i, i + share) for i in range(0, boards, share)]

        def evaluate(part: slice) -> NDArray[np.float32]:
            (output,) = self._session.run(None, {name: array[part] for name, array in feed.items()})
            result: NDArray[np.float32] = output
            return result

        if self._process != os.getpid():  # threads do not survive a fork
            self._pool, self._process = self._new_pool(), os.getpid()
        side_by_side = map if self.threads == 1 else self._pool.map
        return np.concatenate(list(side_by_side(evaluate, shares)))
