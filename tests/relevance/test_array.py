import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance import TfIdf, as_degrees
from rungwise.relevance._array import ArrayRelevance

OWNERS = np.array([0, 1, 1])
MATRIX = np.arange(6, dtype=np.float64).reshape(2, 3) / 7


class Asked:
    """Answers blocks, and knows no shape."""

    def __init__(self, turned: bool = False) -> None:
        self.turned = turned

    def block(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        found = MATRIX[np.ix_(images, captions)]
        return found.T if self.turned else found


@pytest.mark.parametrize(
    "given", [MATRIX, MATRIX.tolist(), torch.tensor(MATRIX), torch.tensor(MATRIX).bfloat16(), Asked()]
)
def test_every_kind_answers_blocks(given: object) -> None:
    source = ArrayRelevance(given, OWNERS, 2)
    tolerance = 0.01 if getattr(given, "dtype", None) is torch.bfloat16 else 1e-7
    np.testing.assert_allclose(source.block([1, 0], [2, 2, 0]), MATRIX[np.ix_([1, 0], [2, 2, 0])], atol=tolerance)
    np.testing.assert_allclose(source.dense(), MATRIX, atol=tolerance)
    assert source.block([1], [0]).dtype == np.float32
    with pytest.raises(UserError, match=r"image positions run -1..-1; they must lie in 0..1"):
        source.block([-1], [0])


def test_two_matrices_have_two_names() -> None:
    one, other = (ArrayRelevance(given, OWNERS, 2) for given in (MATRIX, MATRIX[::-1]))
    assert one.title() == ArrayRelevance(MATRIX.tolist(), OWNERS, 2).title() != other.title()
    assert one.content_hash() != other.content_hash()
    assert ArrayRelevance(Asked(), OWNERS, 2).title() == "given as Asked"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (MATRIX.T, r"relevance has shape \(3, 2\) for 2 images x 3 captions: it is transposed; give its .T"),
        (np.eye(4), r"relevance has shape \(4, 4\) for 2 images x 3 captions; give degrees of these data"),
        (np.zeros(3), "ndarray is no .* table of numbers and has no block; give a source"),
        (None, "NoneType is no"),
        ([[1, 2], [3]], "rows of different lengths"),
        ([["a", "b", "c"]] * 2, "list is no"),
    ],
)
def test_what_is_none_is_one_line(given: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        ArrayRelevance(given, OWNERS, 2)
    assert "\n" not in str(caught.value)


def test_a_block_of_another_shape_is_one_line() -> None:
    with pytest.raises(UserError, match=r"asked for 2 images x 3 captions, its block has shape \(3, 2\); answer"):
        ArrayRelevance(Asked(turned=True), OWNERS, 2).dense()


def test_sources_stay_as_they_are() -> None:
    captions = ("a dog", "a cat", "cats")
    data = ImageCaptions(("a", "b"), captions, OWNERS)
    source = TfIdf(captions, OWNERS)
    assert as_degrees(source, data) is source
    for other in (TfIdf(captions[:2], [0, 1]), TfIdf(("a fox", *captions[1:]), OWNERS)):
        with pytest.raises(UserError, match="or other ones; give degrees of these data"):
            as_degrees(other, data)
