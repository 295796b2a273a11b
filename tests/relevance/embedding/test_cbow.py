"""Also tests rungwise.relevance.embedding._base: cosines of captions' vectors."""

import math

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import WordVectors
from rungwise.language.tokenisers import whitespace
from rungwise.relevance import Relevance
from rungwise.relevance.combine import Cascade
from rungwise.relevance.embedding import CBoW

CAPTIONS = ["a dog runs", "the dog", "a cat sleeps on the dog", "unicorn gryphon", ""]
OWNERS = [0, 0, 1, 1, 2]
WORDS = ["a", "the", "dog", "cat", "runs", "sleeps", "on"]
VECTORS = WordVectors(
    {word: row for row, word in enumerate(WORDS)}, np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
)


def by_definition(captions, stop_words=(), nouns=(), noun_weight=2.0):
    """Cosines of weighted averages in plain floats."""
    sums = []
    for caption in captions:
        total = [0.0] * 5
        for word in caption.split():
            if word in WORDS and word not in stop_words:
                weight = noun_weight if word in nouns else 1.0
                total = [t + weight * float(v) for t, v in zip(total, VECTORS.table[WORDS.index(word)], strict=True)]
        sums.append(total)
    return [[_cosine(a, b) for b in sums] for a in sums]


def _cosine(a, b):
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


@pytest.mark.parametrize(
    "options",
    [{}, {"stop_words": {"a", "the", "on"}}, {"nouns": {"dog", "cat"}}, {"nouns": {"dog"}, "noun_weight": 3.5}],
)
def test_equals_weighted_averages(options):
    source = CBoW(CAPTIONS, OWNERS, VECTORS, tokenizer=str.split, **options)
    everything = np.arange(len(CAPTIONS))
    wanted = by_definition(CAPTIONS, **options)
    np.testing.assert_allclose(source.pair_block(everything, everything), wanted, atol=1e-6)
    first, second = np.array([0, 4, 2]), np.array([2, 1, 2])
    np.testing.assert_allclose(
        source.pair_scores(first, second), [wanted[a][b] for a, b in zip(first, second, strict=True)], atol=1e-6
    )


def test_nouns_may_come_from_a_tagger():
    by_set = CBoW(CAPTIONS, OWNERS, VECTORS, tokenizer=str.split, nouns={"dog", "cat"})
    by_tagger = CBoW(
        CAPTIONS,
        OWNERS,
        VECTORS,
        tokenizer=str.split,
        nouns=lambda tokens: [token in ("dog", "cat") for token in tokens],
    )
    np.testing.assert_array_equal(by_set.dense(), by_tagger.dense())
    assert by_set.content_hash() == by_tagger.content_hash()
    assert by_set.content_hash() != CBoW(CAPTIONS, OWNERS, VECTORS, tokenizer=str.split).content_hash()


def test_unknown_words_are_reported_and_count_nothing():
    source = CBoW(CAPTIONS, OWNERS, VECTORS, tokenizer=str.split, stop_words={"a", "the"})
    assert source.unknown_words == {"unicorn": 1, "gryphon": 1}
    assert source.unknown_share == pytest.approx(2 / 9)
    assert not source.dense()[:, 3].any()
    assert not source.dense()[:, 4].any()
    assert isinstance(source, Relevance)


def test_vectors_of_another_language_are_refused():
    with pytest.raises(UserError, match="has a vector for none of the 2 words"):
        CBoW(["ein Hund"], [0], VECTORS, tokenizer=str.split)


def test_a_file_and_loaded_vectors_agree(tmp_path):
    lines = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, VECTORS.table.tolist(), strict=True)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    from_file = CBoW(CAPTIONS, OWNERS, tmp_path / "vectors.txt")
    np.testing.assert_allclose(from_file.dense(), CBoW(CAPTIONS, OWNERS, VECTORS).dense(), atol=1e-6)


@pytest.mark.real_data
def test_published_vectors_grade_real_captions(real_data):
    source = CBoW(
        ["A dog runs on grass.", "A puppy plays in the field.", "A plate of pasta."],
        [0, 1, 2],
        real_data / "weights" / "glove.6B.50d.caption_words.txt",
        stop_words={"a", "on", "in", "the", "of"},
    )
    degrees = source.dense()
    assert degrees[0, 1] > degrees[0, 2] + 0.1


def test_the_fingerprint_is_of_the_words_and_not_of_the_captions(tmp_path):
    lines = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, VECTORS.table.tolist(), strict=True)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    (tmp_path / "others.txt").write_text("\n".join(lines).replace("dog", "pup"))

    def fingerprint(captions=("a dog", "the cat"), vectors=VECTORS, **options):
        return CBoW(captions, range(len(captions)), vectors, **options).fingerprint

    for vectors in (VECTORS, tmp_path / "vectors.txt"):
        assert fingerprint(vectors=vectors) == fingerprint(("cat runs", "a dog", "on"), vectors)
    told_apart = {
        fingerprint(),
        fingerprint(vectors=tmp_path / "vectors.txt"),
        fingerprint(vectors=tmp_path / "others.txt"),
        fingerprint(vectors=WordVectors(VECTORS.row, VECTORS.table + 1)),
        fingerprint(stop_words={"a"}),
        fingerprint(nouns={"dog"}),
        fingerprint(nouns={"dog"}, noun_weight=3.0),
        fingerprint(tokenizer=whitespace),
        fingerprint(tokenizer=str.split),
        fingerprint(("cat runs", "a dog"), tokenizer=str.split),
        fingerprint(nouns=lambda tokens: [token == "cat" for token in tokens]),
    }
    assert len(told_apart) == 11


def test_a_cascade_s_cache_serves_another_collection(tmp_path):
    first = CBoW(["a dog", "the cat"], [0, 1], VECTORS)
    Cascade(first, first, threshold=-1, cache=tmp_path / "scores").dense()
    second = CBoW(["cat runs", "the cat", "a dog"], [0, 1, 2], VECTORS)
    cascade = Cascade(second, second, threshold=-1, cache=tmp_path / "scores")
    np.testing.assert_allclose(cascade.dense(), second.dense(), atol=1e-6)
    assert cascade.report.scored == 3


def test_vectors_that_were_replaced_after_they_were_read_have_no_fingerprint(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("dog 1 0\ncat 0 1\n")
    captions = (["a dog", "a cat"], [0, 1])
    assert CBoW(*captions, file).fingerprint == CBoW(*captions, str(file)).fingerprint
    source = CBoW(*captions, file)
    file.write_text("dog 1 0\ncat 1 1\n# more\n")
    with pytest.raises(UserError, match=r"vectors.txt: was changed after its vectors were read; start again"):
        _ = source.fingerprint
