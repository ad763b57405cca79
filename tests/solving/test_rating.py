"""How hard a level is: numbers of drawn levels, and words by the shipped quartiles."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from maskoban.boards import Level, MaskobanError, read_boards
from maskoban.solving.effort_quartiles import summarise
from maskoban.solving.rating import WORDS, Rating, rate, rate_many, word_for
from maskoban.solving.solver import Limits, solve, solve_many

SHIPPED = json.loads(files("maskoban.solving").joinpath("effort_quartiles.json").read_text())

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
    assert rate(CORNER) == Rating("solved", "", 2, 2, 5, 1, 2, "easy")


def test_two_boxes() -> None:
    rating = rate(TWO_BOXES)
    assert (rating.verdict, rating.pushes, rating.box_changes, rating.box_lines) == ("solved", 4, 2, 2)
    assert rating.effort == solve_many([TWO_BOXES], "effort").expanded[0]
    assert rating.word == "easy"


def test_solved_from_the_start() -> None:
    assert rate(Level.parse("#@*#")) == Rating("solved", "", 0, 0, 0, 0, 0, "easy")


def test_what_cannot_be_solved_has_no_numbers() -> None:
    stuck = rate(Level.parse("#####\n#$@.#\n#####"))
    assert (stuck.verdict, stuck.effort, stuck.pushes, stuck.word) == ("unsolvable", -1, -1, "")
    assert rate(Level.parse("#@ #")) == Rating("malformed", "no boxes")


def test_a_limit_leaves_effort_unknown() -> None:
    assert rate(CORNER, Limits(states=0)) == Rating("unknown", "state limit of 0 reached")


def test_what_is_proved_unsolvable_is_so_though_the_plain_search_would_give_up() -> None:
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
    last = SHIPPED["quartiles"][2]
    rating = rate(level, Limits(states=last + 1))
    assert (rating.verdict, rating.effort, rating.word) == ("solved", -1, "expert")
    assert rating.reason == f"state limit of {last + 1} reached"


def test_words_change_just_after_each_quartile() -> None:
    assert word_for(0) == "easy"
    for quartile, below, above in zip(SHIPPED["quartiles"], WORDS[:-1], WORDS[1:], strict=True):
        assert (word_for(quartile), word_for(quartile + 1)) == (below, above)


def test_many_at_once_are_rated_as_one_by_one() -> None:
    levels = [CORNER, Level.parse("#@ #"), TWO_BOXES]
    assert rate_many(levels) == [rate(level) for level in levels]
    assert rate_many(level for level in levels) == rate_many(levels)
    assert rate_many(np.stack([CORNER.tokens] * 2)) == [rate(CORNER)] * 2


def test_the_shipped_numbers_hold_together() -> None:
    effort, pushes = SHIPPED["effort_percentiles"], SHIPPED["pushes_percentiles"]
    assert SHIPPED["levels"] == 450_000
    assert SHIPPED["mean_walls"] == pytest.approx(68.601, abs=0.001)
    assert len(effort) == len(pushes) == 101
    assert (effort, pushes) == (sorted(effort), sorted(pushes))
    assert SHIPPED["quartiles"] == [effort[25], effort[50], effort[75]]


def test_a_thousand_training_levels_fall_into_quarters(boxoban: Path) -> None:
    boards = read_boards(boxoban / "medium" / "train" / "000.txt")
    words = Counter(word_for(int(expanded)) for expanded in solve_many(boards, "effort").expanded)
    assert all(200 < words[word] < 300 for word in WORDS)


def test_the_summary_of_four_corridors() -> None:
    rows = ("#@$.##", "@$ .##", "#@$ .#", "#@$  .")
    boards = np.stack([Level.parse(row).tokens for row in rows])
    summary = summarise(boards)
    assert summary["levels"] == 4
    assert summary["quartiles"] == [1, 2, 2]
    assert summary["pushes_percentiles"][0] == 1
    assert summary["pushes_percentiles"][100] == 3
    assert summary["mean_effort"] == 2.0


def test_a_summary_wants_solvable_levels() -> None:
    with pytest.raises(MaskobanError, match="1 of 2 levels are not solved"):
        summarise(np.stack([Level.parse(row).tokens for row in ("@$.#", "$@.#")]))
