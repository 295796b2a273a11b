"""Queries of every generality made of a collection, with the degrees that its captions and columns give them.

Relevant is what a text of the picture states of the query: the share of its facts or words; of a column, whether the
picture has the text in it. A caption does not mention everything that a picture shows. So where no caption of a picture
states a query, and none contradicts it, the query may be true of the picture all the same: the pair is learnt from with
the probability that it was overlooked.

How many true pairs no caption states is estimated for each query from how many pictures state it in one caption alone,
and how many in two (Chao 1984, "Nonparametric estimation of the number of classes in a population"). They are taken to
stand as high over the query's median as pictures that state their queries do: the probability that an unstated picture
is true is proportional to the odds of a stated one at its height. Where no picture has two captions, half as many are
taken to be unstated as are stated. A whole caption says so much that hardly another picture shows it all; of captions
nothing is taken to be overlooked.

What a search knows of the texts of a hit is simulated by some of its captions: for a third of the queries by one of
each picture, for another by half of them, and for the last by all but one; so a fit learns what captions tell, and how
much they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import NOTHING, OTHER_UNRELATED, UNRELATED, UNRELATED_PHRASES, Known, TrainingQueries
from rungwise.core import UserError
from rungwise.core.text import evenly_spread
from rungwise.quality.typed_queries import _drawing as drawing
from rungwise.quality.typed_queries._drawing import DrawnQuery
from rungwise.quality.typed_queries._evidence import TextEvidence
from rungwise.quality.typed_queries._given import GivenQuery
from rungwise.quality.typed_queries._statements import Reader, Statements, reader_of, statements_of
from rungwise.quality.typed_queries._texted_pictures import TextedPictures

MIXTURE: Mapping[str, float] = {"phrase": 0.45, "value": 0.15, "pair": 0.1, "caption": 0.3}
"""Shares of the kinds among the queries that are made; what a collection lacks goes to phrases and captions."""
RELEVANT_FROM = 0.75
"""Share of what a query states from which on a picture is relevant: both of two facts, three of four."""
_MOST_OVERLOOKED = 0.9
_SHARES = (0.0, 0.5, 1.0)
"""Shares of the captions of each picture that a search knows: an index holds about as many of each."""
_HEIGHTS = np.linspace(-4.0, 12.0, 65)
"""Heights over a query's median, in distances of its lower quartile, between which pictures are counted together."""


def training_queries(
    collection: TextedPictures, count: int, given: Sequence[GivenQuery] = (), seed: int = 0
) -> tuple[TrainingQueries, str]:
    """About ``count`` queries made of a collection, and given ones besides; gives also how texts were read.

    Raises:
        UserError: If nothing in the collection makes a query.
    """
    pictures = len(collection.ids)
    of_columns = [
        (text, at)
        for values in collection.columns.values()
        for at, cell in enumerate(values)
        for text in sorted(cell or ())
    ]
    texts = [*collection.captions, *(text for text, _ in of_columns)]
    owners = np.concatenate([collection.owners, np.array([at for _, at in of_columns], np.int64)]).astype(np.int64)
    reader, name = reader_of(collection.captions or texts)
    told = statements_of(texts, owners, pictures, reader)
    captions = statements_of(collection.captions, collection.owners, pictures, reader)
    drawn = _drawn(collection, captions, reader, count, seed)
    queries: list[tuple[str, DrawnQuery, int]] = [(kind, query, -1) for kind, some in drawn.items() for query in some]
    share = MIXTURE["caption"] / (1 - MIXTURE["caption"])
    wanted = max(count - len(queries), int(share * len(queries))) if len(queries) < count else 0
    wanted = min(len(collection.captions), max(wanted, int(MIXTURE["caption"] * count)))
    spread = evenly_spread(len(collection.captions), wanted).tolist() if wanted else []
    queries += [
        ("caption", DrawnQuery(collection.captions[at], captions.of_texts[at]), at)
        for at in spread
        if captions.of_texts[at]
    ]
    given = [one for one in given if _is_known(one, collection, told, reader)]
    queries += [(one.kind, DrawnQuery(one.text, reader(one.text)), -1) for one in given]
    if not queries:
        raise UserError(f"{collection.name}: no caption and no column makes a query; give DATA with captions")
    return _taught(collection, told, captions, queries, given, seed), name


