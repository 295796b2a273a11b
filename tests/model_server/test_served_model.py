"""Texts are encoded together, and one that fails fails by itself."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rungwise.model_server._served_model import encoded_together
from tests.colour_model import ColourModel


class Choosy(ColourModel):
    """Encodes no text with a certain word, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append([*texts])
        if "bad" in texts:
            raise RuntimeError("bad")
        return super().encode_text(texts)


def test_texts_of_several_requests_are_encoded_in_one_call_each_text_once() -> None:
    model = Choosy()
    first, second = encoded_together(model, [("red", "blue"), ("blue",)])
    assert model.asked == [["red", "blue"]]
    expected = ColourModel().encode_text(["red", "blue"])
    assert np.array_equal(first, expected)
    assert np.array_equal(second, expected[1:])


def test_a_request_that_fails_leaves_the_others() -> None:
    first, second, third = encoded_together(Choosy(), [("red",), ("bad",), ("blue",)])
    assert np.array_equal(first, ColourModel().encode_text(["red"]))
    with pytest.raises(RuntimeError, match="bad"):
        raise second
    assert np.array_equal(third, ColourModel().encode_text(["blue"]))
