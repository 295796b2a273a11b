import math

import numpy as np
import pytest

from rungwise.relevance import DocumentFrequencies, TfIdf

CAPTIONS = ["a red dog runs", "a dog", "the red cat", "", "red red car", "a car and a dog"]
OWNERS = [0, 0, 1, 1, 2, 3]


def cosine_by_hand(first, second):
    images = len(set(OWNERS))
    groups = [[c.split() for c, owner in zip(CAPTIONS, OWNERS, strict=True) if owner == i] for i in range(images)]

    def vector(text):
        words = text.split()
        having = {word: sum(any(word in caption for caption in group) for group in groups) for word in words}
        return {word: words.count(word) * math.log(images / max(1, having[word])) for word in words}

    a, b = vector(first), vector(second)
    size = math.hypot(*a.values()) * math.hypot(*b.values())
    return sum(a[word] * b.get(word, 0) for word in a) / size if size else 0.0


def test_pairs_equal_a_loop():
    source = TfIdf(CAPTIONS, OWNERS, tokenizer=str.split)
    everything = np.arange(6)
    expected = [[cosine_by_hand(a, b) for b in CAPTIONS] for a in CAPTIONS]
    np.testing.assert_allclose(source.pair_block(everything, everything), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reference", ["paired", "max", "mean"])
def test_images_are_their_captions(reference):
    source = TfIdf(CAPTIONS, OWNERS, tokenizer=str.split, reference=reference)
    pairs = np.array([[cosine_by_hand(a, b) for b in CAPTIONS] for a in CAPTIONS])
    reduce = {"paired": lambda rows: rows[0], "max": lambda rows: rows.max(0), "mean": lambda rows: rows.mean(0)}
    expected = [reduce[reference](pairs[np.array(OWNERS) == image]) for image in range(4)]
    np.testing.assert_allclose(source.dense(), expected, rtol=1e-5, atol=1e-6)


def test_options_show_in_the_hash():
    corpus = DocumentFrequencies.of(["a dog"], [0])
    hashes = {
        TfIdf(CAPTIONS, OWNERS, **options).content_hash()
        for options in ({}, {"orders": 2}, {"document_frequencies": corpus}, {"tokenizer": list}, {"reference": "mean"})
    }
    assert len(hashes) == 5
