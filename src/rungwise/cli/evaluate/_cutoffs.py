"""Methods of where relevance ends for ``rungwise evaluate``, and what is known of captions as queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import UNRELATED, Calibration, Known
from rungwise.cli.evaluate._inputs import ScoredInputs
from rungwise.cli.frame import say
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation.inputs import similarity_source
from rungwise.index import CAPTIONS, Index
from rungwise.index.stores import words_of
from rungwise.metrics import Direction, EmbeddingSource, Ends, JudgedQueries, Scores
from rungwise.models import DualEncoder
from rungwise.models.io import CALIBRATION
from rungwise.similarity import unit_rows

_MOST_PICTURES = 5000
"""Largest number of pictures of an index that are read, with all of their captions."""
_AT_ONCE = 256
"""Number of captions compared with all others at a time."""


def read_ends(given: Path | None, scored: ScoredInputs) -> Ends:
    """The requested calibration, else the model's own, else one without learning; which one is printed.

    Raises:
        UserError: If the file is missing, damaged, or of another model.
    """
    own = None if scored.model is None else scored.model.calibration_file
    file = own if given is None else given / CALIBRATION if given.is_dir() else given
    if file is None:
        # By the scores of unrelated texts, as in a search; without a model, by the scores alone.
        calibration = Calibration.unsupervised(unrelated_to(scored)[0], model_fingerprint=scored.model_hash)
    else:
        calibration = Calibration.load(file)
        if scored.model is not None:
            _refuse_other(file, calibration, scored)
    say(f"relevance ends by: {calibration.source}{'' if file is None else f' ({file})'}")
    known = known_of(scored, np.arange(len(scored.data.captions)))
    return calibration if known is None or calibration.learnt is None else _OfCaptions(calibration, known)


def unrelated_to(scored: ScoredInputs, *, likeness: bool = False) -> tuple[NDArray[Any] | None, list[Known] | None]:
    """(texts, images) scores of texts that fit no picture, and what is known of each; None without vectors.

    Args:
        scored: Scores and their model.
        likeness: Whether to add the similarity of each text with the captions of every picture.
    """
    model, source = scored.model, scored.similarity
    if not isinstance(model, DualEncoder) or not isinstance(source, EmbeddingSource):
        return None, None
    vectors = np.asarray(model.encode_text(UNRELATED), np.float32)
    alike = _alike(source.text, scored.data.image_of_caption, source.shape[0], vectors) if likeness else None
    scores = model.similarity.array(np.asarray(source.image, np.float32), vectors).T
    return scores, _known(model, UNRELATED, vectors, alike)


class _OfCaptions:
    """A calibration with knowledge of the captions of a collection, which are queries in one direction only."""

    def __init__(self, calibration: Calibration, known: list[Known]) -> None:
        self._ends: dict[Direction, Ends] = {"i2t": calibration, "t2i": calibration.informed(known)}

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        return self._ends[direction].judge(scores, direction, queries)

    def __str__(self) -> str:
        return str(self._ends["i2t"])


def known_of(scored: ScoredInputs, captions: NDArray[np.int64], *, likeness: bool = False) -> list[Known] | None:
    """What a search knows of these captions besides their scores; None for scores without vectors.

    Args:
        scored: Scores and their model.
        captions: Positions of the captions.
        likeness: Whether to add the similarity of each with the captions of every picture, except itself: what a search
            knows in an index with captions.
    """
    model, source = scored.model, scored.similarity
    if not isinstance(model, DualEncoder) or not isinstance(source, EmbeddingSource):
        return None
    vectors = source.text[captions]
    alike = None
    if likeness:
        alike = _alike(source.text, scored.data.image_of_caption, source.shape[0], vectors, captions)
    return _known(model, [scored.data.captions[caption] for caption in captions.tolist()], vectors, alike)


def _known(
    model: DualEncoder, texts: Sequence[str], vectors: NDArray[Any], alike: NDArray[np.float32] | None
) -> list[Known]:
    known = []
    for at, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        words, unknown = set(words_of(text)), model.unknown_words(text)
        share = min(1.0, len(set(unknown)) / len(words)) if words else None
        scores = None if alike is None else alike[at]
        known.append(Known(vector=vector, unknown_share=share, caption_scores=scores))
    return known


def _alike(
    vectors: NDArray[Any],
    owners: NDArray[np.int64],
    images: int,
    queries: NDArray[Any],
    captions: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """(queries, images) highest cosine of each query with the captions of each picture; NaN without captions.

    Args:
        vectors: (captions, D) vectors of all captions.
        owners: (captions,) picture of each caption.
        images: Number of pictures.
        queries: (queries, D) vectors of the queries.
        captions: (queries,) positions of the queries among the captions, which are left out.
    """
    unit, asking = unit_rows(vectors), unit_rows(queries)
    order = np.argsort(owners, kind="stable")
    have, starts = np.unique(owners[order], return_index=True)
    found = np.full((len(queries), images), np.nan, np.float32)
    for start in range(0, len(queries), _AT_ONCE):
        some = asking[start : start + _AT_ONCE]
        cosines = some @ unit.T
        if captions is not None:
            cosines[np.arange(len(some)), captions[start : start + _AT_ONCE]] = -np.inf
        best = np.maximum.reduceat(cosines[:, order], starts, axis=1)
        found[start : start + len(some), have] = np.where(np.isneginf(best), np.nan, best)
    return found


def scored_of_index(index: Index, model: DualEncoder) -> ScoredInputs:
    """The pictures of an index that have captions, and these, as scored inputs; a sample of a large index."""
    store, kept = index.picture_store, index.caption_store
    names = store.drawn(_MOST_PICTURES)
    ids: list[str] = []
    images: list[NDArray[np.float32]] = []
    captions: list[str] = []
    owners: list[int] = []
    for start in range(0, len(names), _AT_ONCE):
        for name, row in store.get(names[start : start + _AT_ONCE]).items():
            texts = [text for text in row.record.get(CAPTIONS, ()) if isinstance(text, str) and text.strip()]
            if texts:
                captions += texts
                owners += [len(ids)] * len(texts)
                ids.append(name)
                images.append(row.vector)
    texts = list(dict.fromkeys(captions))
    rows = {
        text: row.vector
        for start in range(0, len(texts), _AT_ONCE)
        for text, row in kept.get(texts[start : start + _AT_ONCE]).items()
    }
    there = [at for at, text in enumerate(captions) if text in rows]
    data = ImageCaptions(
        tuple(ids),
        tuple(captions[at] for at in there),
        np.array([owners[at] for at in there], dtype=np.int64),
        name=index.manifest.name or "the index",
    )
    if not data.captions:
        raise UserError(f"{index.folder}: its pictures have no captions to learn from; give DATA with captions")
    vectors = np.stack([rows[text] for text in data.captions])
    function = None if index.similarity.product else index.similarity.array
    source = similarity_source(
        image_embeddings=np.stack(images),
        text_embeddings=vectors,
        image_of_caption=data.image_of_caption,
        similarity_function=function,
    )
    return ScoredInputs(source, data, True, model_hash=index.manifest.model_fingerprint, model=model)


def _refuse_other(file: Path, calibration: Calibration, scored: ScoredInputs) -> None:
    fitted = calibration.model_fingerprint
    if fitted and fitted != scored.model_hash:
        raise UserError(
            f"{file}: was fitted for another model ({fitted[:12]}, and this one is {scored.model_hash[:12]}); fit one"
            " for this model with 'rungwise calibrate'"
        )
