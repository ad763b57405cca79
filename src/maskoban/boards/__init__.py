"""What a board is: its tiles, levels, their identity, and every file people keep them in."""

from .errors import LevelFileError, MaskobanError
from .files import ENDINGS, FORMATS, check_writable, has_notes, level_files, read, read_boards, stream, write
from .identity import canonical_text, exact_ids, ids
from .level import Level, firsts
from .opening import detect
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
from .writing import check_place, said, whole_file

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
    "firsts",
    "has_notes",
    "ids",
    "level_files",
    "read",
    "read_boards",
    "said",
    "stream",
    "symmetries",
    "whole_file",
    "write",
]
