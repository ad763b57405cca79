"""The paper's measures, each a plain function on arrays of boards, one file a measure."""

from maskoban.evaluation.culprits import Culprits, culprit_probabilities, measure_culprits
from maskoban.evaluation.difficulty import Difficulty, measure_difficulty
from maskoban.evaluation.duplicates import Duplicates, count_duplicates
from maskoban.evaluation.neighbours import (
    Distances,
    measure_distances,
    nearest_distances,
    same_puzzles,
    training_levels,
    without_player,
)
from maskoban.evaluation.patterns import (
    SIZES,
    PatternMatch,
    Patterns,
    count_patterns,
    divergence,
    fit_exponent,
    measure_patterns,
    pattern_curve,
    pattern_jsd,
)
from maskoban.evaluation.repairs import Mending, RepairRates, measure_repairs, mend
from maskoban.evaluation.shares import Share, share_of
from maskoban.evaluation.solvability import Solvability, measure_solvability
from maskoban.evaluation.tiles import TileCounts, count_tiles

__all__ = [
    "SIZES",
    "Culprits",
    "Difficulty",
    "Distances",
    "Duplicates",
    "Mending",
    "PatternMatch",
    "Patterns",
    "RepairRates",
    "Share",
    "Solvability",
    "TileCounts",
    "count_duplicates",
    "count_patterns",
    "count_tiles",
    "culprit_probabilities",
    "divergence",
    "fit_exponent",
    "measure_culprits",
    "measure_difficulty",
    "measure_distances",
    "measure_patterns",
    "measure_repairs",
    "measure_solvability",
    "mend",
    "nearest_distances",
    "pattern_curve",
    "pattern_jsd",
    "same_puzzles",
    "share_of",
    "training_levels",
    "without_player",
]
