"""Also tests rungwise.encoders.texts._word_side."""

import json
from collections import Counter
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from torch.nn import functional as F

from rungwise.core import UserError, from_plain, identity, to_plain
from rungwise.data.files import FeatureRows
from rungwise.encoders import TOKENIZER, FeatureConfig, LinearHead, NoHead
from rungwise.encoders._sides import TEXT_ENCODER
from rungwise.encoders.texts import BagOfWordsConfig
from rungwise.encoders.texts._bag_of_words import BagOfWords
from rungwise.encoders.texts._text_rows import encode_texts
from rungwise.encoders.vocabulary import pad
from rungwise.models import JointEmbedding, VSEConfig, load

CAPTIONS = [
    "A red dog runs, and a dog sleeps.",
    "The dog sees a cat",
    "Ein Hund über a red dog",
    "a cat? 3 cats!",
    "",
    "... , !",
]
QUERIES = [*CAPTIONS, "dog dog DOG cat zebra", "zebra", "?!", "\ud800 dog"]
VECTORS = {"a": [1.0, 0.0, 2.0], "dog": [0.0, 1.0, 0.5], "cat": [3.0, 1.0, 1.0], "zebra": [1.0, 1.0, 4.0]}
WEIGHTS: list[Any] = ["idf", "counts", "presence"]


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "secret" / "glove.txt"
    path.parent.mkdir()
    path.write_text("\n".join(f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()))
    return path


def words_of(text: str) -> list[str]:
    """The words of a text of these tests."""
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()


def columns(encoder: BagOfWords) -> list[str]:
    """The words of an encoder by column."""
    known = encoder.tokenizer.get_vocab()
    return sorted(known, key=known.__getitem__)[1:]


def by_scikit(kind: Any, vocabulary: list[str], captions: list[str], texts: list[str], **options: Any) -> NDArray[Any]:
    counter = kind(analyzer=words_of, vocabulary=vocabulary, **options).fit(captions)
    found: NDArray[Any] = counter.transform(texts).toarray()
    return found


def test_counts_and_idf_are_those_of_scikit_learn() -> None:
    for weights, kind, options in (
        ("counts", CountVectorizer, {}),
        ("presence", CountVectorizer, {"binary": True}),
        ("idf", TfidfVectorizer, {"norm": None}),
    ):
        encoder = BagOfWordsConfig(weights=weights, min_count=1).build(CAPTIONS)
        assert set(columns(encoder)) == {word for text in CAPTIONS for word in words_of(text)}
        expected = by_scikit(kind, columns(encoder), CAPTIONS, QUERIES, **options)
        np.testing.assert_allclose(encode_texts(encoder, QUERIES), expected, rtol=1e-6)


@given(st.lists(st.text("ab d.", max_size=12), min_size=1, max_size=6), st.lists(st.text("abc d", max_size=9)))
def test_idf_of_any_captions_is_that_of_scikit_learn(captions: list[str], texts: list[str]) -> None:
    captions = ["a b", *captions]
    encoder = BagOfWordsConfig(min_count=1).build(captions)
    expected = by_scikit(TfidfVectorizer, columns(encoder), captions, ["a", *texts], norm=None)
    np.testing.assert_allclose(encode_texts(encoder, ["a", *texts]), expected, rtol=1e-6)


def test_the_vocabulary_is_the_most_frequent_words_that_are_frequent_enough() -> None:
    counts = Counter(word for text in CAPTIONS for word in words_of(text))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    for least, most in ((1, 100), (2, 100), (2, 2), (0, 3)):
        encoder = BagOfWordsConfig(min_count=least, most_words=most).build(CAPTIONS)
        assert columns(encoder) == [word for word in order if counts[word] >= least][:most]
        assert encoder.width == len(columns(encoder))


def mean_by_loops(
    text: str, vectors: dict[str, list[float]], importance: dict[str, float], *, once: bool
) -> list[float]:
    """The weighted mean of the vectors of the words that have both a vector and a weight."""
    words = words_of(text)
    total, sums = 0.0, [0.0] * 3
    for word in dict.fromkeys(words) if once else words:
        if word in importance:
            total += importance[word]
            for place in range(3):
                sums[place] += importance[word] * vectors[word][place]
    return [value / total for value in sums] if total else sums


