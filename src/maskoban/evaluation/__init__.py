"""Measures of boards as plain functions (``measures/``, one file a measure), and reports of generators."""

from maskoban.evaluation.measures.board_measures import BoardMeasures, measure_boards
from maskoban.evaluation.measures.culprits import Culprits, culprit_probabilities, measure_culprits
from maskoban.evaluation.measures.difficulty import Difficulty, measure_difficulty
from maskoban.evaluation.measures.distances import (
    Distances,
    measure_distances,
    nearest_distances,
    same_puzzles,
    training_levels,
    without_player,
)
from maskoban.evaluation.measures.diversity import (
    Diversity,
    Duplicates,
    count_duplicates,
    measure_diversity,
    pairwise_distance,
)
from maskoban.evaluation.measures.patterns import (
    SIZES,
    PatternMatch,
    Patterns,
    TileCounts,
    count_patterns,
    count_tiles,
    divergence,
    fit_exponent,
    measure_patterns,
    pattern_curve,
    pattern_jsd,
)
from maskoban.evaluation.measures.repairs import Mending, RepairRates, measure_repairs, mend
from maskoban.evaluation.measures.share import Mean, Share, share_of
from maskoban.evaluation.measures.solvability import Solvability, measure_solvability
from maskoban.evaluation.measures.training import Training, read_training

__all__ = [
    "SIZES",
    "BoardMeasures",
    "Culprits",
    "Difficulty",
    "Distances",
    "Diversity",
    "Duplicates",
    "Mean",
    "Mending",
    "PatternMatch",
    "Patterns",
    "RepairRates",
    "Share",
    "Solvability",
    "TileCounts",
    "Training",
    "count_duplicates",
    "count_patterns",
    "count_tiles",
    "culprit_probabilities",
    "divergence",
    "fit_exponent",
    "measure_boards",
    "measure_culprits",
    "measure_difficulty",
    "measure_distances",
    "measure_diversity",
    "measure_patterns",
    "measure_repairs",
    "measure_solvability",
    "mend",
    "nearest_distances",
    "pairwise_distance",
    "pattern_curve",
    "pattern_jsd",
    "read_training",
    "same_puzzles",
    "share_of",
    "training_levels",
    "without_player",
]
