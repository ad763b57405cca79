"""Solve, rate, repair and filter boards, and replay and shorten solutions."""

from maskoban.solving.filters import BoardFilter
from maskoban.solving.optimize import optimize, optimize_many
from maskoban.solving.rating import Rating, difficulty_for, difficulty_of, rate, rate_many
from maskoban.solving.repair import Repair, interior_walls, repair, repair_many
from maskoban.solving.replay import Counts, IllegalStepError, count, play, pushing_sessions, solves
from maskoban.solving.solver import (
    LevelLike,
    LimitHit,
    Limits,
    Result,
    Results,
    dead_cells,
    solve,
    solve_many,
)

__all__ = [
    "BoardFilter",
    "Counts",
    "IllegalStepError",
    "LevelLike",
    "LimitHit",
    "Limits",
    "Rating",
    "Repair",
    "Result",
    "Results",
    "count",
    "dead_cells",
    "difficulty_for",
    "difficulty_of",
    "interior_walls",
    "optimize",
    "optimize_many",
    "play",
    "pushing_sessions",
    "rate",
    "rate_many",
    "repair",
    "repair_many",
    "solve",
    "solve_many",
    "solves",
]
