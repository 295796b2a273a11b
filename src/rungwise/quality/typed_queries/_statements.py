"""What texts state, in units: facts by the grammar of scene graphs, or words.

The grammar reads English captions; it needs the extra ``scene-graphs``. Where it is not installed, and for texts that
are no English sentences (other languages, titles of products), a unit is a word that says something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.text import evenly_spread
from rungwise.index.stores import words_of
from rungwise.language import JOINING

Unit = tuple[str, ...]
Statement = frozenset[Unit]
"""What a text states."""
Reader = Callable[[str], Statement]

_SAMPLE = 500
_ENGLISH = frozenset(("a", "an", "the", "in", "on", "of", "with", "and", "is", "are", "at", "to"))
_LEAST_ENGLISH = 0.5
"""Share of the texts with such words from which they are taken for English sentences."""
_WORD = "word"
_SHORTEST = 3
_MOST_MISSED = 4.0
"""Largest number of true pairs that are taken to be unstated, for each stated one; where all are stated by one text
alone, the bound has no end."""
_LIKE_OTHERS = 10
"""Number of pictures by which the estimate of a query is drawn to that of all queries."""
_UNKNOWN = 0.5
"""Number of unstated pictures for each stated one where no picture has several texts to tell it by."""


def reader_of(texts: Sequence[str]) -> tuple[Reader, str]:
    """How such texts are read, and its name for people: the grammar of English captions, or words."""
    some = [texts[at] for at in evenly_spread(len(texts), _SAMPLE).tolist()] if texts else []
    english = sum(not _ENGLISH.isdisjoint(words_of(text)) for text in some)
    if some and english >= _LEAST_ENGLISH * len(some) and (parse := _grammar()) is not None:
        return parse, "facts by the grammar of English captions"
    return words_in, "words"


@lru_cache(maxsize=1 << 16)
def words_in(text: str) -> Statement:
    """The words of a text that say something, without the s of a plural.

    >>> sorted(words_in("The black wallets of 2019"))
    [('word', 'black'), ('word', 'wallet')]
    """
    return frozenset(
        (_WORD, _singular(word))
        for word in words_of(text)
        if word not in JOINING and not any(map(str.isdigit, word)) and (len(word) >= _SHORTEST or not word.isascii())
    )


def _singular(word: str) -> str:
    return word[:-1] if len(word) > _SHORTEST and word.endswith("s") and not word.endswith("ss") else word


@cache
def _grammar() -> Reader | None:
    """Facts of a caption, in words of which synonyms are the same; None without the extra."""
    from rungwise.language.scene_graphs import Synonyms, canonical, chunking

    try:
        chunking.parse("a dog")
    except UserError:
        return None
    first: dict[frozenset[str], str] = {}
    same = {word: first.setdefault(sets, word) for word, sets in sorted(Synonyms.own().sets.items())}

    @lru_cache(maxsize=1 << 16)
    def facts_in(text: str) -> Statement:
        return frozenset(canonical(tuple(same.get(part, part) for part in fact)) for fact in chunking.parse(text))

    return facts_in


@dataclass(frozen=True)
class Statements:
    """What the texts of each picture state, as sparse matrices.

    Attributes:
        of_texts: Statement of each text.
        numbers: Number of each unit.
        by_text: (texts, units) sparse, 1 where a text states a unit.
        owners: (texts,) picture of each text.
        pictures: Number of pictures.
    """

    of_texts: tuple[Statement, ...]
    numbers: dict[Unit, int]
    by_text: Any
    owners: NDArray[np.int64]
    pictures: int

    def shares(self, queries: Sequence[Statement]) -> NDArray[np.float32]:
        """(queries, pictures) share of the units of each query that any text of each picture states."""
        from scipy import sparse

        owning = sparse.csr_matrix(
            (np.ones(len(self.owners), np.float32), (self.owners, np.arange(len(self.owners)))),
            shape=(self.pictures, len(self.owners)),
        )
        stated = owning @ self.by_text
        stated.data[:] = 1
        sizes = np.array([max(1, len(query)) for query in queries], np.float32)
        return np.asarray((self._rows(queries) @ stated.T).toarray() / sizes[:, None], np.float32)

    def contradicted(self, queries: Sequence[Statement]) -> NDArray[np.bool_]:
        """(queries, pictures) whether a picture's texts give something of the query another exact attribute.

        A picture of a white dog contradicts "black dog", unless a text of it says black as well.
        """
        families = {unit: family for unit in self.numbers if (family := _family(unit)) is not None}
        names = {family: number for number, family in enumerate(sorted(set(families.values())))}
        has = np.zeros((max(1, len(names)), self.pictures), bool)
        texts, units = self.by_text.nonzero()
        told = {self.numbers[unit]: names[family] for unit, family in families.items()}
        of_unit = np.array([told.get(number, -1) for number in range(len(self.numbers))], np.int64)
        some = of_unit[units] >= 0
        has[of_unit[units[some]], self.owners[texts[some]]] = True
        asked = [
            (at, unit, names[family])
            for at, query in enumerate(queries)
            for unit in query
            if (family := _family(unit)) in names
        ]
        units = list(dict.fromkeys(unit for _, unit, _ in asked))
        lacks = dict(zip(units, self.shares([frozenset((unit,)) for unit in units]) < 1, strict=True))
        found = np.zeros((len(queries), self.pictures), bool)
        for at, unit, name in asked:
            found[at] |= has[name] & lacks[unit]
        return found

    def missed(self, queries: Sequence[Statement]) -> NDArray[np.float64]:
        """(queries,) number of pictures that each is true of although no text of them states it, for each one stated.

        It is estimated by Chao's lower bound from the numbers of pictures of which one text alone states the query, and
        of which two do; of a query that few pictures state, more by those of all queries. It is one half where no
        picture has several texts, since nothing is known of it then.
        """
        texts = np.bincount(self.owners, minlength=self.pictures)
        stating = (self._rows(queries) @ self.by_text.T).tocoo()
        sizes = np.array([max(1, len(query)) for query in queries])
        whole = stating.data >= sizes[stating.row] - 0.5
        keys, counts = np.unique(
            stating.row[whole].astype(np.int64) * self.pictures + self.owners[stating.col[whole]], return_counts=True
        )
        several = texts[keys % self.pictures] > 1
        keys, counts = keys[several], counts[several]
        if not len(counts):
            return np.full(len(queries), _UNKNOWN)
        many = float(texts[keys % self.pictures].mean())
        stated, once, twice = (
            np.bincount(keys[some] // self.pictures, minlength=len(queries))
            for some in (counts > 0, counts == 1, counts == 2)
        )

        def unseen(once: Any, twice: Any) -> Any:
            return (many - 1) / many * once * (once - 1) / (2 * (twice + 1))

        usual = min(_MOST_MISSED, unseen(once.sum(), twice.sum()) / stated.sum())
        own = (unseen(once, twice) + _LIKE_OTHERS * usual) / (stated + _LIKE_OTHERS)
        return np.asarray(np.minimum(_MOST_MISSED, own))

    def _rows(self, queries: Sequence[Statement]) -> Any:
        return _incidence([[self.numbers[unit] for unit in query if unit in self.numbers] for query in queries], self)


def statements_of(texts: Sequence[str], owners: NDArray[np.int64], pictures: int, reader: Reader) -> Statements:
    """What these texts of pictures state.

    >>> found = statements_of(["black wallet", "red belt"], np.array([0, 1]), 2, words_in)
    >>> found.shares([words_in("wallets"), words_in("red wallet")])
    array([[1. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """
    read = tuple(map(reader, texts))
    numbers: dict[Unit, int] = {}
    for one in read:
        for unit in sorted(one):
            numbers.setdefault(unit, len(numbers))
    empty = Statements(read, numbers, None, np.asarray(owners, np.int64), pictures)
    by_text = _incidence([[numbers[unit] for unit in one] for one in read], empty)
    return Statements(read, numbers, by_text, empty.owners, pictures)


def _incidence(rows: Sequence[Sequence[int]], of: Statements) -> Any:
    from scipy import sparse

    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    columns = np.array([column for row in rows for column in row], np.int64)
    return sparse.csr_matrix(
        (np.ones(len(columns), np.float32), columns, starts), shape=(len(rows), max(1, len(of.numbers)))
    )


def _family(unit: Unit) -> tuple[str, str] | None:
    """What a fact gives an attribute of: a thing and a family of attributes that exclude each other."""
    from rungwise.language.scene_graphs import family_of

    if len(unit) != 2 or unit[0] == _WORD:
        return None
    family = family_of(unit[1])
    return None if family is None else (unit[0], family)
