"""Scores of a pair scorer and of a dual encoder are the same numbers, whichever way they are asked."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.evaluation import evaluate
from rungwise.models import DualEncoder, EncodedImages, PairScorer, VectorScores
from rungwise.models._contracts import AskedScores
from rungwise.models.regions._base import SetScores
from rungwise.similarity import (
    Cosine,
    CrossAttention,
    Inner,
    Order,
    ShiftedCosine,
    Similarity,
    WordSets,
    all_pairs,
    some_pairs,
)

SIMILARITIES = [Cosine(), Inner(), Order(), Order(root=True, absolute=True), ShiftedCosine()]


def vector_of(numbers: list[int]) -> np.ndarray:
    return np.random.default_rng(numbers).normal(size=5).astype(np.float32)


class Letters(DualEncoder):
    """Vectors that follow from the bytes of a file, a row of features or a text; empty files cannot be read."""

    dimension, fingerprint = 5, "letters"
    similarity: Similarity = Cosine()

    def __init__(self, similarity: Similarity) -> None:
        self.similarity = similarity
        self.encoded: list[int] = []

    def encode_image(self, pictures, *, progress=None, cache=None):
        if isinstance(pictures, FeatureRows):
            contents = [row.astype(np.float32).tobytes() for row in pictures[:]]
        else:
            contents = [one if isinstance(one, bytes) else one.read_bytes() for one in pictures]
        self.encoded.append(len(contents))
        kept = np.array([at for at, one in enumerate(contents) if one], np.int64)
        issues = tuple(
            Issue("unreadable picture", str(pictures[at]), "no bytes") for at, one in enumerate(contents) if not one
        )
        rows = [vector_of(list(contents[at])) for at in kept]
        return EncodedImages(self._prepared(rows, self.similarity.images), kept, issues)

    def encode_text(self, texts):
        return self._prepared([vector_of(list(text.encode())) for text in texts], self.similarity.texts)

    def _prepared(self, rows, prepare):
        return prepare(torch.from_numpy(np.array(rows, np.float32).reshape(-1, 5))).numpy()


class Asking(PairScorer):
    """The same scores from a model that shows no vectors."""

    fingerprint = "asking"

    def __init__(self, inside: DualEncoder) -> None:
        self.inside = inside

    def block(self, images, captions):
        return self.inside.block(images, captions)


@pytest.fixture
def data(tmp_path: Path) -> ImageCaptions:
    """Captions in no order of their images; one image has none."""
    paths = []
    for number in range(6):
        path = tmp_path / f"{number}.png"
        path.write_bytes(bytes([number + 1, 7]))
        paths.append(path)
    owners = np.array([5, 0, 2, 0, 1, 5, 3, 2, 0])
    captions = tuple(f"caption {number}" for number in range(len(owners)))
    return ImageCaptions(tuple("abcdef"), captions, owners, paths=tuple(paths))


def with_features(data: ImageCaptions, dtype: type = np.float16) -> ImageCaptions:
    rows = np.arange(24, dtype=dtype).reshape(8, 3)
    return ImageCaptions(
        data.image_ids, data.captions, data.image_of_caption, features=FeatureRows(rows, positions=[7, 0, 3, 2, 6, 1])
    )


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
@pytest.mark.parametrize("features", [False, True], ids=["files", "features"])
def test_all_ways_to_ask_give_the_same_scores(similarity: Similarity, features: bool, data: ImageCaptions) -> None:
    data = with_features(data) if features else data
    model = Letters(similarity)
    vectors, asked = model.on(data), Asking(model).on(data)
    assert isinstance(vectors, VectorScores)
    assert isinstance(asked, AskedScores)
    assert vectors.shape == asked.shape == (6, 9)
    images, captions = model.encode_image(data.pictures).vectors, model.encode_text(data.captions)
    everything = similarity.array(images, captions)
    for rows, columns in (([0, 1, 2, 3, 4, 5], range(9)), ([4, 0, 4], [8, 0]), ([2], [7]), ([], [1, 2])):
        expected = everything[np.ix_(np.array(rows, int), np.array(columns, int))]
        for scores in (vectors, asked):
            got = scores.block(np.array(rows, int), np.array(columns, int))
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, expected, atol=1e-6)
    # One pair by hand, through the tensor form of vectors that are not prepared.
    picture = data.pictures[2].astype(np.float32).tobytes() if features else data.paths[2].read_bytes()
    raw = [torch.from_numpy(vector_of(list(one)))[None] for one in (picture, data.captions[7].encode())]
    assert everything[2, 7] == pytest.approx(float(similarity(*raw)), abs=1e-6)


def test_a_collection_is_encoded_once(data: ImageCaptions) -> None:
    model = Letters(Cosine())
    scores = model.on(data)
    for image in range(6):
        scores.block([image], np.arange(9))
    assert model.encoded == [6]


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_evaluation_gets_the_block(similarity: Similarity, data: ImageCaptions) -> None:
    model, data = Letters(similarity), data.select([0, 1, 2, 3, 5])
    vectors, asked = model.on(data), Asking(model).on(data)
    owners = data.image_of_caption
    whole = vectors.block(np.arange(5), np.arange(9))
    results = [
        evaluate(**options, image_of_caption=owners)
        for options in (vectors.for_evaluation(), asked.for_evaluation(), {"similarity": whole})
    ]
    assert results[0]["rsum"] == results[1]["rsum"] == results[2]["rsum"]
    own = whole[owners, np.arange(9)]
    # Nested loops over captions, without ties.
    ranked = [int((whole[:, caption] > own[caption]).sum()) for caption in range(9)]
    assert results[0]["t2i/R@1"] == pytest.approx(100 * np.mean([rank < 1 for rank in ranked]))
    assert ("similarity_function" in vectors.for_evaluation()) == (not similarity.product)


def test_an_unreadable_picture_is_left_out_with_its_captions(data: ImageCaptions) -> None:
    data.paths[2].write_bytes(b"")
    model = Letters(Cosine())
    scores = model.on(data)
    assert scores.kept.tolist() == [0, 1, 3, 4, 5]
    assert scores.data.image_ids == ("a", "b", "d", "e", "f")
    assert sorted(scores.data.captions) == sorted(f"caption {one}" for one in (0, 1, 3, 4, 5, 6, 8))
    assert [issue.where for issue in scores.issues] == [str(data.paths[2])]
    assert scores.shape == (5, 7)
    for image in range(5):
        for caption, text in enumerate(scores.data.captions):
            expected = model.block([data.paths[scores.kept[image]]], [text])
            np.testing.assert_allclose(scores.block([image], [caption]), expected, atol=1e-6)
    with pytest.raises(UserError) as caught:
        model.block(data.paths, ["caption 0"])
    assert str(caught.value) == f"{data.paths[2]}: unreadable picture: no bytes"
    with pytest.raises(UserError, match="unreadable picture"):
        Asking(model).on(data).block([2], [0])


def test_a_collection_of_which_nothing_can_be_read_gives_no_scores(data: ImageCaptions) -> None:
    for path in data.paths:
        path.write_bytes(b"")
    scores = Letters(Cosine()).on(data)
    assert scores.shape == (0, 0)
    assert len(scores.issues) == 6


@pytest.mark.parametrize("similarity", SIMILARITIES, ids=str)
def test_single_pairs_are_those_of_the_block(similarity: Similarity, data: ImageCaptions) -> None:
    model = Letters(similarity)
    images, captions = np.array([1, 0, 1, 1]), np.array([2, 0, 2, 1])
    for scores in (model.on(data), Asking(model).on(data)):
        block = scores.block(np.arange(len(data)), np.arange(len(data.captions)))
        found = scores.pairs(images, captions)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, block[images, captions], rtol=1e-5, atol=1e-6)
        assert scores.pairs([], []).shape == (0,)


def test_a_model_that_is_asked_anew_reads_each_picture_of_single_pairs_once(data: ImageCaptions) -> None:
    asked = []

    class Noting(PairScorer):
        fingerprint = "noting"

        def block(self, images, captions):
            asked.append((list(images), list(captions)))
            return np.zeros((len(images), len(captions)), np.float32)

    Noting().on(data).pairs(np.array([1, 0, 1]), np.array([2, 0, 1]))
    texts, pictures = data.captions, data.paths
    assert asked == [([pictures[0]], [texts[0]]), ([pictures[1]], [texts[2], texts[1]])]


@settings(max_examples=20, deadline=None)
@given(
    st.data(), st.integers(1, 4), st.lists(st.integers(1, 5), min_size=1, max_size=7), st.sampled_from([1, 50, 1 << 20])
)
def test_single_pairs_of_regions_and_words_are_those_of_the_block(drawn, images, lengths, values) -> None:
    generator = torch.Generator().manual_seed(drawn.draw(st.integers(0, 99)))
    regions = torch.randn(images, 3, 4, generator=generator, dtype=torch.float64)
    words = WordSets(torch.randn(sum(lengths), 4, generator=generator, dtype=torch.float64), torch.tensor(lengths))
    pair = st.tuples(st.integers(0, images - 1), st.integers(0, len(lengths) - 1))
    pairs = torch.tensor(drawn.draw(st.lists(pair, max_size=20)), dtype=torch.int64).reshape(-1, 2)
    similarity = CrossAttention()
    found = some_pairs(similarity, regions, words, pairs[:, 0], pairs[:, 1], values)
    whole = all_pairs(similarity, regions, words)[pairs[:, 0], pairs[:, 1]]
    torch.testing.assert_close(found, whole, rtol=1e-12, atol=1e-12)
    data = ImageCaptions(tuple(map(str, range(images))), ("x",) * len(lengths), np.zeros(len(lengths), np.int64))
    scores = SetScores(data, np.arange(images), (), regions, words, similarity)
    np.testing.assert_allclose(scores.pairs(*pairs.T.numpy()), whole.numpy(), rtol=1e-6)


@pytest.mark.parametrize("said", [None, 5, ["a list"], {"a": "mapping"}, "two\nlines", "red \x1b[31m", "\u202etxt"])
def test_a_warning_of_weights_from_a_strangers_folder_is_one_line_of_text(said: object) -> None:
    model = Letters(Cosine())
    assert model.weights_warning == ""
    model.provenance = {"weights_warning": said}
    assert model.weights_warning == ""
    model.provenance = {"weights_warning": "weights say input 224. " * 9999}
    assert len(model.weights_warning) == 1500
