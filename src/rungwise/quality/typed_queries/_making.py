"""Queries of every generality made of a collection, with the degrees that its captions and columns give them.

Relevant is what a text of the picture states of the query: the share of its facts or words; of a column, whether the
picture has the text in it. A caption does not mention everything that a picture shows. So where no caption of a picture
states a query, and none contradicts it, the pair is uncertain: it counts as much as it is likely that one of so many
captions would have mentioned it, which is 1 - s ** captions. The silence s is the share of captions that do not state
what another caption of the same picture states; it is one half where no picture has two.

What a search knows of the texts of a hit is simulated by some of its captions, at least one, drawn at random; so a fit
learns what captions tell, and how much they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import NOTHING, OTHER_UNRELATED, UNRELATED, UNRELATED_PHRASES, TrainingQueries
from rungwise.core import UserError
from rungwise.core.text import evenly_spread
from rungwise.quality.typed_queries import _drawing as drawing
from rungwise.quality.typed_queries._collection import TextedPictures
from rungwise.quality.typed_queries._drawing import Drawn
from rungwise.quality.typed_queries._evidence import TextEvidence
from rungwise.quality.typed_queries._given import GivenQuery
from rungwise.quality.typed_queries._statements import Reader, Statements, reader_of, statements_of

MIXTURE: Mapping[str, float] = {"phrase": 0.45, "value": 0.15, "pair": 0.1, "caption": 0.3}
"""Shares of the kinds among the queries that are made; what a collection lacks goes to phrases and captions."""
RELEVANT_FROM = 0.75
"""Share of what a query states from which on a picture is relevant: both of two facts, three of four."""
_LEAST_CERTAINTY = 0.1


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
    queries: list[tuple[str, Drawn, int]] = [(kind, query, -1) for kind, some in drawn.items() for query in some]
    share = MIXTURE["caption"] / (1 - MIXTURE["caption"])
    wanted = max(count - len(queries), int(share * len(queries))) if len(queries) < count else 0
    wanted = min(len(collection.captions), max(wanted, int(MIXTURE["caption"] * count)))
    for at in evenly_spread(len(collection.captions), wanted).tolist() if wanted else ():
        queries.append(("caption", Drawn(collection.captions[at], captions.of_texts[at]), at))  # noqa: PERF401
    given = [one for one in given if one.relevant is not None or _is_stated(one, told, reader)]
    queries += [(one.kind, Drawn(one.text, reader(one.text)), -1) for one in given]
    if not queries:
        raise UserError(f"{collection.name}: no caption and no column makes a query; give DATA with captions")
    return _taught(collection, told, captions, queries, given, seed), name


def _is_stated(query: GivenQuery, told: Statements, reader: Reader) -> bool:
    """Whether a picture states all of a query; of others nobody knows what is relevant."""
    return bool((told.shares([reader(query.text)]) >= RELEVANT_FROM).any())


def _drawn(
    collection: TextedPictures, captions: Statements, reader: Reader, count: int, seed: int
) -> dict[str, list[Drawn]]:
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
    queries: Sequence[tuple[str, Drawn, int]],
    given: Sequence[GivenQuery],
    seed: int,
) -> TrainingQueries:
    pictures = len(collection.ids)
    statements = [query.statement for _, query, _ in queries]
    degrees = told.shares(statements)
    certain = degrees >= RELEVANT_FROM
    certain |= captions.contradicted(statements)
    silence = captions.silence([query.statement for kind, query, _ in queries if kind == "phrase"])
    number = np.bincount(collection.owners, minlength=pictures)
    certainty = np.where(certain, 1.0, np.maximum(_LEAST_CERTAINTY, 1 - silence ** np.maximum(1, number))).astype(
        np.float32
    )
    for row, (_, query, at) in enumerate(queries):
        if at >= 0:
            degrees[row, collection.owners[at]] = certainty[row, collection.owners[at]] = 1.0
        if query.values:
            degrees[row], certainty[row] = _of_columns(collection, query)
    place = {one: at for at, one in enumerate(collection.ids)}
    first = len(queries) - len(given)
    for row, one in enumerate(given, first):
        if one.relevant is not None:
            degrees[row], certainty[row] = 0.0, 1.0
            degrees[row, [place[each] for each in one.relevant if each in place]] = 1.0
    kinds = [kind for kind, _, _ in queries]
    texts = [query.text for _, query, _ in queries]
    of_caption = np.array([at for _, _, at in queries], np.int64)
    return _with_unrelated(collection, kinds, texts, of_caption, degrees, certainty, RELEVANT_FROM, seed)


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
    return _with_unrelated(
        collection, ["caption"] * len(texts), texts, captions, given, np.ones_like(given), relevant_from, 0
    )


def _with_unrelated(
    collection: TextedPictures,
    kinds: Sequence[str],
    texts: Sequence[str],
    of_caption: NDArray[np.int64],
    degrees: NDArray[np.float32],
    certainty: NDArray[np.float32],
    relevant_from: float,
    seed: int,
) -> TrainingQueries:
    """Queries with their scores, and texts that fit nothing besides; ``of_caption`` is the caption of each, or -1."""
    model, pictures = collection.model, len(collection.ids)
    others = (*OTHER_UNRELATED, *UNRELATED, *UNRELATED_PHRASES) if model.reads_words else ()
    judged = len(texts) + (len(OTHER_UNRELATED) if others else 0)
    every = [*texts, *others]
    own = np.append(of_caption, np.full(len(others), -1))
    captions = own >= 0
    vectors = np.empty((len(every), collection.images.shape[1]), np.float32)
    vectors[captions] = collection.caption_vectors[own[captions]]
    if not captions.all():
        vectors[~captions] = model.encode_text([text for text, at in zip(every, own, strict=True) if at < 0])
    scores = np.asarray(model.similarity.array(collection.images, vectors).T, np.float32)
    known = TextEvidence(collection, seed).known(every, vectors, own)
    none = np.zeros((judged - len(texts), pictures), np.float32)
    groups = pictures + np.arange(judged)
    groups[captions[:judged]] = collection.owners[own[:judged][captions[:judged]]]
    return TrainingQueries(
        tuple(every[:judged]),
        (*kinds, *(NOTHING,) * len(none)),
        groups,
        scores[:judged],
        np.concatenate([degrees, none]),
        np.concatenate([certainty, np.ones_like(none)]),
        tuple(known[:judged]),
        relevant_from,
        scores[judged:] if others else None,
        tuple(known[judged:]) if others else None,
    )


def _of_columns(collection: TextedPictures, query: Drawn) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(pictures,) share of the query's columns that hold what it asks for, and certainties: of an empty cell none."""
    degrees = np.zeros(len(collection.ids), np.float32)
    certainty = np.ones(len(collection.ids), np.float32)
    for name, text in query.values:
        cells = collection.columns[name]
        degrees += np.array([cell is not None and text in cell for cell in cells], np.float32) / len(query.values)
        certainty[[cell is None for cell in cells]] = _LEAST_CERTAINTY
    return degrees, np.where(degrees >= RELEVANT_FROM, np.float32(1), certainty)
