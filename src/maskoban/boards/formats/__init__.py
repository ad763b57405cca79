"""File formats: one module a family, each registers its formats."""

# The order is that of suffixes and names in help texts and messages.
from maskoban.boards.formats import writing, xml, arrays  # noqa: F401
from maskoban.boards.formats.registry import (
    FORMATS as FORMATS,
    Format as Format,
    LevelFileWarning as LevelFileWarning,
    Source as Source,
    by_suffix as by_suffix,
    detect as detect,
    register as register,
    suffixes as suffixes,
)
