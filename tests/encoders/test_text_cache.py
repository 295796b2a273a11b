from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.encoders.text import GRUEncoder, learn_vocabulary
from rungwise.encoders.text_cache import encode_texts, text_rows

TEXTS = ["one two", "three", "one two", "", "two three one one", "\ud800 odd"]


@pytest.fixture
def side() -> GRUEncoder:
    torch.manual_seed(0)
    return GRUEncoder(learn_vocabulary(["one two three"], 1), word_dimension=4, width=6)


def test_rows_are_the_vectors_of_each_text_and_are_computed_once(side: GRUEncoder, tmp_path: Path) -> None:
    seen: list[int] = []
    texts = TEXTS[:-1]
    rows = text_rows(side, texts, tmp_path, progress=seen.append)
    assert (rows.computed, sum(seen), len(rows)) == (4, 5, 5)
    alone = np.concatenate([encode_texts(side, [text]) for text in texts])
    np.testing.assert_allclose(rows.take(np.arange(5)).numpy(), alone, atol=1e-6)
    again = text_rows(side, texts[::-1], tmp_path)
    assert again.computed == 0
    assert torch.equal(again.take(np.array([4, 0])), rows.take(np.array([0, 4])))


def test_other_weights_have_rows_of_their_own(side: GRUEncoder, tmp_path: Path) -> None:
    text_rows(side, TEXTS[:2], tmp_path)
    with torch.no_grad():
        side.words.weight += 1
    assert text_rows(side, TEXTS[:2], tmp_path).computed == 2


def test_the_mode_of_training_is_kept(side: GRUEncoder, tmp_path: Path) -> None:
    text_rows(side.train(), TEXTS[:2], tmp_path)
    assert side.training


def test_no_texts_have_no_rows(side: GRUEncoder, tmp_path: Path) -> None:
    assert len(text_rows(side, [], tmp_path)) == 0
