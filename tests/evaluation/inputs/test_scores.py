import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import evaluate, similarity_source
from rungwise.evaluation.inputs import read_embeddings
from rungwise.metrics import EmbeddingSource, ProductSource
from rungwise.metrics import _sources as sources
from rungwise.similarity import Cosine, Order


@pytest.fixture
def vectors():
    generator = np.random.default_rng(0)
    return generator.standard_normal((12, 5)).astype(np.float32), generator.standard_normal((36, 5)).astype(np.float32)


OWNERS = np.repeat(np.arange(12), 3)


def test_one_source_answers_what_embeddings_do_as_often_as_it_is_asked(vectors, monkeypatch):
    image, text = vectors
    wanted = evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=OWNERS)
    looked_at = []
    look = sources._norms
    monkeypatch.setattr(sources, "_norms", lambda *given: looked_at.append(given[1]) or look(*given))
    source = similarity_source(image_embeddings=image, text_embeddings=text, image_of_caption=OWNERS)
    for _ in range(2):
        assert evaluate(similarity=source, image_of_caption=OWNERS) == wanted
    assert looked_at == ["image_embeddings", "text_embeddings"]


def test_embeddings_of_a_file_are_not_looked_through_again(vectors, tmp_path, monkeypatch):
    image, text = vectors
    for name, side in (("i", image), ("t", text)):
        np.save(tmp_path / f"{name}.npy", side)
    wanted = evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=OWNERS)
    monkeypatch.delattr(sources, "_norms")
    sides = {
        "image_embeddings": read_embeddings(tmp_path / "i.npy"),
        "text_embeddings": read_embeddings(tmp_path / "t.npy"),
    }
    assert evaluate(**sides, image_of_caption=OWNERS) == wanted
    assert wanted.warnings


def test_another_similarity_of_embeddings_keeps_them_at_hand(vectors):
    image, text = vectors
    source = similarity_source(
        image_embeddings=image,
        text_embeddings=text,
        image_of_caption=OWNERS,
        similarity_function=lambda a, b: -(a @ b.T),
    )
    assert isinstance(source, EmbeddingSource)
    assert source.image is image
    assert source.text is text
    [(_, block)] = source.rows(100)
    np.testing.assert_array_equal(block, -(image @ text.T))


def test_a_similarity_as_a_value_is_taken_as_it_compares(vectors):
    image, text = vectors
    given = {"image_embeddings": image, "text_embeddings": text, "image_of_caption": OWNERS}
    assert isinstance(similarity_source(**given, similarity_function=Cosine()), ProductSource)
    order = -(np.maximum(0, text[None] - image[:, None]) ** 2).sum(axis=2)
    wanted = evaluate(similarity=order, image_of_caption=OWNERS).numbers
    assert evaluate(**given, similarity_function=Order()).numbers == wanted
    assert evaluate(**given).numbers != wanted


def test_a_source_of_other_data_is_refused(vectors):
    image, text = vectors
    source = similarity_source(image_embeddings=image, text_embeddings=text, image_of_caption=OWNERS)
    with pytest.raises(UserError, match="similarity hold 36 captions but image_of_caption names 30"):
        evaluate(similarity=source, image_of_caption=OWNERS[:30])


def test_an_object_with_a_block_and_a_shape_is_a_scorer(vectors):
    matrix = vectors[0] @ vectors[1].T

    class Scores:
        shape = matrix.shape

        def block(self, images, captions):
            return matrix[np.ix_(images, captions)]

    wanted = evaluate(similarity=matrix, image_of_caption=OWNERS)
    assert evaluate(similarity=Scores(), image_of_caption=OWNERS).numbers == wanted.numbers
    Scores.shape = (11, 36)
    with pytest.raises(UserError, match="image 11 does not exist among 11 images"):
        evaluate(similarity=Scores(), image_of_caption=OWNERS)


def test_an_object_that_is_no_scorer_is_refused_in_one_line():
    class Blocks:
        def block(self, images, captions):
            return np.zeros((len(images), len(captions)))

    with pytest.raises(UserError, match="similarity must have two axes"):
        evaluate(similarity=Blocks(), image_of_caption=OWNERS)
