"""Levels for hypothesis to try: any tiles, any size, any text that a level may carry."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from maskoban.boards import MASK, Level

#: Lines that mean something in one of the formats, and so must be kept apart from what they look like.
TRAPS = (
    "Title: x",
    "Author: y",
    "Comment:",
    "  Comment-End:",
    "Comment: z",
    "Solution",
    "Solution: rR",
    "rrRR",
    "; 12",
    ":: raw",
    "#####",
    "## x",
    "3#|2-",
    "...",
    "---",
    "?",
    "12",
    "<L>#</L> & ]]> \"'",
    "\ufeffmark",
    "a\tb",
    "  indented",
    "",
)

_any_text = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), max_size=12
)
one_line = st.one_of(st.just(""), st.sampled_from(TRAPS), _any_text)
comments = st.lists(one_line, max_size=5).map("\n".join)
solutions = st.lists(st.text("lurdLURD", min_size=1, max_size=230), max_size=2).map(tuple)


def boards(max_side: int = 7, most: int = MASK) -> st.SearchStrategy[np.ndarray]:
    """Boards of tokens 0 to ``most``, border or none."""
    side = st.integers(1, max_side)
    return st_numpy.arrays(np.uint8, st.tuples(side, side), elements=st.integers(0, most))


levels = st.builds(Level, boards(), one_line, one_line, comments, solutions)
collections = st.lists(levels, min_size=1, max_size=4)
