import gzip

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rungwise.core import UserError, limited
from rungwise.language import load_word_vectors
from rungwise.language._word_vectors import nouns_from
from rungwise.relevance.embedding import CBoW

TABLE = np.array([[1.5, -2, 0.25], [0, 3, -1], [7, 8, 9]], np.float32)
WORDS = ["the", "hund", "straße"]


def glove(words, table):
    return "".join(
        f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, table.tolist(), strict=True)
    ).encode()


def word2vec_text(words, table):
    return f"{len(words)} {table.shape[1]}\n".encode() + glove(words, table)


def word2vec_binary(words, table, end=b"\n"):
    rows = [word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, table, strict=True)]
    return f"{len(words)} {table.shape[1]}\n".encode() + b"".join(rows)


def packed(content):
    """The same bytes at any time: gzip's time would get into the names of tests, which must not differ by process."""
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize("pack", [bytes, packed], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "layout", [glove, word2vec_text, word2vec_binary, lambda words, table: word2vec_binary(words, table, b"")]
)
def test_every_layout_gives_the_same_vectors(tmp_path, layout, pack):
    file = tmp_path / "vectors"
    file.write_bytes(pack(layout(WORDS, TABLE)))
    vectors = load_word_vectors(file)
    assert vectors.row == {word: row for row, word in enumerate(WORDS)}
    np.testing.assert_array_equal(vectors.table, TABLE)
    few = load_word_vectors(file, {"straße", "nothing"})
    assert few.row == {"straße": 0}
    np.testing.assert_array_equal(few.table, TABLE[2:])


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=4))
def test_binary_vectors_of_any_bytes_are_read_as_they_are(tmp_path_factory, rows):
    """Whatever the numbers' bytes are, line ends and blanks among them, no vector is torn."""
    table = np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), 3)
    assume(np.isfinite(table).all())
    file = tmp_path_factory.mktemp("vectors") / "vectors.bin"
    file.write_bytes(word2vec_binary([f"w{i}" for i in range(len(rows))], table))
    found = load_word_vectors(file)
    assert found.table.tobytes() == table.astype(np.float32).tobytes()


