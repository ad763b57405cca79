"""Boards: tiles, levels, their identity, and the files people keep them in."""

from maskoban.boards.collection import Collection as Collection
from maskoban.boards.files import (
    check_writable as check_writable,
    has_metadata as has_metadata,
    read as read,
    read_boards as read_boards,
    read_collection as read_collection,
    stream as stream,
    stream_collection as stream_collection,
    stream_file as stream_file,
    write as write,
)
from maskoban.boards.formats import (
    FORMATS as FORMATS,
    Format as Format,
    LevelFileWarning as LevelFileWarning,
    Source as Source,
    by_suffix as by_suffix,
    detect as detect,
    register as register,
)
from maskoban.boards.geometry import symmetries as symmetries
from maskoban.boards.identity import canonical_text as canonical_text, exact_ids as exact_ids, ids as ids
from maskoban.boards.level import (
    Level as Level,
    Moves as Moves,
    name_of as name_of,
    take as take,
    unique_levels as unique_levels,
)
from maskoban.boards.tiles import (
    BOX as BOX,
    BOX_ON_GOAL as BOX_ON_GOAL,
    FLOOR as FLOOR,
    GOAL as GOAL,
    MASK as MASK,
    MAX_SIDE as MAX_SIDE,
    PLAYER as PLAYER,
    PLAYER_ON_GOAL as PLAYER_ON_GOAL,
    SYMBOLS as SYMBOLS,
    TILES as TILES,
    WALL as WALL,
    Tokens as Tokens,
)
