"""Families of exact words: another word of the same family is wrong, however near its vector is."""

from __future__ import annotations

from typing import Literal

from rungwise.language.scene_graphs import words as known

Family = Literal["colour", "number", "size", "place", "texture"]

COLOURS = frozenset((
    "red", "blue", "green", "yellow", "black", "white", "brown", "orange", "purple", "pink", "gray", "grey", "tan",
    "golden", "silver", "beige", "violet", "blonde", "blond", "maroon", "turquoise", "teal", "gold", "lime",
))  # fmt: skip
SIZES = frozenset((
    "small", "little", "tiny", "mini", "large", "big", "huge", "giant", "enormous", "tall", "short", "long", "young",
    "old", "elderly", "empty", "full", "open", "closed", "dark", "bright", "wet", "dry",
))  # fmt: skip
TEXTURES = frozenset(("plain", "solid", "dotted", "spotted", "hollow", "outlined", "striped", "plaid", "checkered"))
_PLACES = known.PREPOSITIONS | {name for names in known.PHRASES.values() for name in names}


def family_of(word: str) -> Family | None:
    """The family of a word whose members are told apart exactly; None for any other word."""
    if word in COLOURS:
        return "colour"
    if word.isdigit():
        return "number"
    if word in SIZES:
        return "size"
    if word in TEXTURES:
        return "texture"
    return "place" if word in _PLACES else None