def _is_known(query: GivenQuery, collection: TextedPictures, told: Statements, reader: Reader) -> bool:
    """Whether it is known what is relevant to a query: it names pictures that are there, or a picture states it."""
    if query.relevant is not None:
        return not query.relevant or not set(collection.ids).isdisjoint(query.relevant)
    return bool((told.shares([reader(query.text)]) >= RELEVANT_FROM).any())


def _drawn(
    collection: TextedPictures, captions: Statements, reader: Reader, count: int, seed: int
) -> dict[str, list[DrawnQuery]]:
    values, pairs = drawing.values(collection.columns, int(MIXTURE["value"] * count), seed)
    pairs = pairs[: int(MIXTURE["pair"] * count)]
    left = count - int(MIXTURE["caption"] * count) - len(values) - len(pairs)
    return {
        "phrase": drawing.phrases(collection.captions, captions, reader, left, seed),
        "value": values,
        "pair": pairs,
    }


def _taught(
    collection: TextedPictures,
    told: Statements,
    captions: Statements,
    queries: Sequence[tuple[str, DrawnQuery, int]],
    given: Sequence[GivenQuery],
    seed: int,
) -> TrainingQueries:
    statements = [query.statement for _, query, _ in queries]
    kinds = [kind for kind, _, _ in queries]
    texts = [query.text for _, query, _ in queries]
    asked = _Asked.of(collection, texts, np.array([at for _, _, at in queries], np.int64))
    degrees = told.shares(statements)
    certain = (degrees >= RELEVANT_FROM) | captions.contradicted(statements)
    overlooked = np.zeros(degrees.shape, np.float32)
    for kind in set(kinds) - {"caption"}:
        own = np.flatnonzero(np.array(kinds) == kind)
        missed = captions.missed([statements[at] for at in own.tolist()])
        stated = degrees[own] >= RELEVANT_FROM
        overlooked[own] = unstated_truth(asked.scores[own], stated, certain[own], missed)
    for row, (_, query, at) in enumerate(queries):
        if at >= 0:
            degrees[row, collection.owners[at]] = 1.0
        if query.values:
            degrees[row], overlooked[row] = _of_columns(collection, query), 0.0
    place = {one: at for at, one in enumerate(collection.ids)}
    first = len(queries) - len(given)
    for row, one in enumerate(given, first):
        if one.relevant is not None:
            degrees[row], overlooked[row] = 0.0, 0.0
            degrees[row, [place[each] for each in one.relevant if each in place]] = 1.0
    return _assembled(collection, kinds, asked, degrees, overlooked, RELEVANT_FROM, seed)


