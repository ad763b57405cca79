"""Same puzzle, same id: whatever does not change the play does not change the id, and all else does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maskoban.boards import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    MASK,
    PLAYER,
    PLAYER_ON_GOAL,
    WALL,
    Level,
    canonical_text,
    exact_ids,
    ids,
    symmetries,
)

from .strategies import boards

MAZE = Level.parse("""
#######
#  #  #
#@ $ .#
#  #  #
#######
""")


def with_player(tokens, cell):
    """The board with its one player on ``cell``."""
    flat = tokens.ravel().copy()
    flat[flat == PLAYER] = FLOOR
    flat[flat == PLAYER_ON_GOAL] = GOAL
    cell %= flat.size
    flat[cell] = PLAYER_ON_GOAL if flat[cell] in (GOAL, BOX_ON_GOAL) else PLAYER
    return flat.reshape(tokens.shape)


puzzles = st.builds(with_player, boards(6), st.integers(0, 35))


def test_the_player_anywhere_in_its_region():
    moved = Level.parse("""
#######
#  #  #
#  $ .#
# @#  #
#######
""")
    assert moved.id == MAZE.id
    assert moved.exact_id == MAZE.exact_id


def test_the_player_in_another_region():
    across = Level.parse("""
#######
#  #  #
#  $@.#
#  #  #
#######
""")
    assert across.id != MAZE.id
    assert across.exact_id != MAZE.exact_id


def test_the_player_on_a_goal():
    assert Level.parse("@.$").id == Level.parse("-+$").id != Level.parse("@-$").id


def test_filler_that_the_player_never_reaches():
    filled = Level.parse("""
 #######-----
 #  #  ####
 #@ $ .# ## #
 #  #  #    #
 ############
""")
    assert filled.id == MAZE.id
    assert filled.exact_id == MAZE.exact_id


@pytest.mark.parametrize("extra", ["$", ".", "*", "?"])
def test_boxes_and_goals_out_of_reach_count(extra):
    cut_off = Level.parse(f"""
#########
#  #  # #
#@ $ .#{extra}#
#  #  # #
#########
""")
    assert cut_off.id != MAZE.id
    assert cut_off.exact_id != MAZE.exact_id


def test_the_edge_is_a_wall():
    assert Level.parse("@$.").id == Level.parse("#####\n#@$.#\n#####").id
    # but floor beyond an open edge can be walked on
    assert Level.parse("@$.").id != Level.parse("-@$.").id


def test_only_the_exact_id_sees_a_mirror():
    mirrored = Level(MAZE.tokens[:, ::-1])
    assert mirrored.id == MAZE.id
    assert mirrored.exact_id != MAZE.exact_id


def test_mask_lets_nothing_through_and_hides_nothing_behind():
    assert Level.parse("@?-$").id != Level.parse("-?@$").id
    assert Level.parse("@-?").id == Level.parse("-@?").id
    assert Level.parse("@?$-").id != Level.parse("@?$#").id


def test_boards_that_are_no_puzzles_have_ids_too():
    texts = ["#", "-", "@@", "@-@", "$.", "?", "--"]
    assert len({Level.parse(text).id for text in texts}) == len(texts)
    assert Level.parse("#").id == Level.parse("##\n##").id


@given(puzzles)
def test_all_eight_symmetries_share_the_id(tokens):
    assert len({Level(turned).id for turned in symmetries(tokens)}) == 1


@given(puzzles)
def test_the_id_is_the_exact_id_of_one_of_the_eight(tokens):
    assert Level(tokens).id in {Level(turned).exact_id for turned in symmetries(tokens)}


@given(puzzles, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_walls_around_do_not_matter(tokens, top, bottom, left, right):
    padded = np.pad(tokens, ((top, bottom), (left, right)), constant_values=WALL)
    assert Level(padded).exact_id == Level(tokens).exact_id


@given(puzzles)
def test_floor_around_a_walled_board_does_not_matter(tokens):
    walled = np.pad(tokens, 1, constant_values=WALL)
    assert Level(np.pad(walled, 1, constant_values=FLOOR)).exact_id == Level(tokens).exact_id


def neighbours(tokens, cell):
    r, c = cell
    steps = ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))
    return [(i, j) for i, j in steps if 0 <= i < tokens.shape[0] and 0 <= j < tokens.shape[1]]


def reach(tokens, blocked):
    """Cells connected with the player, found the obvious way."""
    start = tuple(int(i) for i in np.argwhere((tokens == PLAYER) | (tokens == PLAYER_ON_GOAL))[0])
    seen, todo = {start}, [start]
    while todo:
        for cell in neighbours(tokens, todo.pop()):
            if cell not in seen and tokens[cell] not in blocked:
                seen.add(cell)
                todo.append(cell)
    return seen


@given(puzzles, st.data())
def test_a_walk_does_not_matter(tokens, data):
    region = sorted(reach(tokens, (WALL, BOX, BOX_ON_GOAL, MASK)))
    r, c = data.draw(st.sampled_from(region))
    walked = with_player(tokens, r * tokens.shape[1] + c)
    assert Level(walked).exact_id == Level(tokens).exact_id
    assert Level(walked).id == Level(tokens).id


@given(puzzles, st.data())
def test_unreachable_floor_and_wall_are_the_same(tokens, data):
    area = reach(tokens, (WALL,))
    outside = [
        cell for cell in np.ndindex(tokens.shape) if cell not in area and tokens[cell] in (WALL, FLOOR)
    ]
    outside = [cell for cell in outside if not any(near in area for near in neighbours(tokens, cell))]
    assume(outside)
    other = tokens.copy()
    cell = data.draw(st.sampled_from(outside))
    other[cell] = FLOOR if other[cell] == WALL else WALL
    assert Level(other).exact_id == Level(tokens).exact_id


@given(puzzles)
def test_the_canonical_text_is_its_own_canonical_text(tokens):
    text = canonical_text(tokens)
    assert canonical_text(Level.parse(text.replace(" ", "-")).tokens) == text


@given(puzzles, puzzles)
def test_equal_ids_mean_equal_boxes_goals_and_masks(one, two):
    if Level(one).id == Level(two).id:
        for tile in (BOX, BOX_ON_GOAL, MASK):
            assert (one == tile).sum() == (two == tile).sum()


def test_a_batch_gives_what_single_boards_give():
    boards = np.random.default_rng(7).integers(0, 8, (300, 5, 6)).astype(np.uint8)
    assert ids(boards) == [Level(board).id for board in boards]
    assert exact_ids(boards) == [Level(board).exact_id for board in boards]
    assert ids(boards[:0]) == []


def test_the_symmetries_are_eight_and_work_on_batches():
    tokens = np.arange(6, dtype=np.uint8).reshape(2, 3)
    single = symmetries(tokens)
    assert len({(s.shape, s.tobytes()) for s in single}) == 8
    for turned, batch in zip(single, symmetries(tokens[None]), strict=True):
        assert (batch[0] == turned).all()


def test_the_recipe_is_pinned():
    """Published ids must never change: these are literal."""
    assert canonical_text(MAZE.tokens) == "@ #  \n  $ .\n  #  \n"
    assert MAZE.exact_id == "7467cd34c4934f5f119325cfe0fec432"
    assert MAZE.id == "6a92431c7c71253cff105a77a43b7ddd"
    every_tile = Level.parse("#######\n#@$.*+#\n#?  ? #\n#######")
    assert (every_tile.exact_id, every_tile.id) == (
        "b3be2d1ab2548ba8e72ab40e808222b7",
        "c29c0807fec3c5cb8c9ab752471148da",
    )
