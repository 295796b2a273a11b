"""The words of a caption as phrases: noun phrases, verbs, relations, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._lexicon import Word

_LONGEST_PHRASE = max(map(len, known.PHRASES))
_FIRST_WORDS = frozenset(words[0] for words in known.PHRASES)
PhraseKind = Literal["things", "relation", "verb", "said", "be", "and", "while", "who", "comma", "to", "pronoun"]
_ALONE: dict[str, PhraseKind] = {
    "be": "be", "and": "and", "while": "while", "who": "who", "comma": "comma", "to": "to", "pronoun": "pronoun",
}  # fmt: skip


@dataclass(frozen=True)
class Thing:
    """A thing that a noun phrase names.

    Attributes:
        name: Noun in the singular.
        attributes: Attributes in the phrase.
        owner: Owner of the thing: "the man's hat".
        nothing: The phrase denies the thing: "no people".
    """

    name: str
    attributes: tuple[str, ...] = ()
    owner: Thing | None = None
    nothing: bool = False


@dataclass(frozen=True)
class Phrase:
    """A phrase of a caption.

    Attributes:
        kind: Kind of the phrase; ``"said"`` is what stands after "is": adjectives without a noun.
        text: Last word of the phrase; for a relation all of its words.
        things: Things that a noun phrase names, several where they are joined.
        names: Names of a relation, root of a verb, or adjectives without a noun.
        form: Form of a verb, as in :class:`rungwise.language.scene_graphs._lexicon.Word`.
        denied: A verb, a relation or adjectives with "not". Denied things are ``nothing``.
    """

    kind: PhraseKind
    text: str = ""
    things: tuple[Thing, ...] = ()
    names: tuple[str, ...] = ()
    form: str = ""
    denied: bool = False

    def absent(self) -> Phrase:
        """The same phrase with its things denied."""
        return replace(self, things=tuple(replace(thing, nothing=True) for thing in self.things))


def phrases(words: list[Word]) -> list[Phrase]:
    """The words as phrases from left to right; noun phrases that "and" or commas join are one."""
    found: list[Phrase] = []
    place = 0
    denied = False
    while place < len(words):
        word = words[place]
        names, length = _several_words(words, place)
        before = len(found)
        if word.text in known.NEGATIONS and [one.text for one in words[place + 1 : place + 2]] != ["only"]:
            denied, place = True, place + 1
        elif names:
            found.append(Phrase("relation", " ".join(one.text for one in words[place : place + length]), names=names))
            place += length
        elif word.kind in ("determiner", "number", "adjective", "noun"):
            phrase, place = _noun_phrase(words, place)
            found += [] if phrase is None else [phrase]
        else:
            if word.kind == "be" and found and found[-1].names == ("have",):  # has been
                found.pop()
                before -= 1
            found += _of_one_word(word)
            place += 1
        if denied and len(found) > before and found[-1].kind not in ("to", "be"):
            found[-1] = replace(found[-1].absent(), denied=True)
            denied = False
    return _with_lists(_without_frames(found))


def _of_one_word(word: Word) -> list[Phrase]:
    if word.kind == "preposition":
        return [Phrase("relation", word.text, names=(word.text,))]
    if word.kind == "verb":
        return [Phrase("verb", word.text, names=(word.root,), form=word.form)]
    if word.kind == "modal" and word.text in ("has", "have", "had"):
        return [Phrase("verb", word.text, names=("have",), form="s")]
    return [Phrase(_ALONE[word.kind], word.text)] if word.kind in _ALONE else []


def _several_words(words: list[Word], place: int) -> tuple[tuple[str, ...], int]:
    """The longest relation of several words that begins here, and its number of words."""
    if words[place].text not in _FIRST_WORDS:
        return (), 0
    for length in range(min(_LONGEST_PHRASE, len(words) - place), 1, -1):
        found = known.PHRASES.get(tuple(word.text for word in words[place : place + length]))
        if found:
            return found, length
    return (), 0


def _noun_phrase(words: list[Word], place: int) -> tuple[Phrase | None, int]:
    """The noun phrase that begins here, or adjectives alone, and where the next phrase begins."""
    begun = place
    attributes: list[str] = []
    nouns: list[Word] = []
    while place < len(words) and not (place > begun and _several_words(words, place)[0]):
        word = words[place]
        if word.kind == "noun":
            nouns.append(word)
        elif nouns:
            break
        elif word.kind in ("number", "adjective"):
            attributes.append(word.root)
        elif not (
            (word.kind == "determiner" and not attributes)
            or (word.kind in ("and", "comma") and attributes and _adjective_follows(words, place))
            or (word.kind == "adverb" and place + 1 < len(words) and words[place + 1].kind in ("adjective", "number"))
        ):
            break
        place += 1
    first = words[begun]
    if not nouns:
        return _without_noun(first, tuple(attributes)), max(place, begun + 1)
    thing = Thing(nouns[-1].root, (*attributes, *(noun.text for noun in nouns[:-1])), nothing=first.text == "no")
    if place + 1 < len(words) and words[place].kind == "owner":
        owned, after = _noun_phrase(words, place + 1)
        if owned is not None and owned.things:
            return replace(owned, things=(replace(owned.things[0], owner=thing),)), after
    return Phrase("things", nouns[-1].text, (thing,)), place


def _without_noun(first: Word, attributes: tuple[str, ...]) -> Phrase | None:
    """Adjectives alone: an attribute of something, or a thing where an article stands before them ("the young")."""
    if not attributes:
        return None
    if first.kind == "determiner" and not attributes[-1].isdigit():
        return Phrase("things", attributes[-1], (Thing(attributes[-1], attributes[:-1]),))
    if first.kind in ("determiner", "number"):
        return Phrase("pronoun", attributes[-1])  # "the two", "one"
    return Phrase("said", attributes[-1], names=attributes)


def _adjective_follows(words: list[Word], place: int) -> bool:
    """Whether the sign or "and" here joins adjectives of one noun: red and white bus."""
    rest = words[place + 1 : place + 5]
    if rest and rest[0].kind == "and":
        rest = rest[1:]
    return len(rest) > 1 and rest[0].kind == "adjective" and rest[1].kind in ("adjective", "noun", "and", "comma")


def _without_frames(found: list[Phrase]) -> list[Phrase]:
    """Phrases without "picture of" and "group of"; "pair of" leaves the number two."""
    out: list[Phrase] = []
    said: tuple[str, ...] = ()
    for place, phrase in enumerate(found):
        following = found[place + 1 : place + 3]
        before_of = bool(following) and following[0].text == "of" and len(following) == 2
        after_it = out[-1] if out else None
        if phrase.kind in ("things", "said") and before_of and phrase.text in known.FRAMES | known.PARTITIVES:
            if phrase.text in known.TWO:
                said = ("2",)
            elif phrase.text in known.KINDS and phrase.things:
                said = phrase.things[0].attributes
            continue
        if phrase.text == "up" and out and out[-1].text == "close":
            out.pop()
            continue
        if phrase.text == "of" and place and found[place - 1] is not after_it:
            continue  # its noun went
        if phrase.kind == "things" and said:
            first = phrase.things[0]
            phrase = replace(phrase, things=(replace(first, attributes=(*first.attributes, *said)), *phrase.things[1:]))
            said = ()
        out.append(phrase)
    return out


def _with_lists(found: list[Phrase]) -> list[Phrase]:
    """Phrases where noun phrases that "and" or commas join have become one."""
    out: list[Phrase] = []
    place = 0
    while place < len(found):
        phrase = found[place]
        after = _list_goes_on(found, place) if out and out[-1].kind == "things" else None
        if after is None:
            out.append(phrase)
            place += 1
        else:
            out[-1] = replace(out[-1], things=out[-1].things + found[after].things)
            place = after + 1
    return out


def _list_goes_on(found: list[Phrase], place: int) -> int | None:
    """Place of the next noun phrase of a list; None where there is none, or it begins a clause of its own."""
    if found[place].kind not in ("and", "comma"):
        return None
    after = place + 1
    joined = found[place].kind == "and"
    if after < len(found) and found[place].kind == "comma" and found[after].kind == "and":
        after, joined = after + 1, True
    if after >= len(found) or found[after].kind != "things":
        return None
    rest = found[after + 1 :]
    acts = bool(rest) and (
        (rest[0].kind == "be" and rest[0].text != "being") or (rest[0].kind == "verb" and rest[0].form in ("", "s"))
    )
    if acts and any(
        phrase.kind == "be" or (phrase.kind == "verb" and phrase.form in ("", "s")) for phrase in found[:place]
    ):
        return None
    if joined:
        return after
    # After a comma alone: a list where "and" follows among noun phrases, or nothing else does.
    for phrase in rest:
        if phrase.kind == "and":
            return after
        if phrase.kind not in ("comma", "things"):
            return None
    return after