def unstated_truth(
    scores: NDArray[np.floating], stated: NDArray[np.bool_], told: NDArray[np.bool_], missed: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Probability that a picture shows what a query says, although no text of it states so.

    Args:
        scores: (queries, pictures) similarities.
        stated: (queries, pictures) whether a text of the picture states the query.
        told: (queries, pictures) whether texts tell that it does, or that it does not.
        missed: (queries,) number of true pairs that no text states, for each stated one.

    Returns:
        (queries, pictures) numbers from 0 to .9; 0 where texts tell.
    """
    from scipy.optimize import isotonic_regression

    middle = np.median(scores, axis=1, keepdims=True)
    spread = middle - np.quantile(scores, 0.25, axis=1, keepdims=True)
    bins = np.searchsorted(_HEIGHTS, (scores - middle) / np.maximum(spread, 1e-9))
    counts = np.bincount(bins.ravel(), minlength=len(_HEIGHTS) + 1)
    found = np.bincount(bins.ravel(), stated.ravel(), minlength=len(_HEIGHTS) + 1)
    some = counts > 0
    shares = np.zeros(len(counts))
    shares[some] = isotonic_regression(found[some] / counts[some], weights=counts[some].astype(float)).x
    odds = (shares / np.maximum(1 - shares, 1e-9))[bins]
    odds[told] = 0.0
    others = stated.sum(axis=1) * missed
    true = odds * (others / np.maximum(odds.sum(axis=1), 1e-9))[:, None]
    return np.asarray(np.minimum(_MOST_OVERLOOKED, true), np.float32)


def caption_queries(
    collection: TextedPictures, captions: NDArray[np.int64], degrees: NDArray[np.floating], relevant_from: float
) -> TrainingQueries:
    """Captions of a collection as queries, with degrees of somebody else's.

    Args:
        collection: The pictures.
        captions: (queries,) positions of the captions.
        degrees: (queries, pictures) degrees of relevance; NaN where nobody judged.
        relevant_from: The smallest degree that counts as relevant.
    """
    texts = [collection.captions[at] for at in captions.tolist()]
    given = np.asarray(degrees, np.float32)
    asked = _Asked.of(collection, texts, captions)
    return _assembled(collection, ["caption"] * len(texts), asked, given, np.zeros_like(given), relevant_from, 0)


@dataclass(frozen=True)
class _Asked:
    """Queries, followed by texts that fit nothing, as the model sees them.

    Attributes:
        texts: Texts of the queries, of ``OTHER_UNRELATED``, and of the unrelated texts of a fit.
        own: Caption that each text is, or -1.
        vectors: (texts, D) vectors.
        scores: (texts, pictures) similarities.
        queries: Number of the queries.
    """

    texts: tuple[str, ...]
    own: NDArray[np.int64]
    vectors: NDArray[np.float32]
    scores: NDArray[np.float32]
    queries: int

    @classmethod
    def of(cls, collection: TextedPictures, queries: Sequence[str], own: NDArray[np.int64]) -> _Asked:
        model = collection.model
        others = (*OTHER_UNRELATED, *UNRELATED, *UNRELATED_PHRASES) if model.reads_words else ()
        texts = (*queries, *others)
        own = np.append(own, np.full(len(others), -1))
        captions = own >= 0
        vectors = np.empty((len(texts), collection.images.shape[1]), np.float32)
        vectors[captions] = collection.caption_vectors[own[captions]]
        if not captions.all():
            vectors[~captions] = model.encode_text([text for text, at in zip(texts, own, strict=True) if at < 0])
        scores = np.asarray(model.similarity.array(collection.images, vectors).T, np.float32)
        return cls(texts, own, vectors, scores, len(queries))


def _assembled(
    collection: TextedPictures,
    kinds: Sequence[str],
    asked: _Asked,
    degrees: NDArray[np.float32],
    overlooked: NDArray[np.float32],
    relevant_from: float,
    seed: int,
) -> TrainingQueries:
    """Queries with their scores and what is known of them, and unrelated texts, of which the last are for the fit."""
    pictures, has_others = len(collection.ids), len(asked.texts) > asked.queries
    judged = asked.queries + (len(OTHER_UNRELATED) if has_others else 0)
    known = _seen(collection, asked, seed)
    none = np.zeros((judged - asked.queries, pictures), np.float32)
    groups = pictures + np.arange(judged)
    captions = asked.own[:judged] >= 0
    groups[captions] = collection.owners[asked.own[:judged][captions]]
    return TrainingQueries(
        asked.texts[:judged],
        (*kinds, *(NOTHING,) * len(none)),
        groups,
        asked.scores[:judged],
        np.concatenate([degrees, none]),
        np.concatenate([overlooked, none]),
        tuple(known[:judged]),
        relevant_from,
        asked.scores[judged:] if has_others else None,
        tuple(known[judged:]) if has_others else None,
    )


def _seen(collection: TextedPictures, asked: _Asked, seed: int) -> list[Known]:
    """What a search knows of each text, in an index with few of the captions, or more, or almost all."""
    level = np.random.default_rng(seed).permutation(len(asked.texts)) % len(_SHARES)
    found: dict[int, Known] = {}
    for number, share in enumerate(_SHARES):
        own = np.flatnonzero(level == number)
        evidence = TextEvidence(collection, share, seed)
        known = evidence.known([asked.texts[at] for at in own.tolist()], asked.vectors[own], asked.own[own])
        found |= dict(zip(own.tolist(), known, strict=True))
    return [found[at] for at in range(len(asked.texts))]


def _of_columns(collection: TextedPictures, query: DrawnQuery) -> NDArray[np.float32]:
    """(pictures,) share of the query's columns that hold what it asks for; NaN where an empty cell leaves it open."""
    degrees, could = np.zeros((2, len(collection.ids)), np.float32)
    for name, text in query.values:
        cells = collection.columns[name]
        degrees += np.array([cell is not None and text in cell for cell in cells], np.float32) / len(query.values)
        could += np.array([cell is None or text in cell for cell in cells], np.float32) / len(query.values)
    return np.where((degrees < RELEVANT_FROM) & (could >= RELEVANT_FROM), np.float32(np.nan), degrees)
