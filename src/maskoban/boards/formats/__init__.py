"""File formats: one module a family, each registers its formats."""

# The order is that of suffixes and names in help texts and messages.
from maskoban.boards.formats import writing, xml, arrays  # noqa: F401, I001
from maskoban.boards.formats.registry import (
    FORMATS,
    Format,
    LevelFileWarning,
    Source,
    by_suffix,
    detect,
    register,
    suffixes,
)

__all__ = ["FORMATS", "Format", "LevelFileWarning", "Source", "by_suffix", "detect", "register", "suffixes"]
