"""What a search through a Searcher answers, and what it may be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rungwise.core.errors import UserError
from rungwise.index.query.unknown_words import UnknownWord
from rungwise.index.stores.base import StoreHits

if TYPE_CHECKING:
    from rungwise.models.contracts import PairScorer

WordUse = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class Hit:
    """A picture that was found: the user's id, and how alike it is.

    >>> Hit("dog-7", score=0.5)
    Hit(id='dog-7', score=0.5)
    """

    id: str
    score: float


@dataclass(frozen=True)
class CaptionHit:
    """A caption that was found, and the ids of the pictures that have it.

    >>> CaptionHit("a dog", score=0.5, ids=("dog-7", "dog-9")).ids
    ('dog-7', 'dog-9')
    """

    text: str
    score: float
    ids: tuple[str, ...]


@dataclass(frozen=True)
class SearchOptions:
    """How a search goes about it.

    Attributes:
        fold_duplicates: Put pictures with the same content, or nearly the same vector, under the first of them.
        diversity: 0 ranks by likeness alone; up to 1, pictures that are like earlier hits come later.
        words: Whether full text is joined with the vectors: ``"on"`` wherever the query has words, ``"off"`` nowhere,
            ``"auto"`` as :class:`~rungwise.index.Searcher` says.
        exact: Compare every picture, also where the store has an approximate index.
        rerank: A model that puts the first hits in a new order, such as one that reads picture and text together.
        rerank_top: How many of the first hits it looks at.
        end: Judge where relevance ends. Hits after the end then stand after all others.

    Raises:
        UserError: If a value is out of range, or the reranker reads no pictures or no words.

    >>> SearchOptions(diversity=1.5)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: diversity is 1.5; give a number from 0 (by likeness alone) to 1
    """

    fold_duplicates: bool = True
    diversity: float = 0.0
    words: WordUse = "auto"
    exact: bool = False
    rerank: PairScorer | None = None
    rerank_top: int = 50
    end: bool = True

    def __post_init__(self) -> None:
        check_diversity(self.diversity)
        if self.words not in ("auto", "on", "off"):
            raise UserError(f"words is {self.words!r}; give auto, on or off")
        if self.rerank_top < 1:
            raise UserError(
                f"rerank_top is {self.rerank_top}; give at least 1", parameters={"rerank_top": "rerank_top"}
            )
        if self.rerank is not None:
            check_reranks(self.rerank)


@dataclass(frozen=True)
class End:
    """Where relevance ends in an answer.

    Attributes:
        rungs: One for each hit of the answer: 1, 2 or 3 as :data:`rungwise.calibration.RUNGS` names them, 4 after the
            end.
        degrees: One for each hit: the degree of relevance that is expected of it.
        shown: How many groups of the whole ranking, from its start, stand before the end.
        belief: That a picture of the index is relevant at all, 0..1.
        source: By what this was judged, in a line.
        advice: What to try where little or nothing was found, a line each.

    >>> End((1, 4), (0.9, 0.1), shown=1, belief=0.95, source="the scores alone").nothing
    False
    """

    rungs: tuple[int, ...]
    degrees: tuple[float, ...]
    shown: int
    belief: float
    source: str
    advice: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether no picture was found to be relevant."""
        return self.shown == 0


@dataclass(frozen=True)
class Answer:
    """What a search found.

    The score of a hit is the model's similarity of query and picture, or the cosine where the query is pictures alone.
    Hits stand in the order of their scores unless full text, reranking or diversity put them in another.

    Attributes:
        hits: Best first.
        folded: Under the id of a hit, those of its near-duplicates, best first.
        unknown: Words that the model does not know.
        reading: How the query was understood, in one line; empty where it is one plain text.
        notes: What a person should know, a line each.
        more: Whether there are hits after these.
        end: Where relevance ends; None where it was not judged.

    >>> Answer((Hit("dog-7", 0.5),)).more
    False
    """

    hits: tuple[Hit, ...]
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    unknown: tuple[UnknownWord, ...] = ()
    reading: str = ""
    notes: tuple[str, ...] = ()
    more: bool = False
    end: End | None = None


def hits_of(found: StoreHits) -> list[list[Hit]]:
    """What a store of pictures found for several queries, best first.

    >>> import numpy as np
    >>> hits_of(StoreHits((("dog-7",),), (np.array([0.5], np.float32),)))
    [[Hit(id='dog-7', score=0.5)]]
    """
    return [
        [Hit(one, score) for one, score in zip(ids, scores.tolist(), strict=True)]
        for ids, scores in zip(found.ids, found.scores, strict=True)
    ]


def check_diversity(diversity: float) -> None:
    """Refuse a degree of diversity outside 0..1.

    >>> check_diversity(2)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: diversity is 2; give a number from 0 (by likeness alone) to 1
    """
    if not 0 <= diversity <= 1:
        raise UserError(f"diversity is {diversity}; give a number from 0 (by likeness alone) to 1")


def check_reranks(scorer: PairScorer) -> None:
    """See that a model can look at the pictures of an index and at a query.

    Raises:
        UserError: If rows of features stand for its pictures or texts.
    """
    for reads, what in ((scorer.reads_pictures, "pictures"), (scorer.reads_words, "words")):
        if not reads:
            kind = scorer.kind or type(scorer).__name__
            raise UserError(
                f"the reranker, a model of kind {kind!r}, was trained on rows of features in place of {what} and reads"
                f" no {what}; rerank by one that was trained on {what}"
            )
