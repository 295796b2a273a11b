import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import WordVectors
from rungwise.relevance.embedding import WordSimilarity, by_sentences, by_word_vectors
from tests.scored import tiny_sentence_model

WORDS = WordVectors({"dog": 0, "ice": 1, "cream": 2}, np.array([[3, 4], [1, 0], [0, 1]], np.float32))


def test_vectors_have_length_one_and_unknown_words_none():
    found = by_word_vectors(WORDS).vectors(["dog", "cat", "ice cream", "ice hockey"])
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0.5**0.5, 0.5**0.5], [1, 0]], atol=1e-6)


def test_a_file_and_loaded_vectors_say_the_same(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 3 4\nice 1 0\ncream 0 1\n", encoding="utf-8")
    of_file, loaded = by_word_vectors(path), by_word_vectors(WORDS)
    np.testing.assert_array_equal(of_file.vectors(["cream", "dog"]), loaded.vectors(["cream", "dog"]))


def test_fingerprints_follow_the_vectors(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("dog 3 4\n", encoding="utf-8")
    second.write_text("dog 3 5\n", encoding="utf-8")
    assert by_word_vectors(first).fingerprint != by_word_vectors(second).fingerprint
    other = WordVectors(WORDS.row, WORDS.table * 2)
    assert by_word_vectors(WORDS).fingerprint != by_word_vectors(other).fingerprint


@pytest.mark.parametrize("least", [1.0, 1.5, -2.0, float("nan")])
def test_a_least_that_is_no_cosine_below_one_is_refused(least):
    with pytest.raises(UserError, match="least must be a cosine below 1"):
        WordSimilarity(lambda words: np.zeros((len(words), 1), np.float32), least, "none")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.txt"):
        by_word_vectors(tmp_path / "none.txt")


def test_a_sentence_model_knows_any_word(tmp_path):
    pytest.importorskip("sentence_transformers")
    folder = tiny_sentence_model(tmp_path / "model")
    likeness = by_sentences(folder, device="cpu")
    found = likeness.vectors(["dog", "blurkel", "dog"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(found[0], found[2])
    assert likeness.fingerprint == by_sentences(str(folder), device="cpu").fingerprint


@pytest.mark.slow
def test_the_packaged_model_finds_a_pup_nearer_to_a_dog_than_to_a_car():
    likeness = by_sentences()
    pup, dog, car = likeness.vectors(["pup", "dog", "car"])
    assert pup @ dog > likeness.least
    assert pup @ dog > pup @ car + 0.2
    assert likeness.fingerprint == by_sentences().fingerprint


def test_a_cosine_that_cannot_be_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UserError, match="least must be a cosine below 1, got 7"):
        by_word_vectors("nowhere.txt", least=7)
    with pytest.raises(UserError, match="least must be a cosine below 1, got nan"):
        by_sentences("./nowhere", least=float("nan"))
