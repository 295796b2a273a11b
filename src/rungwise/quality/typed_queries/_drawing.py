"""Which phrases and values of a collection become queries: common and rare ones, of one word and of several."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rungwise.language import phrases_of
from rungwise.quality.typed_queries._statements import Reader, Statement, Statements
from rungwise.quality.typed_queries._texted_pictures import Values

_MOST_WORDS = 4
_FEW, _LEAST = 20, 2
"""Number of pictures from which on a phrase must be stated of this many pictures."""
_LONG_FROM = 3
"""Number of words from which on phrases are drawn together."""
_COMMON = 0.5
"""Share of the pictures from which on a phrase or a value picks out nothing."""
_LONGEST_VALUE = 60
_MOST_VALUES = 2000
"""Largest number of distinct texts of a column that are looked at; a column of names or notes has more."""


@dataclass(frozen=True)
class DrawnQuery:
    """A query that was drawn.

    Attributes:
        text: What a person would type.
        statement: What it states, if it is of captions; else empty.
        values: Columns and the text that a picture must have in each, if it is of columns.
    """

    text: str
    statement: Statement = frozenset()
    values: tuple[tuple[str, str], ...] = ()


def phrases(texts: Sequence[str], told: Statements, reader: Reader, count: int, seed: int) -> list[DrawnQuery]:
    """Phrases of one to four words that stand in the texts of several pictures, as they are mostly written.

    A phrase counts where, read alone, it states what its text states. Of each number of words and each size of the
    number of pictures, about equally many are drawn.
    """
    ways: dict[Statement, Counter[str]] = defaultdict(Counter)
    pictures: dict[Statement, set[int]] = defaultdict(set)
    for text, stated, owner in zip(texts, told.of_texts, told.owners.tolist(), strict=True):
        for words, written in phrases_of([text]).items():
            if len(words) > _MOST_WORDS:
                continue
            phrase = written.lower()
            statement = reader(phrase)
            if statement and statement <= stated:
                ways[statement][phrase] += 1
                pictures[statement].add(owner)
    found = {
        DrawnQuery(min(of, key=lambda way: (-of[way], way)), statement): len(pictures[statement])
        for statement, of in ways.items()
    }
    return _spread(found, told.pictures, count, seed)


def values(columns: Mapping[str, Sequence[Values]], count: int, seed: int) -> tuple[list[DrawnQuery], list[DrawnQuery]]:
    """Texts of columns that several pictures have, and pairs of texts of two columns that several pictures have."""
    holders: dict[tuple[str, str], set[int]] = defaultdict(set)
    pictures = 0
    for name, cells in columns.items():
        pictures = len(cells)
        if len({text for cell in cells for text in cell or ()}) > min(_MOST_VALUES, max(_FEW, len(cells) // 2)):
            continue
        for at, cell in enumerate(cells):
            for text in cell or ():
                if len(text) <= _LONGEST_VALUE and any(map(str.isalpha, text)):
                    holders[name, text].add(at)
    single = {DrawnQuery(text, values=((name, text),)): len(of) for (name, text), of in holders.items()}
    usual = {key: of for key, of in holders.items() if len(of) >= _least(pictures)}
    both: dict[DrawnQuery, int] = {}
    for number, ((first, of_first), (second, of_second)) in enumerate(combinations(sorted(usual.items()), 2)):
        if number >= count * _PAIRS_TRIED:
            break
        if first[0] != second[0] and len(together := of_first & of_second) >= _least(pictures):
            # People say both orders: "red shirts", and "shirts red" where a language has it so.
            ordered = (first, second) if number % 2 else (second, first)
            both[DrawnQuery(" ".join(text for _, text in ordered), values=ordered)] = len(together)
    return _spread(single, pictures, count, seed), _spread(both, pictures, count, seed)


_PAIRS_TRIED = 200
"""Number of pairs that are looked at for each that is wanted."""


def _least(pictures: int) -> int:
    return 1 if pictures < _FEW else _LEAST


def _spread(found: Mapping[DrawnQuery, int], pictures: int, count: int, seed: int) -> list[DrawnQuery]:
    """At most ``count`` of the queries: of each length and size of the number of pictures about equally many."""
    classes: dict[tuple[int, int], list[DrawnQuery]] = defaultdict(list)
    for query, many in found.items():
        if _least(pictures) <= many <= _COMMON * pictures:
            classes[min(_LONG_FROM, len(query.text.split())), int(np.log2(many))].append(query)
    rng = np.random.default_rng(seed)
    for some in classes.values():
        some.sort(key=lambda query: query.text)
        rng.shuffle(some)
    drawn: list[DrawnQuery] = []
    while len(drawn) < count and any(classes.values()):
        for key in sorted(classes):
            if classes[key] and len(drawn) < count:
                drawn.append(classes[key].pop())
    return drawn
