from pathlib import Path

import numpy as np

from rungwise.planning._drawn_index import DrawnModel, drawn_index, drawn_texts


def test_an_index_is_drawn_with_as_many_pictures_and_captions_as_asked(tmp_path: Path) -> None:
    index, model = drawn_index(tmp_path / "index", 60, 0.5, 8)
    assert len(index) == 60
    assert index.manifest.dimension == model.dimension == 8
    assert index.picture_store.about().kind == "lance"
    assert sum(len(item.captions) for item in index.items()) == 30


def test_a_text_has_the_same_vector_always_and_of_length_one() -> None:
    one, other = (DrawnModel(16).encode_text(["a dog", "a cat"]) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1.0, rtol=1e-6)
    assert not np.allclose(one[0], one[1])


def test_texts_share_frequent_words_and_have_rare_ones() -> None:
    texts = drawn_texts(500)
    words = [word for text in texts for word in text.split()]
    counts = np.unique(words, return_counts=True)[1]
    assert counts.max() > 300
    assert (counts == 1).sum() > 300
    assert texts == drawn_texts(500) != drawn_texts(500, seed=2)
