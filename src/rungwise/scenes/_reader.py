"""Plain words about a scene read into a statement: the inverse of the grammar of captions.

Every caption and every query of :mod:`rungwise.scenes._captions` is read back to a statement with the same degrees.
Other words that people write are listed: they belong to no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from rungwise.scenes import _captions as captions
from rungwise.scenes._description import ATTRIBUTES, MAX_OBJECTS, Mention, Statement

_TOKEN = re.compile(r"\w+|[,;:.+&]")
_BOUNDARIES = {",", ";", ":", ".", "+", "&", "and"}
_ALONE = ("nothing else", "all alone", "alone", "only", "just")
_FRAMES = ("one of them", "one of which", "one of the")
_TRAILING = {"with stripes": "striped", "with dots": "dotted"}
_LONGEST = 6
"""Number of words of the longest phrase that is one relation."""


@dataclass(frozen=True)
class Reading:
    """Result of reading a text.

    Attributes:
        statement: Statement of the text; None where no fact was understood.
        unknown: Words that were not understood, in their order. The statement then leaves something out.

    >>> read_text("a red star above a purple elephant").unknown
    ('elephant',)
    """

    statement: Statement | None
    unknown: tuple[str, ...] = ()


def read_statement(text: str) -> Statement | None:
    """The statement of a text; None unless every word of it was understood."""
    reading = read_text(text)
    return None if reading.unknown else reading.statement


def read_text(text: str) -> Reading:
    """The statement of a text as far as it is understood, and the words that are not.

    A text names at most three objects, as pictures show no more; what goes beyond is not understood.

    >>> reading = read_text("two stars, one red and one blue")
    >>> [mention.colour for mention in reading.statement.mentions], reading.unknown
    (['red', 'blue'], ())
    """
    words = _Words()
    for lexeme in _lexemes(text):
        words.take(lexeme)
    return words.reading()


@dataclass(frozen=True)
class _Lexeme:
    """A word, or words that mean one thing together."""

    kind: str
    text: str
    value: str = ""
    names: tuple[str, ...] = ()
    number: int = 1


@cache
def _lexicon() -> Mapping[tuple[str, ...], _Lexeme]:
    """Everything that the grammar of captions can write, by its words; later entries replace earlier ones."""
    found: dict[tuple[str, ...], _Lexeme] = {}

    def add(words: tuple[str, ...], kind: str, value: str = "", names: tuple[str, ...] = (), number: int = 1) -> None:
        found[words] = _Lexeme(kind, " ".join(words), value, names, number)

    for word in captions.frame_words():
        add((word,), "frame")
    for phrase in _FRAMES:
        add(tuple(phrase.split()), "frame")
    for word in ("a", "an"):
        add((word,), "article")
    for word in _BOUNDARIES:
        add((word,), "boundary")
    for phrase in _ALONE:
        add(tuple(phrase.split()), "alone")
    for number, word in captions.NUMBERS.items():
        for one in (word, str(number)):
            add((one,), "number", number=number)
    for name, values in ATTRIBUTES.items():
        for value in values:
            for synonym in (value, *captions.WORDS.get(value, ())):
                if name == "shape":
                    add(tuple(synonym.split()), "noun", value)
                    add(tuple(captions.plural_of(synonym).split()), "noun", value, number=2)
                else:
                    add((synonym,), name, value)
    for synonym in captions.NO_SHAPE:
        add((synonym,), "noun")
        add((captions.plural_of(synonym),), "noun", number=2)
    for phrase, value in _TRAILING.items():
        add(tuple(phrase.split()), "texture", value)
    for names, phrases in captions.RELATION_WORDS.items():
        for phrase in phrases:
            add(tuple(phrase.split()), "relation", names=names)
    return found


def _lexemes(text: str) -> Iterator[_Lexeme]:
    lexicon, words = _lexicon(), _TOKEN.findall(text.lower())
    at = 0
    while at < len(words):
        for length in range(min(_LONGEST, len(words) - at), 0, -1):
            if (found := lexicon.get(tuple(words[at : at + length]))) is not None:
                break
        else:
            length, found = 1, _Lexeme("unknown", words[at])
        yield found
        at += length


@dataclass
class _Phrase:
    """Words for one object, or for several alike ones, in their order."""

    stated: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    number: int | None = None
    plural: bool = False
    noun: bool = False
    joined: bool = False
    """Whether nothing stands between this phrase and the one before, as in "the circle is red"."""


class _Words:
    """State of reading a text."""

    def __init__(self) -> None:
        self._mentions: list[Mention] = []
        self._relations: list[tuple[str, int, int]] = []
        self._unknown: list[str] = []
        self._count: int | None = None
        self._alone = False
        self._phrase = _Phrase()
        self._last: range = range(0)
        """Mentions of the phrase before."""
        self._pending: tuple[_Lexeme, range | None, int | None] | None = None
        """A relation that waits for one of its sides: its words, its subjects, its other side."""

    def take(self, lexeme: _Lexeme) -> None:
        match lexeme.kind:
            case "unknown":
                self._unknown.append(lexeme.text)
            case "frame":
                if self._phrase.noun:
                    self._close(joined=True)
            case "alone":
                self._alone = True
            case "boundary":
                self._close()
            case "article":
                self._close()
            case "number":
                self._close()
                self._phrase.number = lexeme.number
                self._phrase.words.append(lexeme.text)
            case "relation":
                self._close()
                self._relate(lexeme)
            case "noun":
                self._noun(lexeme)
            case attribute:
                self._attribute(attribute, lexeme)

    def reading(self) -> Reading:
        self._close()
        if self._pending is not None:
            self._unknown.append(self._pending[0].text)
        count = self._count if self._count is not None or not self._alone else len(self._mentions) or None
        statement = Statement(tuple(self._mentions), tuple(dict.fromkeys(self._relations)), count)
        return Reading(statement if statement.facts else None, tuple(self._unknown))

    def _noun(self, lexeme: _Lexeme) -> None:
        if self._phrase.noun:
            self._close()
        self._phrase.noun = True
        self._phrase.plural = lexeme.number > 1
        self._phrase.words.append(lexeme.text)
        if lexeme.value:
            self._phrase.stated["shape"] = lexeme.value

    def _attribute(self, name: str, lexeme: _Lexeme) -> None:
        if self._phrase.noun and not lexeme.text.startswith("with "):
            self._close(joined=True)
        if name in self._phrase.stated:
            self._unknown.append(lexeme.text)
            return
        self._phrase.stated[name] = lexeme.value
        self._phrase.words.append(lexeme.text)

    def _relate(self, lexeme: _Lexeme) -> None:
        if self._pending is not None:
            self._unknown.append(self._pending[0].text)
        self._pending = lexeme, self._last if self._mentions else None, None

    def _close(self, joined: bool = False) -> None:
        """End the phrase: it becomes one mention or several, or gives the number of objects."""
        phrase, self._phrase = self._phrase, _Phrase(joined=joined)
        if not phrase.words:
            return
        if phrase.number is not None and phrase.noun and not phrase.stated:
            self._count = phrase.number
            return
        if not phrase.noun and self._completes(phrase):
            return
        if not phrase.noun and not phrase.stated:
            self._unknown.extend(phrase.words)
            return
        many = phrase.number or (2 if phrase.plural else 1)
        if len(self._mentions) + many > MAX_OBJECTS:
            self._unknown.extend(phrase.words)
            return
        first = len(self._mentions)
        self._mentions += [Mention(**phrase.stated)] * many
        self._last = range(first, first + many)
        self._settle(self._last)

    def _completes(self, phrase: _Phrase) -> bool:
        """Whether a phrase without a noun describes the objects before it further: "one red", or "is red"."""
        for place in self._last if phrase.number == 1 or phrase.joined else ():
            mention = self._mentions[place]
            if not phrase.stated.keys() & mention.stated.keys():
                self._mentions[place] = replace(mention, **phrase.stated)
                return True
        return False

    def _settle(self, mentions: range) -> None:
        """Give the waiting relation its next side."""
        if self._pending is None:
            return
        lexeme, subjects, other = self._pending
        if subjects is None and other is None:
            self._pending = lexeme, None, mentions[0]
            return
        if other is None:
            other = mentions[0]
        self._relations += [(name, a, other) for name in lexeme.names for a in (subjects or mentions)]
        self._pending = None
