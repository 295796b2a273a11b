"""Facts of scene graphs as numbers: a vocabulary, which facts are alike, and which facts an image's captions answer.

The likeness of two facts is the product of the likeness of their parts: object, attribute or relation, second object. A
word is like itself and its synonyms to degree 1; with word vectors it is like other words to a lower degree. Colours,
numbers, sizes and places are exact families: red is no bit of blue, however near their vectors are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.language.scene_graphs import Fact, SceneGraph, Synonyms, family_of
from rungwise.relevance._base import Block, Positions
from rungwise.relevance.embedding import WordSimilarity

SOMETHING = "something"
"""Stands for the object that has an attribute, where it does not matter which one it is. No other word is like it."""

_CHUNK = 1024
"""Number of words that are compared with all words at a time."""
_LEAST_FACT = 0.05
"""Lowest likeness of two facts that counts, so that rows stay short."""


class Sparse(NamedTuple):
    """Rows of numbers, most of them 0.

    Attributes:
        starts: (rows + 1,) int64, where each row begins.
        columns: (entries,) int32, rising within a row where the function that makes them says so.
        values: (entries,) float32 values.
    """

    starts: Positions
    columns: NDArray[np.int32]
    values: Block

    def row(self, place: int) -> tuple[NDArray[np.int32], Block]:
        """Columns and values of a row."""
        here = slice(self.starts[place], self.starts[place + 1])
        return self.columns[here], self.values[here]


class FactNumbers:
    """The facts of some captions, numbered.

    Args:
        graphs: (captions,) facts of each caption.

    Attributes:
        facts: Every different fact, sorted.
        starts: (captions + 1,) int64, where the facts of each caption begin.
        columns: int32, numbers of facts, rising within a caption.
    """

    def __init__(self, graphs: Sequence[SceneGraph]) -> None:
        self.facts: tuple[Fact, ...] = tuple(sorted({fact for graph in graphs for fact in graph}))
        number = {fact: place for place, fact in enumerate(self.facts)}
        rows = [sorted(number[fact] for fact in graph) for graph in graphs]
        self.starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
        self.columns = np.array([fact for row in rows for fact in row], np.int32)


def alike(facts: Sequence[Fact], synonyms: Synonyms, likeness: WordSimilarity | None) -> Sparse:
    """For each fact the facts that it is like, itself with degree 1 among them.

    Args:
        facts: Different facts.
        synonyms: Which words mean the same.
        likeness: Degrees between 0 and 1 for other words; None knows only synonyms.

    >>> found = alike([("child",), ("dog",), ("kid",)], Synonyms.own(), None)
    >>> found.starts.tolist(), found.columns.tolist()
    ([0, 2, 3, 5], [0, 2, 1, 0, 2])
    """
    from rungwise.relevance.scene_graph import _fact_kernels as fact_kernels

    words = sorted({part for fact in facts for part in fact})
    number = {word: place for place, word in enumerate(words)}
    parts = np.full((len(facts), 3), -1, np.int32)
    for place, fact in enumerate(facts):
        parts[place, : len(fact)] = [number[part] for part in fact]
    near = _alike_words(words, synonyms, likeness)
    holders = np.argsort(parts[:, 0], kind="stable").astype(np.int32)
    counts = np.bincount(parts[:, 0], minlength=len(words)) if len(facts) else np.zeros(len(words), np.int64)
    holder_starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    given = parts, holder_starts, holders, near, np.float32(_LEAST_FACT)
    return _in_two_passes(partial(fact_kernels.alike_facts, *given), len(facts))


def answered(numbers: FactNumbers, near: Sparse, groups: Sequence[Positions], weights: Block) -> tuple[Sparse, Block]:
    """For each group of captions every fact that is like one of theirs, with the highest degree.

    Args:
        numbers: The captions' facts.
        near: Likeness of facts, from :func:`alike`.
        groups: Positions of the captions of each group, such as the references of an image.
        weights: (facts,) weight of each fact.

    Returns:
        Facts by group, rising, and (groups,) float32 weights of the different facts of each: its size.
    """
    from rungwise.relevance.scene_graph import _fact_kernels as fact_kernels

    owners, facts = once(numbers, groups)
    rows = _in_two_passes(partial(fact_kernels.merged_facts, owners, facts, near), len(groups))
    return rows, sums(weights[facts] * different(owners, facts, near), owners)


def once(numbers: FactNumbers, groups: Sequence[Positions]) -> tuple[Positions, NDArray[np.int32]]:
    """The different facts of each group of captions.

    Args:
        numbers: The captions' facts.
        groups: Positions of the captions of each group.

    Returns:
        (groups + 1,) int64, where the facts of each group begin, and int32 facts, rising within a group.
    """
    counts = np.diff(numbers.starts)
    captions = np.concatenate([np.asarray(group, np.int64) for group in groups] or [np.empty(0, np.int64)])
    parts = [numbers.columns[numbers.starts[one] : numbers.starts[one + 1]] for one in captions]
    facts = np.concatenate(parts) if parts else np.empty(0, np.int32)
    group_of = np.repeat(np.arange(len(groups)), [int(counts[group].sum()) for group in groups])
    keys = np.unique(group_of * len(numbers.facts) + facts)
    group_of, facts = np.divmod(keys, max(1, len(numbers.facts)))
    starts = np.concatenate(([0], np.cumsum(np.bincount(group_of, minlength=len(groups))))).astype(np.int64)
    return starts, facts.astype(np.int32)


def different(starts: Positions, facts: NDArray[np.int32], near: Sparse) -> NDArray[np.bool_]:
    """(facts,) bool, which facts count: the first of those in a set that say the same by synonyms.

    Args:
        starts: (sets + 1,) int64, where the facts of each set begin.
        facts: Numbers of facts, rising within a set.
        near: Likeness of facts, from :func:`alike`.

    >>> near = alike([("child",), ("dog",), ("kid",)], Synonyms.own(), None)
    >>> different(np.array([0, 3, 4]), np.array([0, 1, 2, 2], np.int32), near).tolist()
    [True, True, False, True]
    """
    from rungwise.relevance.scene_graph import _fact_kernels as fact_kernels

    counted = np.zeros(len(facts), np.bool_)
    fact_kernels.different_facts(starts, facts, near, counted)
    return counted


def sums(values: Block, starts: Positions) -> Block:
    """(rows,) float32 sum of each row's values."""
    rows = len(starts) - 1
    row_of = np.repeat(np.arange(rows), np.diff(starts))
    return np.bincount(row_of, weights=values, minlength=rows).astype(np.float32)