def test_long_vectors_are_told_from_binary(tmp_path):
    """The first line is longer than what is looked at to tell the layout."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3, 3000)).astype(np.float32)
    for name, layout in (("text", word2vec_text), ("binary", word2vec_binary)):
        file = tmp_path / name
        file.write_bytes(layout(WORDS, table))
        np.testing.assert_array_equal(load_word_vectors(file).table, table)


def test_words_with_blanks_and_words_that_are_numbers(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("dog 1 2\n. . . 3 4\n7 5 6\n. 8 9\ndog 0 0\n")
    vectors = load_word_vectors(file)
    assert vectors.row == {"dog": 0, ". . .": 1, "7": 2, ".": 3}
    assert vectors.table.tolist() == [[1, 2], [3, 4], [5, 6], [8, 9]]
    assert load_word_vectors(file, {"."}).table.tolist() == [[8, 9]]


def test_of_words_that_are_no_utf8_and_look_alike_the_first_counts(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_bytes("fähre 1 0\nföhre 0 1\nhund 2 2\n".encode("latin-1"))
    vectors = load_word_vectors(file)
    assert vectors.row == {"f\ufffdhre": 0, "hund": 1}
    assert vectors.table.tolist() == [[1, 0], [2, 2]]
    assert CBoW(["hund", "f\ufffdhre"], [0, 1], vectors).shape == (2, 2)


@pytest.mark.parametrize("layout", [glove, word2vec_text])
@pytest.mark.parametrize("words", [None, set(WORDS)])
def test_tabs_part_words_and_numbers_as_blanks_do(tmp_path, layout, words):
    for name, table in (("short", TABLE), ("long", np.random.default_rng(0).random((3, 3000), np.float32))):
        file = tmp_path / name
        file.write_bytes(layout(WORDS, table).replace(b" ", b"\t"))
        vectors = load_word_vectors(file, words)
        assert vectors.row == {word: row for row, word in enumerate(WORDS)}
        np.testing.assert_array_equal(vectors.table, table)


def test_half_a_character_is_a_word_without_a_vector(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("dog 1 2\n")
    assert load_word_vectors(file, {"dog", "\ud83d"}).row == {"dog": 0}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"dog 1 2\ncat 3 nan\n", "line 2: nan or infinite"),
        (b"dog 1 2\ncat -inf 3\n", "line 2: nan or infinite"),
        (word2vec_binary(WORDS, np.where(TABLE == 9, np.float32(np.inf), TABLE)), "word 3 of 3: nan or infinite"),
        (b"dog cat\n", "line 1: neither a word with numbers"),
        (b"dog 1 2\ncat 3\n", "line 2: 1 numbers where 2 belong"),
        (b"dog 1 2\ncat 3 x\n", "line 2: holds something that is no number"),
        (word2vec_binary(WORDS, TABLE)[:-6], "word 3 of 3 is cut off"),
        (word2vec_binary(WORDS, TABLE)[:-20], "word 3 of 3"),
        (packed(glove(WORDS, TABLE))[:-12], "cannot be read"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "vectors"
    file.write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        load_word_vectors(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_word_vectors(tmp_path / "nowhere")


def test_tags_of_both_schools_are_nouns():
    assert nouns_from(lambda tokens: tokens)(["NN", "NNS", "NNP", "NOUN", "PROPN", "VBZ", "NUM", "DT"]) == [
        *[True] * 5,
        *[False] * 3,
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1000000000000 3\ndog " + b"\0" * 12, "word 2 of 1000000000000 is broken or missing"),
        (b"5 1000000000000\ndog 1 2 3\n", r"line 1: claims vectors of 1000000000000 numbers, where 1..65536 are read"),
        (b"9" * 5000 + b" 3\ndog 1 2 3\n", None),
        (b"3 " + b"9" * 5000 + b"\ndog 1 2 3\n", "line 1: claims vectors of 999999999999999999 numbers"),
        (b"3 0\ndog\n", "line 1: claims vectors of 0 numbers"),
        (packed(glove(WORDS, TABLE))[:20] + b"\xff" * 30, "cannot be read as word vectors"),
        (b"\x1f\x8b" + b"\0" * 100, "cannot be read as word vectors"),
        (b"dog 1 2\n" + b"\0" * 300_000, "line 2: goes on beyond 64.0 KiB; .* set RUNGWISE_MAX_LINE_BYTES higher"),
        (b"dog" * 100_000, "line 1: goes on beyond 64.0 KiB"),
        (packed(b"dog 1 2\n" * 140_000), "unpacked: goes on beyond 1.0 MiB; .* set RUNGWISE_MAX_UNPACKED_BYTES"),
    ],
)
def test_what_claims_or_packs_too_much_is_refused_before_it_takes_memory(tmp_path, content, said):
    file = tmp_path / "vectors"
    file.write_bytes(content)
    with limited(line_bytes=1 << 16, unpacked_bytes=1 << 20):
        if said is None:  # the claimed number of words decides nothing
            assert load_word_vectors(file).row == {"dog": 0}
            return
        with pytest.raises(UserError, match=said) as caught:
            load_word_vectors(file)
    assert "\n" not in str(caught.value)


def test_a_packed_file_may_have_several_parts_with_padding_between_and_after(tmp_path):
    path = tmp_path / "vectors.txt.gz"
    padding = bytes(1 << 20)  # more than is read at a time
    path.write_bytes(packed(b"dog 1 0\n") + padding + packed(b"cat 0 1\n") + padding)
    assert load_word_vectors(path).row == {"dog": 0, "cat": 1}


def test_a_packed_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "vectors.txt.gz"
    whole = packed(b"dog 1 0\ncat 0 1\n")
    for length in range(2, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match="vectors.txt.gz"):
            load_word_vectors(path)
