"""The colours of every picture, chosen to stay apart for colour-blind eyes.

Crates are amber and finished crates blue-green, a pair that stays distinct in every common colour
blindness; and no tile relies on colour alone, because each has another shape (see ``tileset``). Walls
are a middle slate, so that a board without background sits well on a light page and on a dark one.
"""

from __future__ import annotations

# Walls: seen from above, their front face where a room begins, and the rock far from any room.
WALL_TOP = "#8593a8"
WALL_EDGE = "#9eabbd"
WALL_SEAM = "#76849a"
WALL_FACE = "#56647b"
WALL_BRICK = "#68778f"
WALL_BRICK_LIGHT = "#7b8aa1"
ROCK = "#6c7a90"
ROCK_SEAM = "#647288"

# What one walks on, and where crates are to go.
FLOOR_TILE = "#f6efe2"
FLOOR_SEAM = "#ebe1cf"
GOAL_MARK = "#0b7a8c"
GOAL_GLOW = "#cde8e6"

# Crates: planks, frame and brace; then the same for a crate that has arrived.
CRATE_PLANK = "#efb04e"
CRATE_GRAIN = "#dd9836"
CRATE_FRAME = "#b86a1b"
CRATE_DARK = "#8a4b10"
DONE_PLANK = "#178680"
DONE_GRAIN = "#107671"
DONE_FRAME = "#08585c"
DONE_DARK = "#053e43"
DONE_TICK = "#f4fbf6"

# The warehouse keeper.
COAT = "#5a4aa8"
COAT_DARK = "#43368a"
SKIN = "#fbd9b5"
HAT = "#e2487d"
HAT_DARK = "#b92c60"
EYE = "#2a2540"

# Cells nobody has drawn yet.
MASK_PAPER = "#ddd9f2"
MASK_INSET = "#eae7f8"
MASK_STAR = "#a79fd6"

# Around the boards.
SHADOW = "#2b2f45"
PAGE = "#fdfbf7"
CARD = "#ece6da"
INK = "#2d3142"
INK_SOFT = "#7a7f91"
MARK = "#d6256b"
MARK_TEXT = "#ffffff"
