"""The possible kinds of a word, by two word lists that come in packages.

LemmInflect's list (made of the SPECIALIST lexicon) has the kinds that every word can be and its roots; Brill's lexicon,
which TextBlob ships, the kind that it mostly is. Both are text files. LemmInflect also ships pickled models, which only
its rules for unknown words read; these are never used here, so that nothing is unpickled.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from rungwise.core import MissingFileError, read_text, require
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._families import COLOURS, SIZES, TEXTURES

Kind = Literal["noun", "verb", "adjective", "adverb", "determiner", "number", "preposition", "be", "modal", "and",
               "while", "who", "pronoun", "owner", "comma", "to"]  # fmt: skip
ENDS = frozenset((".", ";", ":", "(", ")"))
"""Signs that end a phrase."""
LISTED: dict[str, Kind] = {
    **dict.fromkeys(known.ADVERBS, "adverb"),
    **dict.fromkeys(known.DETERMINERS, "determiner"),
    **dict.fromkeys(known.NUMBERS, "number"),
    **dict.fromkeys(known.PREPOSITIONS, "preposition"),
    **dict.fromkeys(known.WHILE, "while"),
    **dict.fromkeys(known.WHO, "who"),
    **dict.fromkeys(known.MODALS, "modal"),
    **dict.fromkeys(known.PRONOUNS, "pronoun"),
    **dict.fromkeys(known.BE, "be"),
    **dict.fromkeys(known.AND, "and"),
    "to": "to",
    ",": "comma",
    "'s": "owner",
    "that": "who",
}
"""Words that have one kind wherever they stand."""
_REMEMBERED = 1 << 16
"""Number of words whose kinds are cached."""
_ROOTS = {"people": "person", "men": "man", "women": "woman", "children": "child", "persons": "person",
          "mice": "mouse", "feet": "foot", "teeth": "tooth", "geese": "goose", "graffiti": "graffiti"}  # fmt: skip
_LOOKS = COLOURS | SIZES | TEXTURES
"""Words that may stand before a noun whatever the lists contain, such as "spotted"."""
_KIND_OF = {"NOUN": "noun", "PROPN": "noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "AUX": "verb"}


@dataclass(frozen=True)
class Word:
    """A word of a caption.

    Attributes:
        text: The word in lower case.
        kind: Kind of the word at this place.
        root: Lemma of the word.
        form: Form of a verb: ``"ing"``, ``"ed"``, ``"s"`` or the plain form (``""``). Of a noun ``"s"`` in the plural.
    """

    text: str
    kind: Kind
    root: str
    form: str = ""


@dataclass(frozen=True)
class _Lists:
    """The two word lists: roots by kind, and the usual tag of the Penn Treebank."""

    lemmas: Callable[[str], Mapping[str, tuple[str, ...]]]
    usual: Mapping[str, str]


@cache
def _lists() -> _Lists:
    for module in ("lemminflect", "textblob"):
        require(module, "a scene graph")
    import lemminflect

    return _Lists(lemminflect.getAllLemmas, _usual_tags())


def _usual_tags() -> dict[str, str]:
    """Brill's lexicon from TextBlob's folder; importing TextBlob would import NLTK, which takes longer."""
    textblob = importlib.util.find_spec("textblob")
    folder = Path((textblob.origin if textblob else None) or "textblob").parent
    path = folder / "en" / "en-lexicon.txt"
    try:
        text = read_text(path, "text_bytes")
    except MissingFileError as error:
        raise MissingFileError(
            f"{path}: not found, and scene graphs need this word list of textblob; "
            "run: pip install --force-reinstall textblob"
        ) from error
    lines = (line.strip() for line in text.split("\n"))
    cells = (line.split(" ") for line in lines if line and not line.startswith(";;;"))
    return {word: tag for word, tag, *_ in cells}


@lru_cache(maxsize=_REMEMBERED)
def kinds_of(word: str) -> Mapping[str, str]:
    """Kinds that a word can be (noun, verb, adjective, adverb), with its root as each; empty where no list has it.

    >>> dict(kinds_of("leaves"))
    {'noun': 'leaf', 'verb': 'leave'}
    """
    found: dict[str, str] = {}
    for kind, roots in _lists().lemmas(word).items():
        if kind in _KIND_OF:
            found.setdefault(_KIND_OF[kind], _best_root(word, kind, roots))
    if word in _ROOTS:
        found["noun"] = _ROOTS[word]
    if word in known.PLURAL_ONLY:
        found["noun"] = word
    if word in _LOOKS:
        found["adjective"] = word
    return found


def _best_root(word: str, kind: str, roots: tuple[str, ...]) -> str:
    """The root that is a word of this kind more often: of leaves leaf, as a noun."""
    if len(roots) == 1:
        return roots[0].lower()
    if kind == "NOUN" and word in roots and word.endswith("s"):
        return word.lower()
    usual = _lists().usual
    wanted = {"NOUN": "NN", "VERB": "VB"}.get(kind, "")
    return next((root for root in roots if usual.get(root, "") == wanted), roots[0]).lower()


@lru_cache(maxsize=_REMEMBERED)
def guessed_kinds(word: str) -> Mapping[str, str]:
    """Kinds of a word that no list has, by its ending.

    >>> guessed_kinds("blurkeling"), guessed_kinds("blurkels")
    ({'verb': 'blurkel'}, {'noun': 'blurkel'})
    """
    if word.endswith("ing") and len(word) > 5:
        return {"verb": word[:-3]}
    if word.endswith("ed") and len(word) > 4:
        return {"verb": word[:-2], "adjective": word}
    if word.endswith("ly") and len(word) > 4:
        return {"adverb": word}
    if "-" in word:
        return {"adjective": word, "noun": word}
    if word.endswith("s") and len(word) > 3 and not word.endswith("ss"):
        return {"noun": word[:-1]}
    return {"noun": word}


def usually(word: str, tag: str) -> bool:
    """Whether the most usual tag of a word begins with this one of the Penn Treebank, such as NN or VBZ."""
    return _lists().usual.get(word, "").startswith(tag)


def form_of(word: str, kinds: Mapping[str, str]) -> str:
    """The form of a verb: ``"ing"``, ``"ed"``, ``"s"``, or ``""`` for the plain one and for what is no verb."""
    root = kinds.get("verb")
    if root is None or root == word:
        return ""
    if word.endswith("ing"):
        return "ing"
    return "s" if word.endswith("s") and word.startswith(root[:2]) else "ed"