@pytest.mark.parametrize("vocabulary", ["captions", "file"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_means_of_word_vectors_are_those_of_loops(glove: Path, weights: Any, vocabulary: Any) -> None:
    config = BagOfWordsConfig(weights=weights, word_vectors=str(glove), vocabulary=vocabulary).of(CAPTIONS)
    encoder = config.build(CAPTIONS)
    known = [word for word in VECTORS if vocabulary == "file" or word != "zebra"]
    assert sorted(columns(encoder)) == sorted(known)
    importance = {}
    for word in known:
        holding = sum(word in words_of(text) for text in CAPTIONS)
        importance[word] = log((1 + len(CAPTIONS)) / (1 + holding)) + 1 if weights == "idf" else 1.0
    expected = [mean_by_loops(text, VECTORS, importance, once=weights == "presence") for text in QUERIES]
    found = encode_texts(encoder, QUERIES)
    assert found.shape == (len(QUERIES), 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@given(
    rows=st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=6),
    fill=st.integers(0, 4),
    more=st.integers(0, 20),
    weights=st.sampled_from(WEIGHTS),
    averages=st.booleans(),
)
def test_neither_padding_nor_the_batch_changes_a_bit(
    rows: list[list[int]], fill: int, more: int, weights: Any, averages: bool
) -> None:
    plain = BagOfWordsConfig(weights=weights, min_count=1).build(["a b c d", "a b", "b"])
    encoder = BagOfWords(plain.tokenizer, 5 if averages else None, once=plain.once)
    encoder.importance.data.copy_(plain.importance)
    if encoder.vectors is not None:
        encoder.vectors.data.copy_(torch.randn(4, 5, generator=torch.Generator().manual_seed(0)))
    tokens, lengths = pad(rows, fill)
    together = encoder(F.pad(tokens, (0, more), value=fill), lengths)
    alone = torch.cat([encoder(*pad([row])) for row in rows])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("words", [None, 3])
def test_a_text_without_known_words_is_the_zero_vector_and_no_text_is_none(words: int | None) -> None:
    encoder = BagOfWords(BagOfWordsConfig().build(CAPTIONS).tokenizer, words)
    vectors = encode_texts(encoder, ["", " ", "?!", "zebra", "\u200b", "\ud800"])
    assert vectors.tolist() == [[0.0] * encoder.width] * 6
    assert encode_texts(encoder, []).shape == (0, encoder.width)
    assert encoder(*pad([[], []])).shape == (2, encoder.width)


@pytest.mark.parametrize(
    ("unspaced", "words"), [("runs", ["一隻狗", "runs"]), ("characters", ["一", "狗", "隻", "runs"])]
)
def test_scripts_without_spaces_are_cut_as_asked(unspaced: Any, words: list[str]) -> None:
    encoder = BagOfWordsConfig(min_count=1, unspaced=unspaced, weights="counts").build(["一隻狗 runs 。"])
    assert sorted(columns(encoder)) == sorted(words)
    assert encode_texts(encoder, ["狗狗"]).sum() == (2 if unspaced == "characters" else 0)
    assert encode_texts(encoder, ["一隻狗。"]).sum() == (3 if unspaced == "characters" else 1)


def test_what_words_are_known_and_unknown() -> None:
    encoder = BagOfWordsConfig(min_count=2).build(CAPTIONS)
    assert encoder.known_words == {"red", "dog", "cat"}
    assert encoder.unknown_words("a Zebra, a dog... <unk> zebra?") == ("Zebra", "unk", "zebra")
    assert encoder.too_long(["dog " * 10_000]).tolist() == []
    assert encoder.remarks() == ()


def test_vectors_in_other_modes_and_precisions() -> None:
    encoder = BagOfWordsConfig(min_count=1).build(CAPTIONS)
    averages = BagOfWords(encoder.tokenizer, 3)
    for side in (encoder, averages):
        tokens = pad(side.tokenise(CAPTIONS))
        exact = side(*tokens)
        assert not exact.requires_grad
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(side(*tokens), exact)
        assert side.to(torch.bfloat16)(*tokens).dtype == torch.float32


def test_other_vectors_have_another_fingerprint(glove: Path) -> None:
    configs = [BagOfWordsConfig(weights=weights) for weights in WEIGHTS]
    configs += [BagOfWordsConfig(min_count=1), BagOfWordsConfig(word_vectors=str(glove))]
    encoders = [config.of(CAPTIONS).build(CAPTIONS) for config in configs]
    assert len({one.fingerprint() for one in encoders}) == len(encoders)
    assert encoders[0].fingerprint() == BagOfWordsConfig().build(CAPTIONS[::-1]).fingerprint()
    assert "word_vectors" not in identity(configs[-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": -1}, "min_count: must be at least 0"),
        ({"most_words": 0}, "most_words: must be at least 1"),
        ({"vocabulary": "file"}, "text.vocabulary: file needs a file of word vectors; set text.word_vectors"),
        ({"word_dimension": 3}, "text.word_dimension needs a file of word vectors; set text.word_vectors"),
        ({"word_vectors": "w", "word_dimension": 0}, "word_dimension: must be at least 1"),
        ({"weights": "loud"}, "weights: must be 'idf', 'counts' or 'presence'"),
    ],
)
def test_settings_that_cannot_be_are_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_plain(BagOfWordsConfig, options, "text")


def test_captions_that_give_no_vocabulary_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no word stands 2 times in the 2 training captions; lower text.min_count"):
        BagOfWordsConfig().build(["a dog", "... ..."])
    with pytest.raises(UserError, match="rows of features in place of texts; set model.text.kind: features"):
        BagOfWordsConfig().of(FeatureRows(np.eye(2)))
    (tmp_path / "other.txt").write_text("chien 1 2 3\n")
    with pytest.raises(UserError, match="other.txt: holds none of the 4 words of the captions"):
        BagOfWordsConfig(word_vectors=str(tmp_path / "other.txt")).of(CAPTIONS).build(CAPTIONS)


def model_of(text: BagOfWordsConfig) -> JointEmbedding:
    torch.manual_seed(0)
    config = VSEConfig(image=FeatureConfig(width=5), text=text, text_head=LinearHead(), dimension=4)
    return JointEmbedding.create(config, CAPTIONS).eval()


@pytest.mark.parametrize("words", ["columns", "captions", "file"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_saved_model_needs_no_file_of_word_vectors(glove: Path, tmp_path: Path, words: Any, weights: Any) -> None:
    averages = {} if words == "columns" else {"word_vectors": str(glove), "vocabulary": words}
    model = model_of(BagOfWordsConfig(weights=weights, unspaced="characters", **averages))
    model.save_pretrained(tmp_path / "model")
    glove.unlink()
    again = JointEmbedding.from_pretrained(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_text(QUERIES), model.encode_text(QUERIES))
    assert again.text_encoder.fingerprint() == model.text_encoder.fingerprint()
    assert again.text_encoder.remarks() == model.text_encoder.remarks()
    assert "secret" not in "".join(file.read_text() for file in (tmp_path / "model").glob("*.json"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: _less_words(folder / TOKENIZER), "model.safetensors: text_encoder.importance"),
        (lambda folder: _renamed(folder / TOKENIZER), "tokenizer.json: not the vocabulary of a bag of words"),
        (lambda folder: _without_width(folder / "config.json"), "model.text.word_dimension is missing in config.json"),
        (lambda folder: (folder / TEXT_ENCODER).write_text('{"file": 3}'), "text_encoder.json: file: must be"),
        (lambda folder: _changed_tensor(folder, "vectors", lambda one: one[:, :2]), "text_encoder.vectors"),
        (lambda folder: _changed_tensor(folder, "importance", lambda one: one / 0), "holds NaN or infinite numbers"),
    ],
)
def test_a_damaged_model_is_refused(glove: Path, tmp_path: Path, change: Any, message: str) -> None:
    model_of(BagOfWordsConfig(word_vectors=str(glove))).save_pretrained(tmp_path / "model")
    change(tmp_path / "model")
    with pytest.raises(UserError, match=message):
        load(tmp_path / "model", "cpu", altered=True)


def _less_words(file: Path) -> None:
    said = json.loads(file.read_text())
    said["model"]["vocab"].popitem()
    file.write_text(json.dumps(said))


def _renamed(file: Path) -> None:
    said = json.loads(file.read_text())
    vocabulary = said["model"]["vocab"]
    first = next(word for word, number in vocabulary.items() if number == 1)
    vocabulary["<unk>"], vocabulary[first] = 1, 0
    file.write_text(json.dumps(said))


def _without_width(file: Path) -> None:
    said = json.loads(file.read_text())
    del said["model"]["text"]["word_dimension"]
    file.write_text(json.dumps(said))


def _changed_tensor(folder: Path, name: str, change: Any) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors[f"text_encoder.{name}"] = change(tensors[f"text_encoder.{name}"]).contiguous()
    save_file(tensors, folder / "model.safetensors")


def test_a_joint_embedding_normalises_without_dividing_by_zero() -> None:
    config = BagOfWordsConfig()
    plain = config.build(CAPTIONS)
    sides = VSEConfig(image=FeatureConfig(width=5), text=config, text_head=NoHead(), dimension=plain.width)
    model = JointEmbedding.create(sides, CAPTIONS).eval()
    expected = F.normalize(torch.from_numpy(encode_texts(plain, QUERIES)), dim=1)
    np.testing.assert_allclose(model.encode_text(QUERIES), expected, atol=1e-6)
    np.testing.assert_array_equal(model.encode_text(["zebra", ""]), np.zeros((2, plain.width)))
    assert not any(one.requires_grad for one in model.text_encoder.parameters())


def test_a_configuration_is_read_back() -> None:
    config = VSEConfig(text=BagOfWordsConfig(weights="presence", most_words=7))
    assert from_plain(VSEConfig, to_plain(config), "config.json") == config
