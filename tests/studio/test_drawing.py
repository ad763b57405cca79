"""How the studio draws, without a server around it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskoban.boards import Tokens
from maskoban.diffusion.model import Model
from maskoban.studio.drawing import Reveal, drawn
from tests.studio.serving import Known, known_model


class Never:
    """A critic that keeps nothing."""

    def scores(self, tokens: Tokens) -> NDArray[np.float32]:
        return np.full(len(tokens), -np.inf, np.float32)


def test_who_watches_sees_the_first_attempt() -> None:
    model, told = Model(Known(), {"name": "known", "critic": 1.0}, critic=Never()), list[Reveal]()
    boards = drawn(model, None, 2, 5, 1.0, None, told.append)
    expected = known_model().generate(2, seed=5)
    assert list(map(str, boards)) == list(map(str, expected))
    assert [(reveal.step, reveal.steps) for reveal in told] == [(step, 64) for step in range(1, 65)]
