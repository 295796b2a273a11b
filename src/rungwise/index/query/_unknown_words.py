"""Words of a query that the model never learnt, and words much like them that it knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.formats import IN_FILE
from rungwise.core.output import short_repr
from rungwise.core.text import near_names
from rungwise.index.stores import words_of
from rungwise.language import WordVectors
from rungwise.similarity import unit_rows

MOST_NEAR = 3
_ALIKE = 0.8
"""Least :func:`~rungwise.core.text.near_names`: "giraff" and "giraffe" have 0.92, "boots" and "boats" 0.8."""
_MISSPELT = 0.85
"""Least likeness for words that may be right as they are."""
_TURNED = 0.75
"""Least likeness of words of the same letters: "hores" and "horse" have 0.8, "saree" and "erase" 0.4."""
_LOOKED_UP = 10
"""Words near in spelling that are looked up in the collection."""
_SHORTEST = 4
"""Number of letters of the shortest word that may be misspelt; shorter ones are like too many others."""
_LEAST_COSINE = 0.5
"""Least cosine of words that count as near in meaning."""
_MOST_EXPLAINED = 20
"""Words of one query for which near ones are looked for among all known words; further ones are named alone."""
_CAPTIONS_LOOKED_AT = 50_000
_WORDS_LOOKED_AT = 2_000


@dataclass(frozen=True)
class UnknownWord:
    """A word that the model does not know.

    Attributes:
        word: The word as it stands in the query.
        near: Words much like it, the nearest first; captions or columns have them, and the model knows them.
        found: Whether a caption or a column has the word, so that full text finds it.
        misspelt: Whether the model can read the word piece by piece, but neither it nor the collection has it as a
            word.

    >>> print(UnknownWord("sneakers", ("shoes", "flats"), found=True))
    the model does not know 'sneakers'; near words it knows: shoes, flats; captions or columns have it
    >>> print(UnknownWord("giraff", ("giraffe",), misspelt=True))
    'giraff' may be misspelt; in the collection there is: giraffe
    """

    __pydantic_config__ = IN_FILE

    word: str
    near: tuple[str, ...] = ()
    found: bool = False
    misspelt: bool = False

    __repr__ = short_repr

    def __str__(self) -> str:
        near = ", ".join(self.near)
        if self.misspelt:
            return f"{self.word!r} may be misspelt; in the collection there is: {near}"
        line = f"the model does not know {self.word!r}"
        line += f"; near words it knows: {near}" if near else ""
        return line + ("; captions or columns have it" if self.found else "")


class Knows(Protocol):
    """The words that a model knows, as a :class:`~rungwise.models.DualEncoder` tells them."""

    @property
    def known_words(self) -> Collection[str]:
        """Whole words of the model's vocabulary."""
        ...

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Words of a text that the model never learnt."""
        ...


class Meaning:
    """Nearness of words in meaning, by a vector for each.

    Args:
        encode: Gives (n, D) vectors of words; zeros for words without one.
        encode_known: The same for many words that are asked for again and again; ``encode`` if None.

    >>> table = {"sneakers": [1, 0], "shoes": [0.9, 0.1], "sea": [0, 1]}
    >>> Meaning(lambda words: [table.get(word, [0, 0]) for word in words]).near("sneakers", ["sea", "shoes", "zyx"], 2)
    ('shoes',)
    """

    def __init__(
        self,
        encode: Callable[[Sequence[str]], ArrayLike],
        encode_known: Callable[[Sequence[str]], ArrayLike] | None = None,
    ) -> None:
        self._encode = encode
        self._encode_known = encode_known or encode
        self._known: tuple[tuple[str, ...], NDArray[np.float32]] | None = None

    @classmethod
    def of(cls, vectors: WordVectors) -> Meaning:
        """Meaning by a file of word vectors, such as GloVe's."""
        nothing = np.zeros(vectors.dimension, np.float32)
        return cls(
            lambda words: np.array(
                [vectors.table[vectors.row[word]] if word in vectors.row else nothing for word in words], np.float32
            )
        )

    def near(self, word: str, among: Sequence[str], most: int = MOST_NEAR) -> tuple[str, ...]:
        """The words of ``among`` that mean nearly the same, the nearest first."""
        if not among:
            return ()
        words = tuple(among)
        if self._known is None or self._known[0] != words:
            self._known = words, unit_rows(self._encode_known(words))
        cosines = self._known[1] @ unit_rows(self._encode([word]))[0]
        best = np.argsort(-cosines, kind="stable")[:most]
        return tuple(words[place] for place in best.tolist() if cosines[place] >= _LEAST_COSINE)


