"""Options and answers of a search through a Searcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rungwise.calibration import RUNGS
from rungwise.core import UserError
from rungwise.index.query import UnknownWord
from rungwise.index.stores import StoreHits

if TYPE_CHECKING:
    from rungwise.models import PairScorer

WordUse = Literal["auto", "on", "off"]


@dataclass(frozen=True)
class Hit:
    """A picture that was found: its id and its similarity to the query."""

    id: str
    score: float


@dataclass(frozen=True)
class CaptionHit:
    """A caption that was found, its similarity to the query, and the ids of the pictures that have it."""

    text: str
    score: float
    ids: tuple[str, ...]


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        fold_duplicates: Put pictures with the same content, or nearly the same vector, under the first of them.
        diversity: 0 ranks by similarity alone; up to 1, pictures that are like earlier hits come later.
        words: Whether full text is joined with the vectors: ``"on"`` wherever the query has words, ``"off"`` nowhere,
            ``"auto"`` as described at :meth:`Searcher.search <rungwise.index.Searcher.search>`.
        exact: Compare every picture, also where the store has an approximate index.
        rerank: A reranker, such as a model that reads picture and text together.
        rerank_top: Number of hits, from the first, that the reranker scores.
        end: Judge where relevance ends. Hits after the end then stand after all others.

    Raises:
        UserError: If a value is out of range, or the reranker reads no pictures or no words.

    >>> SearchOptions(diversity=1.5)
    Traceback (most recent call last):
    rungwise.core.UserError: diversity is 1.5; give a number from 0 (by likeness alone) to 1
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
        rungs: Rung of each hit of the answer: 1, 2 or 3 as ``names`` names them, 4 after the end.
        degrees: Expected degree of relevance of each hit of the answer.
        shown: Number of groups of the whole ranking that stand before the end.
        belief: Probability, 0..1, that the index holds a relevant picture at all.
        source: One line that names what this was judged by.
        advice: Lines that say what to try where little or nothing was found.
        names: Names of the rungs 1, 2 and 3: :data:`rungwise.calibration.RUNGS` where they were learnt from
            judgements, else :data:`rungwise.calibration.UNJUDGED_RUNGS`.
        remark: One line for people where no picture stands out clearly, or none is like a given one; else empty.
    """

    rungs: tuple[int, ...]
    degrees: tuple[float, ...]
    shown: int
    belief: float
    source: str
    advice: tuple[str, ...] = ()
    names: tuple[str, str, str] = RUNGS
    remark: str = ""

    @property
    def nothing(self) -> bool:
        """Whether no picture was found to be relevant."""
        return self.shown == 0


@dataclass(frozen=True)
class Answer:
    """The hits of a search, and what a person should know about them.

    The score of a hit is the model's similarity of query and picture, or the cosine where the query is pictures alone.
    Hits stand in the order of their scores unless full text, reranking or diversity put them in another.

    Attributes:
        hits: Hits, best first.
        folded: Ids of the near-duplicates of a hit, best first, by the id of the hit.
        unknown: Words that the model does not know.
        reading: How the query was understood, in one line; empty where it is one plain text.
        notes: Lines that a person should read.
        more: Whether there are hits after these.
        end: Where relevance ends; None where it was not judged.
    """

    hits: tuple[Hit, ...]
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    unknown: tuple[UnknownWord, ...] = ()
    reading: str = ""
    notes: tuple[str, ...] = ()
    more: bool = False
    end: End | None = None


def hits_of(found: StoreHits) -> list[list[Hit]]:
    """Hits of each query from what a store of pictures found, best first."""
    return [
        [Hit(one, score) for one, score in zip(ids, scores.tolist(), strict=True)]
        for ids, scores in zip(found.ids, found.scores, strict=True)
    ]


def check_diversity(diversity: float) -> None:
    """Refuse a diversity outside 0..1."""
    if not 0 <= diversity <= 1:
        raise UserError(f"diversity is {diversity}; give a number from 0 (by likeness alone) to 1")


def check_reranks(scorer: PairScorer) -> None:
    """Refuse a reranker that reads rows of features in place of pictures or texts."""
    for reads, what in ((scorer.reads_pictures, "pictures"), (scorer.reads_words, "words")):
        if not reads:
            kind = scorer.kind or type(scorer).__name__
            raise UserError(
                f"the reranker, a model of kind {kind!r}, was trained on rows of features in place of {what} and reads"
                f" no {what}; rerank by one that was trained on {what}"
            )
