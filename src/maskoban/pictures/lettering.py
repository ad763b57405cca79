"""Captions in pixels: the font that comes with Pillow is the same everywhere, but has hardly more than ASCII."""

from __future__ import annotations

from functools import lru_cache
from string import ascii_letters, digits, punctuation
from unicodedata import category, east_asian_width, normalize

from PIL import ImageFont

#: What the font has. Everything else it draws as a box.
LETTERS = frozenset(f"{ascii_letters}{digits}{punctuation} ©«°±´·»‘’“”…‹›⁄™")

# What Unicode does not take apart itself, and the nearest that the font has.
_INSTEAD = {
    **dict.fromkeys("‐‒–—―−", "-"),
    **{"\t": " ", "‚": "’", "‛": "‘", "′": "'", "„": "”", "‟": "“", "¡": "!", "¿": "?"},
    **{"×": "x", "•": "·", "←": "<-", "→": "->"},
    **{"ß": "ss", "ẞ": "SS", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Þ": "Th", "þ": "th"},
    **{"Ø": "O", "ø": "o", "Ł": "L", "ł": "l", "Đ": "D", "đ": "d", "Ð": "D", "ð": "d", "Ħ": "H", "ħ": "h"},
    **{
        "ı": "i",
        "ȷ": "j",
        "ŉ": "'n",
        "Ŋ": "N",
        "ŋ": "n",
        "Ŧ": "T",
        "ŧ": "t",
        "Ə": "E",
        "ə": "e",
        "ʻ": "‘",
        "ʼ": "’",
    },
    **{"Ɓ": "B", "ɓ": "b", "Ɗ": "D", "ɗ": "d", "Ƙ": "K", "ƙ": "k", "Ɛ": "E", "ɛ": "e", "Ɔ": "O", "ɔ": "o"},
}


@lru_cache(maxsize=16)
def font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The letters of all captions, so many pixels high; loaded once and kept."""
    return ImageFont.load_default(size)


def text_width(text: str, size: int) -> float:
    """How wide the text is in this font, in letters so many pixels high; signs as wide as high count as such.

    >>> text_width("iii", 16) < text_width("mmm", 16) < text_width("箱箱箱", 16) == 48
    True
    """
    square = [character for character in text if east_asian_width(character) in "WF"]
    others = "".join(character for character in text if east_asian_width(character) not in "WF")
    return font(size).getlength(spelled(others)) + size * len(square)


def spelled(text: str) -> str:
    """The text in letters that the font has: without accents where it must be, and ? for what has no likeness.

    >>> spelled("Für Élise – Größe, 箱")
    'Fur Elise - Grosse, ?'
    """
    return "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    if character in LETTERS:
        return character
    # An accent by itself, or a sign that only says how its neighbours join, leaves nothing.
    parts = [part for part in normalize("NFKD", character) if category(part) not in ("Mn", "Me", "Cf")]
    likeness = "".join(_INSTEAD.get(part, part) for part in parts)
    return likeness if LETTERS.issuperset(likeness) else "?"
