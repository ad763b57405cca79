"""Ratings of levels drawn as text, and difficulties by the shipped quartiles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import Level, read_boards
from maskoban.boards.synth import synthesize
from maskoban.errors import MaskobanError
from maskoban.solving.rating import (
    DIFFICULTIES,
    MEASURES,
    Rating,
    boxoban_efforts,
    boxoban_quartiles,
    difficulty_for,
    quartiles_of,
    rate,
    rate_many,
    summarise,
)
from maskoban.solving.solver import Limits, solve, solve_many

# The upper box first or the lower one: two pushes each, and a walk between.
TWO_BOXES = Level.parse("""
#######
#. $ ##
#  @  #
#. $ ##
#######
""")

CORNER = Level.parse("""
######
#@   #
# $  #
#  . #
#    #
######
""")


def test_a_push_round_a_corner() -> None:
    # Its inner room is 4x4, which is in the table with one box; the guided effort is counted in eight directions.
    numbers = Rating("solved", "", 2, 2, 5, 1, 2, "easy", None, 3, 1, "easy", 2.0, "6x6 with 1 box")
    assert rate(CORNER) == numbers


def test_two_boxes() -> None:
    rating = rate(TWO_BOXES)
    assert (rating.verdict, rating.pushes, rating.box_changes, rating.box_lines) == ("solved", 4, 2, 2)
    assert rating.effort == solve_many([TWO_BOXES], "effort").expanded[0]
    assert rating.difficulty == "easy"


def test_solved_from_the_start() -> None:
    solved = rate(Level.parse("#@*#"))
    assert (solved.verdict, solved.effort, solved.pushes, solved.decomposed_effort) == ("solved", 0, 0, 0)
    assert solved.difficulty == "easy"


def test_an_unsolvable_level_has_no_numbers() -> None:
    stuck = rate(Level.parse("#####\n#$@.#\n#####"))
    assert (stuck.verdict, stuck.effort, stuck.pushes, stuck.difficulty) == ("unsolvable", -1, -1, "")
    assert rate(Level.parse("#@ #")) == Rating("malformed", "no boxes")


def test_a_limit_leaves_effort_unknown() -> None:
    assert rate(CORNER, Limits(states=0)) == Rating("unknown", "state limit of 0 reached", limit_hit="states")


def test_a_proof_holds_where_the_plain_search_would_give_up() -> None:
    frozen = Level.parse("""
#######
#     #
#.$$ @#
#.$$  #
#.    #
#.    #
#######
""")
    none = Limits(states=0)
    assert solve(frozen, "effort", none).verdict == "unknown"
    assert rate(frozen, none) == rate(frozen) == Rating("unsolvable", "a box is frozen off goal")


def test_effort_beyond_the_limit_is_still_expert() -> None:
    # Three boxes in the open: hundreds of thousands of states for the plain search.
    level = Level.parse(
        "\n".join(["@         ", " $  $  $  ", *["          "] * 6, "  .  .  . ", "          "])
    )
    last = boxoban_quartiles()["effort"][2]
    rating = rate(level, Limits(states=last + 1), boxoban_quartiles())
    assert (rating.verdict, rating.effort, rating.difficulty) == ("solved", -1, "expert")
    assert (rating.limit_hit, rating.reason) == ("states", f"state limit of {last + 1} reached")


def test_the_difficulty_changes_just_after_each_quartile() -> None:
    for measure in MEASURES:
        assert difficulty_for(0, measure) == "easy"
        quartiles = boxoban_quartiles()[measure]
        for quartile, below, above in zip(quartiles, DIFFICULTIES[:-1], DIFFICULTIES[1:], strict=True):
            assert (difficulty_for(quartile, measure), difficulty_for(quartile + 1, measure)) == (
                below,
                above,
            )


def test_small_boards_are_rated_by_a_reference_of_their_own() -> None:
    boards = synthesize(400, 7, 7, 2, seed=1)
    assert {rating.difficulty for rating in rate_many(boards, quartiles=boxoban_quartiles())} == {"easy"}
    quartiles = quartiles_of(summarise(boards))
    ratings = rate_many(boards, quartiles=quartiles)
    for words in ([each.difficulty for each in ratings], [each.decomposed_difficulty for each in ratings]):
        assert all(50 < count <= 160 for count in Counter(words).values())
        assert set(words) == set(DIFFICULTIES)
    assert rate(boards[0], quartiles=quartiles) == ratings[0]


def test_a_limit_may_leave_only_the_decomposed_effort_unknown() -> None:
    level = Level.parse("#######\n#. #  #\n#$#@  #\n#. $. #\n#$$   #\n#  .  #\n#######")
    full, limited = rate(level), rate(level, Limits(states=200))
    assert (full.decomposed_effort, full.boxes_at_once, full.decomposed_difficulty) == (88, 4, "hard")
    assert (limited.effort, limited.pushes) == (full.effort, full.pushes)
    assert (limited.decomposed_effort, limited.boxes_at_once, limited.decomposed_difficulty) == (-1, -1, "")
    assert (limited.reason, limited.limit_hit) == ("decomposed effort: state limit of 200 reached", "states")


def test_a_batch_is_rated_like_its_levels_one_by_one() -> None:
    levels = [CORNER, Level.parse("#@ #"), TWO_BOXES]
    assert rate_many(levels) == [rate(level) for level in levels]
    assert rate_many(level for level in levels) == rate_many(levels)
    assert rate_many(np.stack([CORNER.tokens] * 2)) == [rate(CORNER)] * 2


def test_progress_counts_levels() -> None:
    calls: list[tuple[int, int]] = []
    levels = [CORNER, Level.parse("#@ #"), TWO_BOXES]
    rate_many(levels, on_progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (3, 3)


def test_the_shipped_numbers_hold_together() -> None:
    summary = boxoban_efforts()
    assert summary["levels"] == sum(summary["boxes_at_once"]) == 450_000
    assert summary["mean_walls"] == pytest.approx(68.601, abs=0.001)
    for name in ("effort", "decomposed", "pushes"):
        percentiles = summary[f"{name}_percentiles"]
        assert len(percentiles) == 101
        assert percentiles == sorted(percentiles)
    assert boxoban_quartiles()["effort"] == [624, 1638, 4177]


def test_a_thousand_training_levels_fall_into_quarters(boxoban: Path) -> None:
    ratings = rate_many(read_boards(boxoban / "medium" / "train" / "000.txt"))
    for words in ([each.difficulty for each in ratings], [each.decomposed_difficulty for each in ratings]):
        assert all(200 < Counter(words)[word] < 300 for word in DIFFICULTIES)


def test_the_summary_of_four_corridors() -> None:
    rows = ("#@$.##", "@$ .##", "#@$ .#", "#@$  .")
    boards = np.stack([Level.parse(row).tokens for row in rows])
    summary = summarise(boards)
    assert summary["levels"] == 4
    assert quartiles_of(summary) == {"effort": [1, 2, 2], "decomposed": [1, 2, 2]}
    assert summary["pushes_percentiles"][0] == 1
    assert summary["pushes_percentiles"][100] == 3
    assert summary["mean_effort"] == 2.0
    assert summary["boxes_at_once"] == [0, 4]


def test_a_summary_is_of_the_solvable_levels() -> None:
    both = np.stack([Level.parse(row).tokens for row in ("@$.#", "$@.#")])
    assert summarise(both)["levels"] == 1
    with pytest.raises(MaskobanError, match="none of 1 levels was solved"):
        summarise(both[1:])
