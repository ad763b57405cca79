"""Is a board solvable, how hard is it, how is it mended, and does a solution hold."""

from .rating import Rating, rate, rate_many, word_for
from .repair import Repair, interior_walls, repair, repair_many
from .replay import Counts, IllegalStepError, count, play, solves
from .solver import LevelLike, Limits, Result, Results, dead_cells, solve, solve_many

__all__ = [
    "Counts",
    "IllegalStepError",
    "LevelLike",
    "Limits",
    "Rating",
    "Repair",
    "Result",
    "Results",
    "count",
    "dead_cells",
    "interior_walls",
    "play",
    "rate",
    "rate_many",
    "repair",
    "repair_many",
    "solve",
    "solve_many",
    "solves",
    "word_for",
]
