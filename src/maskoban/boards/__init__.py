"""What a board is: its tiles, levels, their identity, and every file people keep them in."""

from .errors import LevelFileError, MaskobanError
from .files import (
    ENDINGS,
    FORMATS,
    check_place,
    check_writable,
    detect,
    has_notes,
    read,
    read_boards,
    stream,
    whole_file,
    write,
)
from .identity import canonical_text, exact_ids, ids
from .level import Level
from .symmetry import symmetries
from .tiles import (
    BOX,
    BOX_ON_GOAL,
    FLOOR,
    GOAL,
    MASK,
    MAX_SIDE,
    PLAYER,
    PLAYER_ON_GOAL,
    SYMBOLS,
    TILES,
    WALL,
    Tokens,
)

__all__ = [
    "BOX",
    "BOX_ON_GOAL",
    "ENDINGS",
    "FLOOR",
    "FORMATS",
    "GOAL",
    "MASK",
    "MAX_SIDE",
    "PLAYER",
    "PLAYER_ON_GOAL",
    "SYMBOLS",
    "TILES",
    "WALL",
    "Level",
    "LevelFileError",
    "MaskobanError",
    "Tokens",
    "canonical_text",
    "check_place",
    "check_writable",
    "detect",
    "exact_ids",
    "has_notes",
    "ids",
    "read",
    "read_boards",
    "stream",
    "symmetries",
    "whole_file",
    "write",
]
