"""Words of a caption with their kind and their root, by two word lists and what stands beside them.

LemmInflect's list (made of the SPECIALIST lexicon) says of every word which kinds it can be and what its roots are;
Brill's lexicon, which TextBlob ships, which kind it mostly is. Where several remain, the words beside it decide: a
caption is a plain phrase, so that a few rules do.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from rungwise.core.errors import UserError
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs.families import COLOURS

Kind = Literal["noun", "verb", "adjective", "adverb", "determiner", "number", "preposition", "be", "modal", "and",
               "while", "who", "pronoun", "owner", "comma", "to"]  # fmt: skip

_TOKEN = re.compile(r"\d+|[^\W\d_]+(?:-[^\W\d_]+)*|'s\b|n't\b|[,.;:()]|&")
_ENDS = frozenset((".", ";", ":", "(", ")"))
_LISTED: dict[str, Kind] = {
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


@dataclass
class Word:
    """A word of a caption.

    Attributes:
        text: In lower case.
        kind: What it is here.
        root: Its lemma.
        form: Of a verb: ``"ing"``, ``"ed"``, ``"s"`` or the plain form (``""``). Of a noun: ``"s"`` in the plural.
    """

    text: str
    kind: Kind
    root: str
    form: str = ""


@dataclass(frozen=True)
class _Lists:
    """The two word lists."""

    lemmas: Any
    usual: Any

    def kinds(self, word: str) -> dict[str, str]:
        """Kinds that a word can be, with the root of each."""
        return _kinds(word)


@cache
def _lists() -> _Lists:
    for module in ("lemminflect", "textblob"):
        if importlib.util.find_spec(module) is None:
            raise UserError(f"scene graphs need {module}; run: pip install 'rungwise[scene-graphs]'")
    import lemminflect
    from textblob.en import lexicon

    return _Lists(lemminflect.getAllLemmas, lexicon)


_ROOTS = {"people": "person", "men": "man", "women": "woman", "children": "child", "persons": "person",
          "mice": "mouse", "feet": "foot", "teeth": "tooth", "geese": "goose", "graffiti": "graffiti"}  # fmt: skip
_KIND_OF = {"NOUN": "noun", "PROPN": "noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "AUX": "verb"}


@cache
def _kinds(word: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, roots in _lists().lemmas(word).items():
        if kind in _KIND_OF:
            found.setdefault(_KIND_OF[kind], _best_root(word, kind, roots))
    if word in _ROOTS:
        found["noun"] = _ROOTS[word]
    if word in known.PLURAL_ONLY:
        found["noun"] = word
    if word in COLOURS:
        found["adjective"] = word
    return found


def _best_root(word: str, kind: str, roots: tuple[str, ...]) -> str:
    """Of several roots the one that is a word of this kind more often: of leaves leaf, as a noun."""
    if len(roots) == 1:
        return roots[0].lower()
    if kind == "NOUN" and word in roots and word.endswith("s"):
        return word.lower()
    usual = _lists().usual
    wanted = {"NOUN": "NN", "VERB": "VB"}.get(kind, "")
    return next((root for root in roots if (usual.get(root) or "") == wanted), roots[0]).lower()


def tokens(caption: str) -> list[str]:
    """Words, numbers and signs in lower case; short forms are taken apart.

    >>> tokens("A man's T-shirt, isn't it?")
    ['a', 'man', "'s", 't-shirt', ',', 'is', "n't", 'it']
    """
    text = caption.lower().replace("’", "'").replace("n't", " n't")
    found = _TOKEN.findall(text)
    joined: list[str] = []
    for token in found:
        whole = known.WHOLE.get((joined[-1], token)) if joined else None
        if whole:
            joined[-1] = whole
        else:
            joined.append(token)
    return joined


def tagged(caption: str) -> list[Word]:
    """The words of a caption, each with its kind.

    Raises:
        UserError: If the word lists are not installed.

    >>> [(word.root, word.kind) for word in tagged("A man rides two brown horses")]
    [('a', 'determiner'), ('man', 'noun'), ('ride', 'verb'), ('2', 'number'), ('brown', 'adjective'), ('horse', 'noun')]
    """
    texts = tokens(caption)
    found: list[Word] = []
    for place, text in enumerate(texts):
        if text in _ENDS:
            if text != "." or place + 1 < len(texts):
                found.append(Word(text, "comma", text))
            continue
        following = texts[place + 1] if place + 1 < len(texts) else ""
        found.append(_word(text, following, found))
    return found


def _word(text: str, following: str, before: list[Word]) -> Word:
    if text in known.WHOLE.values():
        root = known.WHOLE_ROOTS.get(text, text)
        return Word(text, "noun", root, "" if root == text else "s")
    if text.isdigit():
        return Word(text, "number", text)
    if text in known.PERSONS:
        return Word(text, "noun", "person")
    listed = _LISTED.get(text)
    if listed == "number":
        return Word(text, "number", known.NUMBERS[text])
    if text == "'s" and before and before[-1].kind in ("pronoun", "who"):
        return Word(text, "be", text)
    if text == "that" and following and not _kinds(following).get("verb"):
        return Word(text, "determiner", text)
    if text == "like" and before and before[-1].kind in ("pronoun", "noun") and before[-1].form == "s":
        listed = "preposition"
    if listed is not None:
        return Word(text, listed, text)
    return _open_word(text, following, before)


def _open_word(text: str, following: str, before: list[Word]) -> Word:
    kinds = _kinds(text) or _guessed(text)
    form = _form(text, kinds)
    last = before[-1] if before else Word("", "comma", "")
    inside = last.kind in ("determiner", "number", "adjective", "owner")
    more = _goes_on(following)
    if text in known.MADE_OF and last.kind == "noun" and more:
        last.kind, last.root = "adjective", last.text
        return Word(text, "adjective", text)
    if "verb" in kinds and _VERB_AFTER[form](_Place(text, kinds, last, following, before)):
        return Word(text, "verb", kinds["verb"], form)
    if text in COLOURS and following in ("and", ",", "&", "or"):
        return Word(text, "adjective", text)
    if form in ("ing", "ed") and "verb" in kinds and more and (inside or last.kind in ("preposition", "and", "comma")):
        return Word(text, "noun" if "noun" in kinds and form == "ing" else "adjective", text, form)
    if "adjective" in kinds and (
        "noun" not in kinds or (more and text in COLOURS) or (_usually(text, "JJ") and (more or not inside))
    ):
        return Word(text, "adjective", text)
    if "adverb" in kinds and "noun" not in kinds:
        return Word(text, "adverb", text)
    if "noun" in kinds:
        several = kinds["noun"] != text or text in known.PLURAL_ONLY
        return Word(text, "noun", kinds["noun"], "s" if several else "")
    if "adjective" in kinds or (inside and "verb" in kinds):
        return Word(text, "adjective", text)
    if "verb" in kinds:
        return Word(text, "verb", kinds["verb"], form)
    return Word(text, "noun", text)


@dataclass(frozen=True)
class _Place:
    """Where a word stands that may be a verb."""

    text: str
    kinds: dict[str, str]
    last: Word
    following: str
    before: list[Word]

    @property
    def helped(self) -> bool:
        """After "is", "can", "to", "who" or "they"."""
        return self.last.kind in ("be", "modal", "to", "pronoun", "who")

    @property
    def only(self) -> bool:
        return set(self.kinds) == {"verb"}

    def after(self, *kinds: Kind) -> bool:
        return self.last.kind in kinds

    def clause(self) -> list[Word]:
        """The words before, from the last "while" on."""
        starts = [place for place, word in enumerate(self.before) if word.kind in ("while", "who")]
        return self.before[starts[-1] :] if starts else self.before


def _after_ing(at: _Place) -> bool:
    """Riding: after a noun nearly always; elsewhere where no noun follows that it could describe."""
    if at.after("noun") and "noun" in at.kinds and _usually(at.text, "NN"):
        return _LISTED.get(at.following) == "determiner"  # a museum setting, but a man painting a wall
    if at.helped or at.after("noun", "adverb", "verb") or _in_colour(at):
        return True
    if at.text in known.TRANSITIVE and at.after("comma", "and"):
        return True
    if at.after("while", "comma", "and", "preposition"):
        return _opens(at.following) or (not _goes_on(at.following) and "noun" not in at.kinds) or at.after("while")
    return False


def _in_colour(at: _Place) -> bool:
    """After "a man in black"."""
    return at.last.text in COLOURS and len(at.before) > 1 and at.before[-2].text == "in"


def _after_ed(at: _Place) -> bool:
    """Parked: after a noun or "is"."""
    if at.helped or at.after("noun", "adverb"):
        return not (at.after("be") and "adjective" in at.kinds and _goes_on(at.following))
    return at.after("and", "while", "comma") and not _goes_on(at.following)


def _after_s(at: _Place) -> bool:
    """Rides: after a single thing, where a phrase follows that a verb can have."""
    if at.helped and not at.after("be", "to"):
        return True
    if at.after("noun") and at.last.form != "s":
        single = _single(at.before)
        if single is not False and (_usually(at.text, "VBZ") or _LISTED.get(at.following) == "determiner"):
            return True
        acted = any(word.kind in ("verb", "be") for word in at.clause())
        begun = bool(at.clause()) and at.clause()[0].kind in ("while", "who")
        return (single is True or (begun and not acted and single is None)) and _after_a_verb(at.following)
    if at.after("noun"):  # a bus full of tourists turns a corner
        return _LISTED.get(at.following) in ("determiner", "preposition") and _single(at.before) is None
    if _in_colour(at):
        return _opens(at.following)
    return at.after("adverb", "and", "while") and (at.only or _usually(at.text, "VBZ")) and _after_a_verb(at.following)


def _after_plain(at: _Place) -> bool:
    """Ride: after several things."""
    if at.helped:
        return at.only or not (at.after("be") or (at.after("to") and _goes_on(at.following) and "noun" in at.kinds))
    if at.after("noun") and (at.last.form == "s" or _conjoined(at.before)):
        return (
            at.only or _usually(at.text, "VB") or "noun" not in at.kinds or _opens(at.following)
        ) and at.text not in COLOURS
    if at.last.text in ("all", "both") and len(at.before) > 1:
        return at.before[-2].kind == "noun"
    if at.after("adverb"):
        return at.only and len(at.before) > 1
    acted = [word for word in at.before if word.kind == "verb"]
    return at.after("and") and bool(acted) and (at.only or (acted[-1].form == "" and _opens(at.following)))


_VERB_AFTER: dict[str, Callable[[_Place], bool]] = {
    "ing": _after_ing, "ed": _after_ed, "s": _after_s, "": _after_plain,
}  # fmt: skip


def _single(before: list[Word]) -> bool | None:
    """Whether the noun phrase that ends here is of one thing; None where nothing says so."""
    for word in reversed(before):
        if word.kind == "determiner":
            return True if word.text in known.SINGLE else None
        if word.kind == "number":
            return word.root == "1"
        if word.kind == "owner":
            return None
        if word.kind not in ("noun", "adjective"):
            break
    return None


def _conjoined(before: list[Word]) -> bool:
    """Whether two things are named together, so that their verb has no ending."""
    kinds = [word.kind for word in before[-5:]]
    return "and" in kinds and "verb" not in kinds


def _goes_on(following: str) -> bool:
    """Whether the next word may be another one of the same noun phrase."""
    if not following or following in _ENDS or following in _LISTED:
        return False
    kinds = _kinds(following) or {"noun": following}
    return "noun" in kinds or "adjective" in kinds


def _opens(following: str) -> bool:
    """Whether the next word begins a noun phrase or a phrase of place, or nothing comes."""
    listed = _LISTED.get(following)
    return (
        not following or following in _ENDS or listed in ("determiner", "number", "preposition", "to", "and", "while")
    )


def _after_a_verb(following: str) -> bool:
    if _opens(following) or _LISTED.get(following) in ("comma", "pronoun"):
        return True
    kinds = _kinds(following)
    return not kinds or "adverb" in kinds or "adjective" in kinds or "noun" in kinds or following.endswith("ing")


def _usually(text: str, tag: str) -> bool:
    return str(_lists().usual.get(text) or "").startswith(tag)


def _form(text: str, kinds: dict[str, str]) -> str:
    root = kinds.get("verb")
    if root is None or root == text:
        return ""
    if text.endswith("ing"):
        return "ing"
    return "s" if text.endswith("s") and text.startswith(root[:2]) else "ed"


def _guessed(text: str) -> dict[str, str]:
    """Kinds of a word that no list has, by its ending."""
    if text.endswith("ing") and len(text) > 5:
        return {"verb": text[:-3]}
    if text.endswith("ed") and len(text) > 4:
        return {"verb": text[:-2], "adjective": text}
    if text.endswith("ly") and len(text) > 4:
        return {"adverb": text}
    if "-" in text:
        return {"adjective": text, "noun": text}
    if text.endswith("s") and len(text) > 3 and not text.endswith("ss"):
        return {"noun": text[:-1]}
    return {"noun": text}
