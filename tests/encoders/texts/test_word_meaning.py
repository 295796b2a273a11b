from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.encoders.texts import GRUConfig, WordMeanings


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small encoder in the place of the sentence model."""
    encoder = GRUConfig(word_dimension=4, min_count=1).build(["dog cat sneakers"], 6)
    monkeypatch.setattr("rungwise.encoders.texts._transformer.TransformerConfig.build", lambda *_: encoder)


@pytest.mark.usefixtures("side")
def test_words_have_the_same_vectors_kept_or_not(tmp_path: Path) -> None:
    words = WordMeanings(cache=tmp_path)
    some = ["dog", "cat", "sneakers", "dog"]
    kept = words.encode_known(some)
    assert kept.shape == (4, 6)
    np.testing.assert_allclose(words.encode(some), kept, atol=1e-5)
    sizes = {file: file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()}
    assert sizes
    np.testing.assert_array_equal(WordMeanings(cache=tmp_path).encode_known(some), kept)
    words.encode(["what somebody typed"])
    assert {file: file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()} == sizes


def test_nothing_is_loaded_before_a_word_is_asked_for(tmp_path: Path) -> None:
    words = WordMeanings(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="nowhere"):
        words.encode(["dog"])
