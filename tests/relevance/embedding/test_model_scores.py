import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import ModelScores, load

CAPTIONS = ("a dog", "dogs", "a cat")
OWNERS = [0, 0, 1]


class Blocks:
    def __init__(self, matrix):
        self.matrix, self.shape = matrix, matrix.shape

    def block(self, images, captions):
        return self.matrix[np.ix_(images, captions)]


def scores(seed=0):
    return np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)


def test_a_matrix_and_a_scorer_give_their_numbers():
    matrix = scores()
    given = ModelScores(matrix, OWNERS, model="5eed", images=2)
    asked = ModelScores(Blocks(matrix), OWNERS, model="5eed", images=2, scored="these data")
    for source in (given, asked):
        np.testing.assert_array_equal(source.dense(), matrix)
        np.testing.assert_array_equal(source.block([1], [2, 0]), matrix[np.ix_([1], [2, 0])])
        assert source.models == {"5eed"}
        assert source.complete


def test_vectors_are_compared_by_their_cosine():
    draw = np.random.default_rng(0)
    images, texts = draw.normal(size=(2, 5)), draw.normal(size=(3, 5))
    found = ModelScores.of_vectors(images, texts, OWNERS, model="5eed").dense()
    for i, image in enumerate(images):
        for c, text in enumerate(texts):
            assert found[i, c] == pytest.approx(image @ text / np.linalg.norm(image) / np.linalg.norm(text), abs=1e-6)


def test_the_model_and_the_captions_are_kept_in_the_folder(tmp_path):
    source = ModelScores(scores(), OWNERS, model="5eed", images=2, captions=CAPTIONS)
    source.save(tmp_path / "all")
    source.save(tmp_path / "best", k=1, direction="t2i")
    for name in ("all", "best"):
        found = load(tmp_path / name)
        assert found.models == {"5eed"}
        assert found.captions_hash == source.captions_hash
        assert found.options()["model"] == "5eed"
    np.testing.assert_array_equal(load(tmp_path / "all", expected=source).dense(), source.dense())
    assert "ModelScores of model 5eed" in source.title()


def test_other_scores_have_another_hash():
    draw = np.random.default_rng(0)
    images, texts = draw.normal(size=(2, 5)), draw.normal(size=(3, 5))
    sources = [
        ModelScores(scores(), OWNERS, model="5eed", images=2),
        ModelScores(scores(1), OWNERS, model="5eed", images=2),
        ModelScores(scores(), OWNERS, model="other", images=2),
        ModelScores(scores(), [0, 1, 1], model="5eed", images=2),
        ModelScores(Blocks(scores()), OWNERS, model="5eed", images=2, scored="these data"),
        ModelScores.of_vectors(images, texts, OWNERS, model="5eed"),
        ModelScores.of_vectors(images, -texts, OWNERS, model="5eed"),
    ]
    assert len({source.content_hash() for source in sources}) == len(sources)


def test_what_is_no_opinion_is_refused_in_one_line():
    infinite = np.full((2, 3), np.inf)
    cases = {
        "no model is named": lambda: ModelScores(scores(), OWNERS, model="", images=2),
        "scored= is missing": lambda: ModelScores(Blocks(scores()), OWNERS, model="5eed", images=2),
        "it is transposed": lambda: ModelScores(scores().T, OWNERS, model="5eed", images=2),
        "a score is NaN": lambda: ModelScores(infinite, OWNERS, model="5eed", images=2).dense(),
        "vectors of shapes (2, 5) and (3, 4)": lambda: ModelScores.of_vectors(
            np.ones((2, 5)), np.ones((3, 4)), OWNERS, model="5eed"
        ),
        "a vector holds NaN": lambda: ModelScores.of_vectors(
            np.full((2, 5), np.nan), np.ones((3, 5)), OWNERS, model="5eed"
        ),
    }
    for message, make in cases.items():
        with pytest.raises(UserError) as caught:
            make()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