def _in_two_passes(kernel: Callable[[Sparse, bool], object], rows: int) -> Sparse:
    """Rows of a kernel that counts their entries first, and writes them when it is told to fill."""
    starts = np.zeros(rows + 1, np.int64)
    kernel(Sparse(starts, np.empty(0, np.int32), np.empty(0, np.float32)), False)
    np.cumsum(starts, out=starts)
    found = Sparse(starts, np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32))
    kernel(found, True)
    return found


def _alike_words(words: Sequence[str], synonyms: Synonyms, likeness: WordSimilarity | None) -> Sparse:
    """For each word the words that it is like, itself among them."""
    members: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        for one in synonyms.of(word):
            members.setdefault(one, []).append(place)
    rows: list[dict[int, float]] = []
    for place, word in enumerate(words):
        same = {other: 1.0 for one in synonyms.of(word) for other in members[one]}
        rows.append(dict(sorted((same | {place: 1.0}).items())))
    if likeness is not None and words:
        _add_near(rows, words, likeness)
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    columns = np.array([other for row in rows for other in row], np.int32)
    return Sparse(starts, columns, np.array([degree for row in rows for degree in row.values()], np.float32))


def _add_near(rows: list[dict[int, float]], words: Sequence[str], likeness: WordSimilarity) -> None:
    """Add words whose vectors are near, except words of exact families."""
    free = np.array([family_of(word) is None and word != SOMETHING for word in words])
    table = np.where(free[:, None], likeness.vectors(words), np.float32(0))
    least = likeness.least
    for start in range(0, len(words), _CHUNK):
        cosines = table[start : start + _CHUNK] @ table.T
        for at, other in np.argwhere(cosines > least).tolist():
            row = rows[start + at]
            degree = min(1.0, (float(cosines[at, other]) - least) / (1 - least))
            row[other] = max(degree, row.get(other, 0.0))
