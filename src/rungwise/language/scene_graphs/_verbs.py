"""Rules that decide whether a word that may be a verb is one where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._families import COLOURS
from rungwise.language.scene_graphs._lexicon import ENDS, LISTED, Kind, Word, kinds_of, usually


@dataclass(frozen=True)
class Place:
    """The surroundings of a word that may be a verb.

    Attributes:
        text: The word.
        kinds: Kinds that it can be, with its root as each.
        last: The word before.
        following: The next word.
        before: All words before.
    """

    text: str
    kinds: Mapping[str, str]
    last: Word
    following: str
    before: list[Word]

    @property
    def helped(self) -> bool:
        """Whether it stands after "is", "can", "to", "who" or "they", also with "not" between."""
        between = self.last.text in known.NEGATIONS and len(self.before) > 1
        return (self.before[-2] if between else self.last).kind in ("be", "modal", "to", "pronoun", "who")

    @property
    def only(self) -> bool:
        """Whether it can be nothing but a verb."""
        return set(self.kinds) == {"verb"}

    def after(self, *kinds: Kind) -> bool:
        """Whether it stands right after a word of one of these kinds."""
        return self.last.kind in kinds

    def clause(self) -> list[Word]:
        """The words before it from the last "while" or "who" on."""
        starts = [place for place, word in enumerate(self.before) if word.kind in ("while", "who")]
        return self.before[starts[-1] :] if starts else self.before


def _after_ing(at: Place) -> bool:
    """Riding: a verb after a noun nearly always; elsewhere where no noun follows that it could describe."""
    if at.after("noun") and "noun" in at.kinds and usually(at.text, "NN"):
        return LISTED.get(at.following) == "determiner"  # a museum setting, but a man painting a wall
    if at.helped or at.after("noun", "adverb", "verb") or _in_colour(at):
        return True
    if at.text in known.TRANSITIVE and at.after("comma", "and"):
        return True
    if at.after("while", "comma", "and", "preposition"):
        return _opens(at.following) or (not goes_on(at.following) and "noun" not in at.kinds) or at.after("while")
    return False


def _in_colour(at: Place) -> bool:
    """Whether it stands after "a man in black"."""
    return at.last.text in COLOURS and len(at.before) > 1 and at.before[-2].text == "in"


def _after_ed(at: Place) -> bool:
    """Parked: a verb after a noun or "is"."""
    if at.helped or at.after("noun", "adverb"):
        return not (at.after("be") and "adjective" in at.kinds and goes_on(at.following))
    return at.after("and", "while", "comma") and not goes_on(at.following)


def _after_s(at: Place) -> bool:
    """Rides: a verb after a single thing, where a phrase follows that a verb can have."""
    if at.helped and not at.after("be", "to"):
        return True
    if at.after("noun") and at.last.form != "s":
        single = _single(at.before)
        if single is not False and (usually(at.text, "VBZ") or LISTED.get(at.following) == "determiner"):
            return True
        acted = any(word.kind in ("verb", "be") for word in at.clause())
        begun = bool(at.clause()) and at.clause()[0].kind in ("while", "who")
        alive = at.last.root in known.LIVING and not _in_a_place(at.before)  # the dog leaps, not: with baby toys
        able = single is True or ((begun or alive) and not acted and single is None)
        return able and _after_a_verb(at.following)
    if at.after("noun"):  # a bus full of tourists turns a corner
        return LISTED.get(at.following) in ("determiner", "preposition") and _single(at.before) is None
    if _in_colour(at):
        return _opens(at.following)
    return at.after("adverb", "and", "while") and (at.only or usually(at.text, "VBZ")) and _after_a_verb(at.following)


def _after_plain(at: Place) -> bool:
    """Ride: a verb after several things."""
    if at.helped:
        return at.only or not (at.after("be") or (at.after("to") and goes_on(at.following) and "noun" in at.kinds))
    if at.after("noun") and (at.last.form == "s" or _conjoined(at.before)):
        return (
            at.only or usually(at.text, "VB") or "noun" not in at.kinds or _opens(at.following)
        ) and at.text not in COLOURS
    if at.last.text in ("all", "both") and len(at.before) > 1:
        return at.before[-2].kind == "noun"
    if at.after("adverb"):
        return at.only and len(at.before) > 1
    acted = [word for word in at.before if word.kind == "verb"]
    return at.after("and") and bool(acted) and (at.only or (acted[-1].form == "" and _opens(at.following)))


_RULES: dict[str, Callable[[Place], bool]] = {
    "ing": _after_ing, "ed": _after_ed, "s": _after_s, "": _after_plain,
}  # fmt: skip


def is_verb(form: str, at: Place) -> bool:
    """Whether a word that may be a verb of this form (``Word.form``) is one."""
    return _RULES[form](at)


def _single(before: list[Word]) -> bool | None:
    """Whether the noun phrase that ends here is of one thing; None where nothing tells."""
    for place in reversed(range(len(before))):
        word = before[place]
        if word.kind == "determiner":
            return True if word.text in known.SINGLE else None
        if word.kind == "number":
            return word.root == "1"
        if word.kind == "owner":
            return None
        joined = word.kind in ("and", "comma") and place and before[place - 1].kind == "adjective"  # black and white
        if not joined and word.kind not in ("noun", "adjective", "adverb"):
            break
    return None


def _in_a_place(before: list[Word]) -> bool:
    """Whether a preposition stands right before the nouns and adjectives that end here."""
    outside = (word for word in reversed(before) if word.kind not in ("noun", "adjective"))
    return next(outside, before[0]).kind == "preposition"


def _conjoined(before: list[Word]) -> bool:
    """Whether two things are named together, so that their verb has no ending."""
    kinds = [word.kind for word in before[-5:]]
    return "and" in kinds and "verb" not in kinds


def goes_on(following: str) -> bool:
    """Whether the next word may be another one of the same noun phrase."""
    if not following or following in ENDS or following in LISTED:
        return False
    kinds = kinds_of(following) or {"noun": following}
    return "noun" in kinds or "adjective" in kinds


def _opens(following: str) -> bool:
    """Whether the next word begins a noun phrase or a phrase of place, or nothing follows."""
    listed = LISTED.get(following)
    return not following or following in ENDS or listed in ("determiner", "number", "preposition", "to", "and", "while")


def _after_a_verb(following: str) -> bool:
    if _opens(following) or LISTED.get(following) in ("comma", "pronoun"):
        return True
    kinds = kinds_of(following)
    return not kinds or "adverb" in kinds or "adjective" in kinds or "noun" in kinds or following.endswith("ing")