def near_in_spelling(word: str, among: Iterable[str], alike: float = _ALIKE, most: int = MOST_NEAR) -> tuple[str, ...]:
    """The words that are spelt nearly alike, the nearest first.

    >>> near_in_spelling("giraff", ["giraffe", "graph", "dog"])
    ('giraffe',)
    """
    if len(word) < _SHORTEST:
        return ()
    of_length = [one for one in among if abs(len(one) - len(word)) <= 2 and one != word]
    turned = [one for one in of_length if sorted(one) == sorted(word)]  # letters that changed places
    turned = near_names(word, turned, most, _TURNED)
    return tuple(dict.fromkeys([*turned, *near_names(word, of_length, most, alike)]))[:most]


def frequent_words(captions: Iterable[str]) -> tuple[str, ...]:
    """The words of captions, the most frequent first; only the first captions are read, and rare words are left out."""
    counts = Counter(word for text in islice(captions, _CAPTIONS_LOOKED_AT) for word in dict.fromkeys(words_of(text)))
    return tuple(word for word, _ in counts.most_common(_WORDS_LOOKED_AT) if len(word) > 1 and word.isalpha())


def unknown_words(
    texts: Iterable[str],
    model: Knows,
    has_word: Callable[[str], bool],
    frequent: Callable[[], Sequence[str]],
    meaning: Meaning | None = None,
) -> tuple[UnknownWord, ...]:
    """The words of a query that the model does not know, or that may be misspelt.

    Near words are proposed only where the collection has them: others would find nothing.

    A model with a vocabulary of words says itself what it does not know. A model that reads pieces of words reads every
    word; for it a word counts as misspelt if neither the vocabulary nor the collection has it and the collection has a
    word that is written nearly alike. A word that begins with such a word is taken for a form of it.

    ``has_word`` tells whether a caption or column has a word. ``frequent`` gives frequent words of the captions, and is
    called only where something is unknown.

    >>> from types import SimpleNamespace
    >>> gru = SimpleNamespace(known_words={"shoe", "boat"}, unknown_words=lambda text: ("boats",))
    >>> unknown_words(["boats"], gru, lambda word: True, lambda: ())
    (UnknownWord(word='boats', near=('boat',), found=True, misspelt=False),)
    """
    said: dict[str, UnknownWord] = {}
    known = model.known_words
    left = _MOST_EXPLAINED
    spelt: frozenset[str] | None = None
    for text in texts:
        unknown = model.unknown_words(text)
        for word in unknown:
            if word not in said:
                near = _near(word.lower(), known, has_word, frequent, meaning) if left else ()
                said[word] = UnknownWord(word, near, has_word(word))
                left -= left > 0
        for word in dict.fromkeys(words_of(text)) if known and not unknown else ():
            if not left:
                break
            if word in said or word in known or len(word) < _SHORTEST or not word.isalpha() or has_word(word):
                continue
            left -= 1
            spelt = spelt or frozenset((*known, *frequent()))
            near = _in_collection(near_in_spelling(word, spelt, _MISSPELT, _LOOKED_UP), has_word)
            if near and not any(word.startswith(one) for one in near):
                said[word] = UnknownWord(word, near, misspelt=True)
    return tuple(said.values())


def _near(
    word: str,
    known: Collection[str],
    has_word: Callable[[str], bool],
    frequent: Callable[[], Sequence[str]],
    meaning: Meaning | None,
) -> tuple[str, ...]:
    """Words of the collection that the model knows: those near in spelling, then those near in meaning."""
    near = _in_collection(near_in_spelling(word, known, most=_LOOKED_UP), has_word)
    if meaning is not None and len(near) < MOST_NEAR:
        among = [one for one in frequent() if one in known]
        near += tuple(one for one in meaning.near(word, among) if one not in near)
    return near[:MOST_NEAR]


def _in_collection(words: Iterable[str], has_word: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(islice(filter(has_word, words), MOST_NEAR))
