"""Measures of boards as plain functions (``measures/``, one file a measure), and reports of generators."""

from maskoban.evaluation.measures.board_measures import measure_boards as measure_boards
from maskoban.evaluation.measures.culprits import measure_culprits as measure_culprits
from maskoban.evaluation.measures.difficulty import measure_difficulty as measure_difficulty
from maskoban.evaluation.measures.distances import (
    measure_distances as measure_distances,
    nearest_distances as nearest_distances,
    same_puzzles as same_puzzles,
    without_player as without_player,
)
from maskoban.evaluation.measures.diversity import (
    count_duplicates as count_duplicates,
    measure_diversity as measure_diversity,
    pairwise_distance as pairwise_distance,
)
from maskoban.evaluation.measures.patterns import (
    count_patterns as count_patterns,
    measure_patterns as measure_patterns,
    pattern_jsd as pattern_jsd,
)
from maskoban.evaluation.measures.repairs import measure_repairs as measure_repairs, mend as mend
from maskoban.evaluation.measures.solvability import measure_solvability as measure_solvability
