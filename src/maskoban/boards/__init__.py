"""Boards: tiles, levels, their identity, and the files people keep them in."""

from maskoban.boards.files import (
    check_writable,
    has_metadata,
    level_files,
    read,
    read_boards,
    stream,
    stream_file,
    write,
)
from maskoban.boards.formats import FORMATS, Format, Source, by_suffix, detect, register, suffixes
from maskoban.boards.geometry import symmetries
from maskoban.boards.identity import canonical_text, exact_ids, ids
from maskoban.boards.level import Level, take, unique_levels
from maskoban.boards.tiles import (
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
    "Format",
    "Level",
    "Source",
    "Tokens",
    "by_suffix",
    "canonical_text",
    "check_writable",
    "detect",
    "exact_ids",
    "has_metadata",
    "ids",
    "level_files",
    "read",
    "read_boards",
    "register",
    "stream",
    "stream_file",
    "suffixes",
    "symmetries",
    "take",
    "unique_levels",
    "write",
]
