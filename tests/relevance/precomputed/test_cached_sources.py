"""A source that was restored answers to the bit what the source itself does, and says the same of itself."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import WordVectors
from rungwise.relevance import CBoW, CIDEr, CIDErD, Degrees, DocumentFrequencies, TfIdf, answers_caption_pairs
from rungwise.relevance.precomputed import CachedConsensus, CachedPairRows, CachedVectors, kept_rows, kept_vectors
from rungwise.relevance.storage import CachedSource

DRAW = np.random.default_rng(0)
WORDS = ["dog", "cat", "snow", "red", "runs", "roof", "tin", "sleeps"]
OWNERS = DRAW.permutation(np.repeat(np.arange(12), 3))
CAPTIONS = [" ".join(DRAW.choice(WORDS, DRAW.integers(1, 6))) for _ in OWNERS] + [""]
OWNERS = np.append(OWNERS, 0)
CORPUS = DocumentFrequencies.of(CAPTIONS[:20], OWNERS[:20])
VECTORS = WordVectors({word: row for row, word in enumerate(WORDS)}, DRAW.standard_normal((8, 5)).astype(np.float32))


@cache
def sources() -> list[tuple[Degrees, Degrees]]:
    found: list[tuple[Degrees, Degrees]] = []
    for leave_one_out in (False, True):
        for kind in (CIDEr, CIDErD):
            for corpus in (None, replace(CORPUS, origin="train")):
                made = kind(CAPTIONS, OWNERS, document_frequencies=corpus, leave_one_out=leave_one_out, images=14)
                again = CachedConsensus(kept_rows(made), CAPTIONS, OWNERS, leave_one_out=leave_one_out, images=14)
                found.append((made, again))
        for reference in ("max", "mean", "paired"):
            options = {"reference": reference, "leave_one_out": leave_one_out, "images": 14}
            tfidf = TfIdf(CAPTIONS, OWNERS, orders=2, **options)  # type: ignore[arg-type]
            words = CBoW(CAPTIONS, OWNERS, VECTORS, **options)  # type: ignore[arg-type]
            found.append((tfidf, CachedPairRows(kept_rows(tfidf), CAPTIONS, OWNERS, **options)))  # type: ignore[arg-type]
            found.append((words, CachedVectors(kept_vectors(words), CAPTIONS, OWNERS, **options)))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("number", range(20))
def test_a_restored_source_is_the_source(number: int) -> None:
    made, again = sources()[number]
    images, captions = [3, 0, 13, 3], [5, 36, 1, 5, 30]
    np.testing.assert_array_equal(again.block(images, captions), made.block(images, captions))
    np.testing.assert_array_equal(again.dense(), made.dense())
    assert again.content_hash() == made.content_hash()
    assert again.title() == made.title()
    assert again.options() == made.options()
    assert again.frequencies_from == made.frequencies_from
    assert again.captions_hash == made.captions_hash
    assert answers_caption_pairs(again) == answers_caption_pairs(made)
    if answers_caption_pairs(again) and answers_caption_pairs(made):
        np.testing.assert_array_equal(again.pair_block(captions, images), made.pair_block(captions, images))


def test_there_are_as_many_as_are_tried() -> None:
    assert len(sources()) == 20


def damaged(kept: CachedSource, **arrays: np.ndarray | None) -> CachedSource:
    changed = {**kept.arrays, **arrays}
    return CachedSource(kept.facts, {name: array for name, array in changed.items() if array is not None})


def rows(**changes: object) -> CachedSource:
    kept = kept_rows(CIDErD(CAPTIONS, OWNERS))
    arrays = {name: array.copy() for name, array in kept.arrays.items()}
    for name, (place, value) in changes.items():  # type: ignore[misc]
        arrays[name][place] = value
    return damaged(kept, **arrays)


@pytest.mark.parametrize(
    "kept",
    [
        rows(columns=(3, -1)),
        rows(columns=(3, 2**30)),
        rows(starts=(0, 1)),
        rows(starts=(5, 10**6)),
        rows(starts=(-1, 10**6)),
        rows(lengths=(2, 99)),
        rows(lengths=(2, -1)),
        rows(answers=(0, np.nan)),
        rows(asked=(0, np.inf)),
        rows(penalty=(0, np.nan)),
        damaged(rows(), answers=np.zeros(2, np.float32)),
        damaged(rows(), starts=np.zeros(3, np.int64)),
        damaged(rows(), columns=np.zeros((2, 2), np.int32)),
        damaged(rows(), lengths=np.zeros(37, np.int64)),
        damaged(rows(), penalty=None),
        CachedSource({**rows().facts, "options": 1}, rows().arrays),
        CachedSource({**rows().facts, "content_hash": None}, rows().arrays),
        CachedSource({**rows().facts, "frequencies_from": "test"}, rows().arrays),
    ],
)
def test_numbers_beyond_their_bounds_are_refused(kept: CachedSource) -> None:
    for restored in (CachedConsensus, CachedPairRows):
        with pytest.raises(UserError, match="kept relevance: does not fit the captions") as caught:
            restored(kept, CAPTIONS, OWNERS)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "vectors", [None, np.zeros((2, 3), np.float32), np.zeros(37, np.float32), np.full((37, 2), np.nan, np.float32)]
)
def test_vectors_that_do_not_fit_are_refused(vectors: np.ndarray | None) -> None:
    kept = kept_vectors(CBoW(CAPTIONS, OWNERS, VECTORS))
    with pytest.raises(UserError, match="kept relevance: does not fit the captions"):
        CachedVectors(damaged(kept, vectors=vectors), CAPTIONS, OWNERS)
    with pytest.raises(UserError, match="fingerprint is missing"):
        CachedVectors(CachedSource({"source": "CBoW", "options": {}}, kept.arrays), CAPTIONS, OWNERS)
