"""Solve, rate, repair and filter boards, and replay and shorten solutions."""

from maskoban.solving.filters import BoardFilter as BoardFilter
from maskoban.solving.optimize import optimize as optimize, optimize_many as optimize_many
from maskoban.solving.rating import (
    Rating as Rating,
    difficulty_of as difficulty_of,
    rate as rate,
    rate_many as rate_many,
)
from maskoban.solving.repair import (
    Repair as Repair,
    interior_walls as interior_walls,
    repair as repair,
    repair_many as repair_many,
)
from maskoban.solving.replay import (
    IllegalStepError as IllegalStepError,
    count as count,
    play as play,
    solves as solves,
)
from maskoban.solving.solver import (
    Limits as Limits,
    Result as Result,
    Results as Results,
    dead_cells as dead_cells,
    solve as solve,
    solve_many as solve_many,
)
