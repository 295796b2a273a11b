import numpy as np
import pytest

from rungwise.core.compute import Best
from rungwise.core.compute import _threads as threads
from rungwise.relevance.lexical import InvertedIndex, SparseCaptions

CAPTIONS, DOCUMENTS, WIDTH = 40, 13, 9


@pytest.fixture
def sparse():
    """Sparse rows, a few of them without entries, and documents of 0 to 4 references."""
    draw = np.random.default_rng(0)
    own = [np.sort(draw.choice(WIDTH, draw.integers(0, 5), replace=False)) for _ in range(CAPTIONS)]
    columns = np.concatenate(own).astype(np.int32)
    # Small whole numbers: sums are exact in any order, and many scores are equal.
    asked, answers = draw.integers(0, 3, (2, len(columns))).astype(np.float32)
    lengths = draw.integers(1, 4, CAPTIONS).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum([len(one) for one in own])])
    rows = SparseCaptions(starts, columns, asked, answers, lengths, np.array([1, 0.5, 0.25], np.float32), WIDTH)
    counts = draw.choice([0, 1, 2, 4], DOCUMENTS)
    return rows, draw.integers(0, CAPTIONS, counts.sum()), counts


def on_threads(monkeypatch, available):
    monkeypatch.setattr(threads, "cores", lambda: available)
    monkeypatch.setattr(threads, "_SMALL", 1)


def slow_scores(rows, references, counts):
    """The formula of the module, entry by entry."""
    scores = np.zeros((CAPTIONS, len(counts)), np.float32)
    ends = np.cumsum(counts)
    for document, (count, end) in enumerate(zip(counts, ends, strict=True)):
        for reference in references[end - count : end]:
            for caption in range(CAPTIONS):
                penalty = rows.penalty[abs(rows.lengths[caption] - rows.lengths[reference])]
                for one in range(rows.starts[caption], rows.starts[caption + 1]):
                    for other in range(rows.starts[reference], rows.starts[reference + 1]):
                        if rows.columns[one] == rows.columns[other]:
                            scores[caption, document] += penalty * rows.asked[one] * rows.answers[other] / count
    return scores


@pytest.mark.parametrize("available", [1, 3])
def test_scores_equal_nested_loops(sparse, available, monkeypatch):
    on_threads(monkeypatch, available)
    asked = np.random.default_rng(1).permutation(CAPTIONS)[:25]
    np.testing.assert_array_equal(InvertedIndex(*sparse).scores(asked), slow_scores(*sparse)[asked])


@pytest.mark.parametrize("available", [1, 3])
@pytest.mark.parametrize("k", [1, 3, DOCUMENTS])
def test_the_best_are_the_head_of_a_stable_sort(sparse, available, k, monkeypatch):
    on_threads(monkeypatch, available)
    monkeypatch.setattr("rungwise.relevance.lexical._inverted_index._BUFFER", 3 * DOCUMENTS)  # several parts
    index, scores = InvertedIndex(*sparse), slow_scores(*sparse)

    def patch(captions, block):
        block[captions == 7] = 100 - np.arange(DOCUMENTS)  # as a source corrects what its rows do not say

    scores[7] = 100 - np.arange(DOCUMENTS)
    kept = Best(CAPTIONS, k, DOCUMENTS)
    index.best_documents(kept, patch, np.arange(CAPTIONS))
    of_captions = kept.positions, kept.scores
    for matrix, best in ((scores, of_captions), (scores.T, index.best_captions(k, patch))):
        expected = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(best[0], expected)
        np.testing.assert_array_equal(best[1], np.take_along_axis(matrix, expected, axis=1))
