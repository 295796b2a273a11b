import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.encoders.vocabulary import Tokens, pad

TEXTS = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=6), min_size=1, max_size=9)


@settings(max_examples=25)
@given(TEXTS, st.data())
def test_a_batch_holds_each_text_and_fills_the_rest(texts: list[list[int]], data: st.DataObject) -> None:
    tokens = Tokens.of(texts)
    assert list(tokens) == texts
    assert tokens[:] == texts
    assert tokens[-1] == texts[-1]
    assert tokens.lengths.tolist() == [len(one) for one in texts]
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=12))
    batch, lengths = tokens.padded(np.array(chosen), number=7)
    longest = max(len(texts[at]) for at in chosen)
    assert batch.tolist() == [texts[at] + [7] * (longest - len(texts[at])) for at in chosen]
    assert lengths.tolist() == [len(texts[at]) for at in chosen]
    assert batch.dtype == lengths.dtype == torch.int64


def test_no_text_and_no_batch() -> None:
    assert len(Tokens.of([])) == 0
    batch, lengths = pad([])
    assert (batch.shape, lengths.shape) == ((0, 0), (0,))
    with pytest.raises(IndexError):
        Tokens.of([[1]])[1]
