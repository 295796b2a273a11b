"""Also tests rungwise.relevance.lexical._base and rungwise.relevance.lexical._ngrams, against nested loops over
n-grams.
"""

import csv
import gzip

import numpy as np
import pytest
import snowballstemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.language.tokenisers import character_bigrams, icu_words, ptb, unicode_words, whitespace
from rungwise.relevance import CIDEr, CIDErD, DocumentFrequencies, TfIdf
from tests.relevance.cider_reference import all_scores, document_frequency

BOTH = pytest.mark.parametrize(("source", "clipped"), [(CIDEr, False), (CIDErD, True)])

EDGES = {
    "one reference": (["a dog runs on grass", "two cats sleep", "a dog sleeps"], [0, 1, 2]),
    "empty caption": (["", "a dog runs", "a cat", "", "dogs"], [0, 0, 1, 2, 2]),
    "repeated n-grams": (["a dog a dog a dog", "a dog and a dog", "dog dog dog dog", "the cat"], [0, 0, 1, 2]),
    "one-word captions": (["dog", "cat", "dog", "bird"], [0, 1, 1, 2]),
    "word in every image": (["a dog", "a cat", "a a a bird"], [0, 1, 2]),
    "one image": (["a dog", "a cat"], [0, 0]),
    "image without captions": (["a dog", "a cat sits"], [0, 2]),
    "uneven and unsorted": (["red car", "a cat", "red red car", "blue sky", "a car", "sky"], [2, 0, 2, 1, 0, 2]),
}


def close(ours, reference):
    np.testing.assert_allclose(ours, np.array(reference), rtol=1e-5, atol=1e-7)


@BOTH
@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("case", EDGES)
def test_edge_cases_equal_a_nested_loop(source, clipped, leave_one_out, case):
    captions, owners = EDGES[case]
    ours = source(captions, owners, tokenizer=str.split, leave_one_out=leave_one_out)
    tokens = [caption.split() for caption in captions]
    close(ours.dense(), all_scores(tokens, owners, max(owners) + 1, clipped=clipped, leave_one_out=leave_one_out))


@BOTH
@given(
    captions=st.lists(st.lists(st.sampled_from("abcdef"), max_size=9), min_size=1, max_size=12),
    seed=st.integers(0, 99),
    leave_one_out=st.booleans(),
)
@settings(max_examples=20)
def test_any_collection_equals_a_nested_loop(source, clipped, captions, seed, leave_one_out):
    owners = np.random.default_rng(seed).integers(0, 5, len(captions)).tolist()
    texts = [" ".join(caption) for caption in captions]
    ours = source(texts, owners, tokenizer=str.split, leave_one_out=leave_one_out, images=6)
    close(ours.dense(), all_scores(captions, owners, 6, clipped=clipped, leave_one_out=leave_one_out))


@BOTH
@pytest.mark.parametrize(("language", "tokenizer"), [("english", ptb), ("german", unicode_words)])
def test_stems_stand_for_words(source, clipped, language, tokenizer):
    captions = {
        "english": [
            "A dog runs quickly.",
            "Dogs are running",
            "the quick dog ran",
            "Two cats sleeping",
            "a cat sleeps",
        ],
        "german": ["Ein Hund läuft.", "Zwei Hunde laufen", "der Hund lief", "Katzen schlafen", "eine Katze schläft"],
    }[language]
    owners = [0, 1, 1, 2, 3]
    stemmer = snowballstemmer.stemmer(language)
    tokens = [[stemmer.stemWord(word) for word in tokenizer(caption)] for caption in captions]
    ours = source(captions, owners, tokenizer=tokenizer, stemming=language)
    close(ours.dense(), all_scores(tokens, owners, 4, clipped=clipped))
    plain = source(captions, owners, tokenizer=tokenizer)
    assert not np.allclose(ours.dense(), plain.dense())
    assert ours.options()["stemming"] == language
    assert "stemming" not in plain.options()
    hashes = {ours.content_hash(), plain.content_hash(), source(captions, owners, stemming="dutch").content_hash()}
    assert len(hashes) == 3


@BOTH
@pytest.mark.parametrize("tokenizer", [icu_words, character_bigrams])
def test_languages_without_spaces_have_n_grams_of_words(source, clipped, tokenizer):
    captions = ["一只棕色的狗在草地上奔跑。", "棕色的狗在草地上。", "สุนัขกำลังวิ่งอยู่บนหญ้า", "สุนัขวิ่ง"]
    owners = [0, 1, 2, 3]
    ours = source(captions, owners, tokenizer=tokenizer)
    close(ours.dense(), all_scores([tokenizer(caption) for caption in captions], owners, 4, clipped=clipped))
    assert ours.content_hash() != source(captions, owners, tokenizer=unicode_words).content_hash()


