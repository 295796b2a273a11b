import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.encoders._sides import TEXT_ENCODER
from rungwise.encoders.texts import GRUConfig, GRUEncoder
from rungwise.encoders.texts._gru import with_words
from rungwise.encoders.vocabulary import tokenise

CAPTIONS = ["a red dog", "a dog runs", "ein Hund", "a cat 😀"]
VECTORS = {
    "a": [1.0, 0.0, 2.0],
    "dog": [0.0, 1.0, 0.0],
    "sneakers": [0.5, 0.5, 0.5],
    "Dog": [9.0, 9.0, 9.0],
    "of the": [8.0] * 3,
}


@pytest.fixture(params=["glove", "word2vec", "gzip"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()]
    if request.param == "word2vec":
        lines.insert(0, f"{len(lines)} 3")
    path = tmp_path / "vectors.txt"
    text = "\n".join(lines) + "\n"
    if request.param == "gzip":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text(
        "\n".join(f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()), encoding="utf-8"
    )
    return path


def built(**options: object) -> GRUEncoder:
    config = GRUConfig(min_count=1, **options).of(CAPTIONS)  # type: ignore[arg-type]
    return config.build(CAPTIONS, 5)


def row_of(encoder: GRUEncoder, word: str) -> list[float]:
    return encoder.words.weight[encoder.tokenizer.token_to_id(word)].tolist()


def test_words_start_with_the_vectors_of_the_file(file: Path) -> None:
    encoder = built(word_vectors=str(file))
    assert row_of(encoder, "a") == [1.0, 0.0, 2.0]
    assert row_of(encoder, "dog") == [0.0, 1.0, 0.0]
    assert all(abs(value) <= 0.1 for value in row_of(encoder, "hund"))
    assert encoder.coverage is not None
    assert (encoder.coverage.words, encoder.coverage.found) == (8, 2)
    assert encoder.words.weight.requires_grad


def test_missing_words_may_start_with_the_mean(glove: Path) -> None:
    encoder = built(word_vectors=str(glove), missing="mean")
    assert row_of(encoder, "hund") == row_of(encoder, "<unk>") == [0.5, 0.5, 1.0]


def test_a_frozen_table_stays_as_it_is(glove: Path) -> None:
    encoder = built(word_vectors=str(glove), train_words=False)
    lengths = torch.tensor([3])
    encoder(torch.tensor(encoder.tokenise(["a"])), lengths).sum().backward()
    assert encoder.words.weight.grad is None
    assert encoder.recurrent.weight_ih_l0.grad is not None


def test_words_that_no_caption_holds_are_known_where_the_file_has_them(glove: Path) -> None:
    known = {how: built(word_vectors=str(glove), vocabulary=how).tokenizer for how in ("captions", "file", "both")}
    unknown = known["both"].token_to_id("<unk>")
    assert [unknown in known[how].encode("sneakers").ids for how in known] == [True, False, False]
    assert [unknown in known[how].encode("hund").ids for how in known] == [False, True, False]
    # What no text can be cut into would be rows for nothing.
    assert all(known["both"].token_to_id(word) is None for word in ("Dog", "of the"))


def test_vocabularies_with_more_words_can_be_read_back(glove: Path) -> None:
    encoder = built(word_vectors=str(glove), vocabulary="both")
    again = with_words(encoder.tokenizer, ["a", "sneakers"])
    assert tokenise(again, CAPTIONS) == tokenise(encoder.tokenizer, CAPTIONS)


def test_the_width_is_that_of_the_file_and_coverage_is_saved(glove: Path, tmp_path: Path) -> None:
    config = GRUConfig(min_count=1, word_vectors=str(glove)).of(CAPTIONS)
    assert config.word_dimension == 3
    encoder = config.build(CAPTIONS, 5)
    assert json.loads(encoder.files()[TEXT_ENCODER]) == {"file": "glove.txt", "words": 8, "found": 2}
    glove.unlink()

    class Files:
        path = tmp_path
        text = staticmethod(lambda name: encoder.files()[name])
        json = staticmethod(lambda name: json.loads(encoder.files()[name]))

    again = config.restore(Files(), 5)
    again.load_state_dict(encoder.state_dict())
    assert again.coverage == encoder.coverage
    np.testing.assert_array_equal(again.words.weight.detach(), encoder.words.weight.detach())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_words": False}, "text.train_words: false needs a file of word vectors; set text.word_vectors"),
        ({"vocabulary": "both"}, "text.vocabulary: both needs a file of word vectors; set text.word_vectors"),
        ({"word_vectors": "nowhere.txt"}, "nowhere.txt"),
    ],
)
def test_what_cannot_be_is_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        built(**options)


def test_a_file_of_another_language_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("chien 1 2 3\n")
    with pytest.raises(UserError, match="other.txt: holds none of the 8 words of the captions"):
        built(word_vectors=str(tmp_path / "other.txt"))
