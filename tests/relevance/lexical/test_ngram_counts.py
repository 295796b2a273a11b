"""A collection that is counted in parts, against one that is counted at once."""

from collections import Counter

import numpy as np
import pytest

from rungwise.relevance import CIDEr, CIDErD, TfIdf
from rungwise.relevance.lexical import DocumentFrequencies, vocabulary
from rungwise.relevance.lexical import _base as base
from rungwise.relevance.lexical import _ngram_counts as ngram_counts
from rungwise.relevance.lexical._ngrams import NgramCounts
from tests.relevance.lexical.test_cider import random_collection


@pytest.fixture(params=[1, 7, 64])
def in_parts(request, monkeypatch):
    monkeypatch.setattr(ngram_counts, "CAPTIONS", request.param)
    monkeypatch.setattr(base, "CAPTIONS", request.param)


def test_numbers_are_those_of_a_count_at_once(in_parts):
    texts, owners = random_collection()
    found = vocabulary(texts, owners, str.split, 3)
    whole = NgramCounts(texts, str.split, 3)
    assert list(found.words) == whole.words
    np.testing.assert_array_equal(found.tokens, whole.tokens)
    np.testing.assert_array_equal(found.lengths, whole.lengths)
    frequencies = DocumentFrequencies.counted(whole, owners)
    assert found.document_frequencies().content_hash() == frequencies.content_hash()
    for keys, expected in zip(found.keys, whole.keys, strict=True):
        np.testing.assert_array_equal(keys, expected)


def test_frequencies_and_repetitions_equal_a_loop(in_parts):
    texts, owners = random_collection(captions=80, images=20, words=6)
    found = vocabulary(texts, owners, str.split, 1)
    for number, word in enumerate(found.words):
        images = {owner for text, owner in zip(texts, owners, strict=True) if word in text.split()}
        assert found.frequencies[0][number] == len(images)
        assert found.most[0][number] == max(Counter(text.split())[word] for text in texts)


@pytest.mark.parametrize("source", [CIDEr, CIDErD, TfIdf])
def test_weights_have_the_same_bits(source, monkeypatch):
    texts, owners = random_collection(words=12)
    texts[5] = texts[6] = ""
    at_once = source(texts, owners, tokenizer=str.split)
    monkeypatch.setattr(ngram_counts, "CAPTIONS", 13)
    monkeypatch.setattr(base, "CAPTIONS", 11)
    in_parts = source(texts, owners, tokenizer=str.split)
    assert in_parts.content_hash() == at_once.content_hash()
    assert in_parts.weights.width == at_once.weights.width
    for name in ("starts", "columns", "asked", "answers", "lengths", "penalty"):
        assert getattr(in_parts.weights, name).tobytes() == getattr(at_once.weights, name).tobytes(), name


def test_nothing_to_count():
    found = vocabulary([], np.empty(0, np.int64), str.split, 2)
    assert (found.images, list(found.words), len(found.tokens)) == (0, [], 0)
    assert [len(keys) for keys in found.keys] == [0, 0]