@BOTH
def test_document_frequencies_of_another_corpus(source, clipped, tmp_path):
    corpus, of = ["a dog runs", "the dog", "a cat", "bird"], [0, 0, 1, 2]
    frequencies = DocumentFrequencies.of(corpus, of, tokenizer=str.split)
    frequencies.save(tmp_path / "corpus.npz")
    captions, owners = ["the dog runs fast", "a zebra", "a dog runs"], [0, 1, 1]
    expected = all_scores(
        [caption.split() for caption in captions],
        owners,
        2,
        clipped=clipped,
        frequency=document_frequency(
            [[c.split() for c, o in zip(corpus, of, strict=True) if o == i] for i in range(3)]
        ),
        corpus_images=3,
    )
    for given_one in (frequencies, DocumentFrequencies.load(tmp_path / "corpus.npz")):
        source_ = source(captions, owners, tokenizer=str.split, document_frequencies=given_one)
        close(source_.dense(), expected)


def test_document_frequencies_that_do_not_fit_are_refused(tmp_path):
    words_only = DocumentFrequencies.of(["a dog"], [0], orders=1)
    with pytest.raises(UserError, match="up to n-grams of 1 words and 4 are needed"):
        CIDErD(["a dog"], [0], document_frequencies=words_only)
    with pytest.raises(UserError, match="no such file"):
        DocumentFrequencies.load(tmp_path / "none.npz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UserError, match="holds no document frequencies"):
        DocumentFrequencies.load(tmp_path / "text")
    words_only.save(tmp_path / "whole.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-9])
    np.save(tmp_path / "array.npy", np.ones(3))
    for name in ("cut.npz", "array.npy"):
        with pytest.raises(UserError, match="holds no document frequencies"):
            DocumentFrequencies.load(tmp_path / name)


def random_collection(captions=300, images=60, words=40, seed=0):
    draw = np.random.default_rng(seed)
    likely = 1 / np.arange(1, words + 1)
    texts = [
        " ".join(f"w{word}" for word in draw.choice(words, draw.integers(0, 15), p=likely / likely.sum()))
        for _ in range(captions)
    ]
    return texts, draw.integers(0, images, captions)


@BOTH
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_every_block_has_the_same_bits(source, clipped, leave_one_out):
    texts, owners = random_collection()
    asked = source(texts, owners, tokenizer=str.split, leave_one_out=leave_one_out, images=62)
    whole = np.ascontiguousarray(asked.dense())
    draw = np.random.default_rng(1)
    for images, captions in ((1, 1), (7, 30), (62, 300), (100, 5), (0, 4), (4, 0)):
        rows, columns = draw.integers(0, 62, images), draw.integers(0, 300, captions)
        assert asked.block(rows, columns).tobytes() == whole[np.ix_(rows, columns)].tobytes()


@BOTH
@pytest.mark.parametrize(("leave_one_out", "k"), [(False, 1), (True, 5), (False, 1000)])
def test_topk_is_the_top_of_the_whole_matrix_ties_by_position(source, clipped, leave_one_out, k, monkeypatch):
    monkeypatch.setattr("rungwise.relevance.lexical._inverted_index._BUFFER", 500)
    texts, owners = random_collection(words=12)
    asked = source(texts, owners, tokenizer=str.split, leave_one_out=leave_one_out)
    for direction, matrix in (("i2t", asked.dense()), ("t2i", asked.dense().T)):
        indices, values = asked.topk(k, direction)
        expected = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(matrix, expected, axis=1))


def test_bad_calls_get_one_line():
    source = CIDErD(["a dog", "a cat"], [0, 1])
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        source.topk(0)
    with pytest.raises(UserError, match="direction must be 'i2t' or 't2i', got 'sideways'"):
        source.topk(1, "sideways")
    with pytest.raises(UserError, match="2 captions but image_of_caption has shape"):
        CIDErD(["a dog", "a cat"], [0])


def flickr30k(folder, split, language="en"):
    captions = {}
    with gzip.open(folder / f"flickr30k/captions.{language}.token.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            name, text = line.rstrip("\n").split("\t", 1)
            captions.setdefault(name.split("#")[0], []).append(text)
    names = (folder / f"flickr30k/{split}_images.txt").read_text().split()
    texts = [text for name in names for text in captions[name]]
    return texts, np.repeat(np.arange(len(names)), [len(captions[name]) for name in names])


def official(references, pairs):
    """pycocoevalcap's own inner loop, with document frequencies of all references, for (image, caption) pairs."""
    scorer_module = pytest.importorskip("pycocoevalcap.cider.cider_scorer")
    whole = scorer_module.CiderScorer()
    for sentences in references:
        whole.cook_append(sentences[0], sentences)
    whole.compute_doc_freq()
    asked = scorer_module.CiderScorer()
    asked.document_frequency = whole.document_frequency
    cooked = whole.crefs
    asked.crefs = [cooked[image] for image, _ in pairs]
    asked.ctest = [scorer_module.cook_test(text) for _, text in pairs]

    class Images(list):
        """A list of the pairs' references that says the number of images, from which the scorer takes log N."""

        def __len__(self):
            return len(references)

    asked.crefs = Images(asked.crefs)
    return np.array(asked.compute_cider())


@pytest.mark.parametrize("case", [case for case in EDGES if case != "image without captions"])
def test_cider_d_equals_pycocoevalcap_on_edge_cases(case):
    captions, owners = EDGES[case]
    images = max(owners) + 1
    references = [[c for c, o in zip(captions, owners, strict=True) if o == image] for image in range(images)]
    pairs = [(image, caption) for image in range(images) for caption in captions]
    expected = official(references, pairs).reshape(images, len(captions))
    np.testing.assert_allclose(CIDErD(captions, owners, tokenizer=str.split).dense(), expected, rtol=1e-4, atol=1e-9)


@pytest.mark.real_data
@pytest.mark.slow
def test_cider_d_equals_pycocoevalcap_on_flickr30k(real_data):
    texts, owners = flickr30k(real_data, "test")
    tokens = [" ".join(ptb(text)) for text in texts]
    draw = np.random.default_rng(0)
    images, captions = draw.integers(0, 1000, 10_000), draw.integers(0, len(texts), 10_000)
    captions[:5000] = np.arange(5000) % len(texts)
    images[:5000] = owners[captions[:5000]]
    references = [[tokens[c] for c in np.flatnonzero(owners == image)] for image in range(1000)]
    expected = official(references, [(i, tokens[c]) for i, c in zip(images, captions, strict=True)])
    ours = CIDErD(tokens, owners, tokenizer=str.split).dense()[images, captions]
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-9)


@pytest.mark.real_data
def test_german_captions_go_through_every_lexical_source(real_data):
    texts, owners = flickr30k(real_data, "test", "de")
    for tokenizer in (ptb, whitespace, unicode_words):
        for source in (CIDEr, CIDErD, TfIdf):
            degrees = source(texts[:300], owners[:300], tokenizer=tokenizer, leave_one_out=True).dense()
            own = degrees[owners[:300], np.arange(300)]
            assert np.isfinite(degrees).all()
            assert own.mean() > 4 * degrees.mean(), (source, tokenizer)


@pytest.mark.real_data
def test_coco_captions_are_read_with_their_own_number_of_references(real_data):
    with (real_data / "coco5k/captions.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[:2000]
    owners = np.unique([row["image"] for row in rows], return_inverse=True)[1]
    degrees = CIDErD([row["caption"] for row in rows], owners).dense()
    assert (degrees.argmax(axis=0) == owners).mean() > 0.9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"words": np.zeros(0, np.uint8)}, "keys1 are not ascending n-grams of 0 words"),
        ({"keys1": np.array([3, 2, 1, 0])}, "keys1 are not ascending n-grams of 4 words"),
        ({"keys1": np.zeros((4, 1), np.int64)}, r"keys1 has the shape \(4, 1\)"),
        ({"keys2": np.array([0.5, 1.5, 2.5])}, "keys2 has the shape .* and type float64"),
        ({"counts1": np.array([1, 1, 1, 77])}, "counts1 run 1..77 in 2 images"),
        ({"counts1": np.array([1, 1])}, "counts1 has the shape"),
        ({"images": np.array([1, 2])}, "holds no document frequencies"),
        ({"images": np.array(-2)}, "-2 images"),
        ({"keys2": None}, "there are images, words, origin, keys1, counts1, counts2"),
    ],
)
def test_counts_that_do_not_fit_together_are_refused(tmp_path, change, said):
    DocumentFrequencies.of(["a dog", "a cat sits"], [0, 1], orders=2).save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        arrays = dict(file) | change
    np.savez(tmp_path / "f.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(UserError, match=rf"f\.npz: holds no document frequencies .*{said.split('holds')[0]}") as caught:
        DocumentFrequencies.load(tmp_path / "f.npz")
    assert "\n" not in str(caught.value)
