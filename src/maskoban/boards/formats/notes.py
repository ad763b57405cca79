"""What is known about a level beside its board, as the JSON of an ``.npz`` file."""

from __future__ import annotations

import json
from itertools import chain, repeat
from typing import Any

from maskoban.boards.level import Level, Moves, name_of

_LISTS = ("solutions", "savegames", "solution_names", "savegame_names")
COLUMNS = ("title", "author", "comment", *_LISTS)


def to_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def notes_of(level: Level) -> dict[str, Any]:
    """What is known about a level beside its board."""
    known = {name: value for name in COLUMNS if (value := getattr(level, name, ""))}
    for name, plays in (("solution_names", level.solutions), ("savegame_names", level.savegames)):
        if any(map(name_of, plays)):
            known[name] = [name_of(moves) for moves in plays]
    return known


def with_names(known: dict[str, Any]) -> dict[str, Any]:
    """The fields of a level: moves with their names."""
    for plays, names in (("solutions", "solution_names"), ("savegames", "savegame_names")):
        given = known.pop(names, ())
        known[plays] = tuple(map(Moves, known.get(plays, ()), chain(given, repeat(""))))
    return known


def parse_json(data: bytes) -> Any:
    """JSON, or None if it is none. An integer of thousands of digits is a ValueError, too."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def is_valid(name: str, entry: object) -> bool:
    if name in _LISTS:
        return isinstance(entry, list) and all(isinstance(text, str) for text in entry)
    return isinstance(entry, str)
