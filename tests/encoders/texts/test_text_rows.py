from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.encoders import Precision, computed_in
from rungwise.encoders._precision import PROBE
from rungwise.encoders.texts import BagOfWordsConfig, GRUEncoder, learn_vocabulary, text_rows
from rungwise.encoders.texts._text_rows import encode_texts

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


def test_halved_rows_have_a_cache_of_their_own(side: GRUEncoder, tmp_path: Path) -> None:
    exact = text_rows(side, TEXTS, tmp_path)
    with computed_in("bfloat16"):
        half = text_rows(side, TEXTS, tmp_path)
        assert half.computed == 5
        assert text_rows(side, TEXTS, tmp_path).computed == 0
    vectors = [rows.take(np.arange(len(TEXTS))) for rows in (exact, half)]
    assert not torch.equal(*vectors)
    torch.testing.assert_close(*vectors, atol=0.02, rtol=0)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_rows_of_a_quick_side_are_computed_when_they_are_taken(tmp_path: Path, precision: Precision) -> None:
    side, seen = BagOfWordsConfig(min_count=1).build(TEXTS[:5]).train(), []
    with computed_in(precision):
        rows = text_rows(side, TEXTS, tmp_path, progress=seen.append)
    assert (sum(seen), len(rows), rows.kept.tolist(), rows.computed) == (6, 6, [0, 1, 2, 3, 4, 5], 0)
    np.testing.assert_array_equal(rows.take(np.array([4, 0, 3])), encode_texts(side, TEXTS)[[4, 0, 3]])
    assert rows.take(np.zeros(0, np.int64)).shape == (0, 3)
    assert len(text_rows(side, [], tmp_path)) == 0
    assert not list(tmp_path.iterdir())
    assert side.training


@pytest.mark.parametrize(("least", "chosen"), [(0.0, True), (1.0, False)])
def test_a_probe_of_texts_decides(
    side: GRUEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: float, chosen: bool
) -> None:
    monkeypatch.setattr("rungwise.encoders._precision.native_bfloat16", lambda device: True)
    monkeypatch.setattr("rungwise.encoders._precision._PAYS", 0.0)
    said: list[str] = []
    with computed_in("auto", least_cosine=least, say=said.append) as now:
        text_rows(side.train(), [f"one two {number}" for number in range(PROBE)], tmp_path)
    assert list(now.chosen.values()) == [chosen]
    assert [line.partition(" are")[0] for line in said] == (["texts"] if chosen else [])
    assert side.training
