"""Networks under ONNX Runtime: what an installed maskoban samples with. No torch."""

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

from maskoban._util.cpu import cpu_count
from maskoban.boards.tiles import Tokens
from maskoban.diffusion.card import Card
from maskoban.errors import MaskobanError

#: Boards a core evaluates at once: few enough that a layer's activations stay in its cache.
BOARDS_PER_CORE = 4


class OnnxSession:
    """An exported graph with its metadata (``facts``). Its weights file must lie beside it.

    Boards are divided among ``threads``, all cores by default. Each thread evaluates its boards alone: ONNX Runtime's
    own threads wait for each other after every operator, which on a busy machine is most of the time.

    >>> OnnxSession(Path("model.onnx"), threads=1).facts["name"]  # doctest: +SKIP
    'best'
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.path, self.threads = path.absolute(), threads or cpu_count()
        self._pool, self._process = self._new_pool(), os.getpid()
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self.facts: dict[str, Any] = json.loads(
                self._session.get_modelmeta().custom_metadata_map["maskoban"]
            )
        except Exception as error:  # ONNX Runtime's exceptions have no other common base
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise MaskobanError(f"{path}: not a model maskoban can load: {reason}") from error

    def inputs(self) -> dict[str, list[Any]]:
        """The graph's inputs by name, each with its shape."""
        return {node.name: node.shape for node in self._session.get_inputs()}

    def __reduce__(self) -> tuple[Any, ...]:
        return OnnxSession, (self.path, self.threads)

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="evaluating")

    def run(self, feed: Mapping[str, NDArray[np.int64]], boards: int, at_once: int) -> NDArray[np.float32]:
        """The graph's output for so many boards; a thread evaluates at most ``at_once`` of them together."""
        size = min(at_once, -(-boards // self.threads))
        parts = [slice(i, i + size) for i in range(0, boards, size)]

        def evaluate(part: slice) -> NDArray[np.float32]:
            (output,) = self._session.run(None, {name: array[part] for name, array in feed.items()})
            result: NDArray[np.float32] = output
            return result

        if self._process != os.getpid():  # threads do not survive a fork
            self._pool, self._process = self._new_pool(), os.getpid()
        in_threads = map if self.threads == 1 else self._pool.map
        return np.concatenate(list(in_threads(evaluate, parts)))


class OnnxDenoiser:
    """An exported ``model.onnx`` as a :class:`~maskoban.diffusion.denoiser.Denoiser`.

    A conditional one (``corpora``) is a :class:`~maskoban.diffusion.conditions.ConditionalNet` instead.
    """

    overlap = 1

    def __init__(self, path: Path, threads: int | None = None, batch: int = 16) -> None:
        self._session = OnnxSession(path, threads)
        self.facts = self._session.facts
        try:
            card = Card.from_facts(self.facts)
        except MaskobanError as error:
            raise MaskobanError(f"{path}: not a model maskoban can load: {error}") from None
        expected = {"tokens", "cells", *(["t"] if card.timed else [])}
        if card.corpora:
            expected |= {"where", "conditions"}
        inputs = self._session.inputs()
        if inputs.keys() != expected or not (card.corpora or inputs["tokens"][1:] == [card.cells]):
            raise MaskobanError(
                f"{path}: not a model maskoban can load: its metadata describes {card.cells} cells and the "
                f"inputs {', '.join(sorted(expected))}, its graph has {inputs}"
            )
        self.height, self.width, self.margin = card.height, card.width, card.margin
        self.steps, self.schedule, self.timed = card.diffusion_steps, card.schedule, card.timed
        self.corpora = (card.corpora or "").split(",")
        self.batch = max(batch, BOARDS_PER_CORE * self._session.threads)

    def logits(self, tokens: Tokens, t: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of the given cells."""
        feed = {"tokens": tokens.astype(np.int64), "cells": np.ascontiguousarray(cells)}
        if self.timed:
            feed["t"] = t
        return self.evaluate(feed)

    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Logits of the cells asked for, from the inputs of the graph by name."""
        return self._session.run(feed, len(feed["tokens"]), BOARDS_PER_CORE)


class OnnxCritic:
    """An exported ``critic.onnx`` as a :class:`~maskoban.diffusion.denoiser.Critic`.

    That of a conditional model is a :class:`~maskoban.diffusion.conditions.ConditionalCritic` instead.

    >>> OnnxCritic(Path("critic.onnx")).scores(np.zeros((2, 64), np.uint8)).shape  # doctest: +SKIP
    (2,)
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self._session = OnnxSession(path, threads)
        self.facts = self._session.facts

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        """Scores of finished boards, (n, interior cells) to (n,)."""
        return self.evaluate({"tokens": tokens.astype(np.int64)})

    def evaluate(self, feed: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        """Scores of finished boards, from the inputs of the graph by name.

        Boards are evaluated one by one: matrix products of another size may round differently, and a score must not
        depend on the rest of the batch.
        """
        if not len(feed["tokens"]):
            return np.zeros(0, np.float32)
        return self._session.run(feed, len(feed["tokens"]), at_once=1)
