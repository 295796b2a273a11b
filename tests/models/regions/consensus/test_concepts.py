"""Concepts and their graph against slow obvious references."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.encoders.vocabulary import Tokens
from rungwise.models.regions.consensus._concepts import (
    ConceptConfig,
    Concepts,
    ConceptTexts,
    co_occurrence,
    concepts_in,
    concepts_of_file,
    correlation,
    labels_of,
    most_frequent,
    of_pictures,
)

WORDS = ("dog", "cat", "man", "ball", "red", "7")
CAPTIONS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=12)
COUNTS = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=4, unique=True), min_size=1, max_size=15).map(
        lambda found: (size, found)
    )
)


@given(CAPTIONS, st.integers(2, 6), st.integers(1, 4), st.sampled_from([0.3, 0.5, 1.0]))
def test_the_most_frequent_words_are_those_of_a_loop(captions, count, least, share):
    numbers = {}
    for word in sorted(set(WORDS) - {"7"}):
        held = sum(word in caption for caption in captions)
        if least <= held <= share * len(captions):
            numbers[word] = held
    expected = sorted(numbers, key=numbers.get, reverse=True)[:count]
    config = ConceptConfig(count=count, min_count=least, most_share=share)
    texts = [" ".join(caption) for caption in captions]
    if len(numbers) < 2:
        with pytest.raises(UserError, match=rf"^{len(numbers)} words stand in at least {least} and at most .*; lower"):
            most_frequent(texts, config)
    else:
        assert list(most_frequent(texts, config).words) == expected


def test_a_word_counts_once_for_each_caption():
    captions = ["dog dog dog", "cat", "cat ball", "ball", "man"]
    assert most_frequent(captions, ConceptConfig(min_count=1, count=3, most_share=0.5)).words == ("ball", "cat", "dog")


def test_articles_are_left_out_by_their_share():
    captions = ["a dog", "a cat", "a ball", "a man"]
    assert "a" not in most_frequent(captions, ConceptConfig(min_count=1)).words
    assert most_frequent(captions, ConceptConfig(min_count=1, most_share=1)).words[0] == "a"


def test_words_of_a_file_are_left_out(tmp_path: Path):
    (tmp_path / "stop.txt").write_text("Of\nunheard\n")
    config = ConceptConfig(min_count=1, most_share=1, leave_out=str(tmp_path / "stop.txt"))
    assert most_frequent(["a man of snow", "of dogs"], config).words == ("a", "dogs", "man", "snow")


def test_words_of_any_script_are_found():
    concepts = Concepts(("狗", "straße".casefold(), "u-bahn"))
    found = concepts.found(["一隻狗 runs", "Die STRAẞE, die U-Bahn.", "hot-dog", ""])
    assert found[:] == [[0], [1, 2], [], []]


@given(COUNTS)
def test_the_graph_is_that_of_nested_loops(case):
    size, found = case
    config = ConceptConfig()
    together = co_occurrence(Tokens.of(found), size)
    graph = correlation(together, config)
    edges = [[0.0] * size for _ in range(size)]
    for i in range(size):
        times = sum(i in one for one in found)
        for j in range(size):
            both = sum(i in one and j in one for one in found)
            assert together[i, j] == both
            if i != j and times:
                likely = both / times
                edges[i][j] = float(5 ** (likely - 0.02) - 5 ** (-0.02) >= 0.3)
    weighted = [[float(i == j) for j in range(size)] for i in range(size)]
    for j in range(size):
        column = sum(edges[i][j] for i in range(size))
        for i in range(size):
            if edges[i][j]:
                weighted[i][j] += 0.25 * edges[i][j] / column
    lengths = [sum(line) ** -0.5 for line in weighted]
    for i in range(size):
        for j in range(size):
            assert graph[i, j] == pytest.approx(lengths[i] * weighted[j][i] * lengths[j], abs=1e-14)


def test_the_published_threshold_is_a_probability_of_a_sixth():
    """log_5(0.3 + 5^-0.02) + 0.02 = 0.168: edges begin there, whatever the number of captions."""
    for both, near in ((167, False), (169, True)):
        graph = correlation(np.array([[1000, both], [both, 1_000_000]]), ConceptConfig())
        assert (graph[1, 0] > 0) == near
        assert graph[0, 1] == 0


def test_concepts_that_no_text_holds_have_no_neighbours():
    graph = correlation(co_occurrence(Tokens.of([[0, 1]]), 3), ConceptConfig())
    assert graph[2].tolist() == graph[:, 2].tolist() == [0, 0, 1]


def test_labels_stand_where_the_words_of_a_text_are():
    concepts = Concepts(("ball", "dog", "man"))
    texts = ["a man and a dog", "", "dog! dog, DOG"]
    found = concepts.found(texts)
    tokens = ConceptTexts.with_concepts(Tokens.of([[5], [6, 7], [8]]), found)
    assert tokens[:] == [[5], [6, 7], [8]]
    assert tokens.concepts is tokens.training_concepts is found
    assert labels_of(found, np.array([2, 0, 1, 2]), 3).tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 1, 0]]
    assert labels_of(found, np.array([], np.int64), 3).shape == (0, 3)


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 4), max_size=3, unique=True)), max_size=8))
def test_concepts_of_a_picture_are_those_of_all_its_texts(texts):
    found = Tokens.of([sorted(concepts) for _, concepts in texts])
    shared = of_pictures(found, np.array([picture for picture, _ in texts], np.int64))
    assert len(shared) == len(texts)
    for text, (picture, _) in enumerate(texts):
        assert shared[text] == sorted({one for other, concepts in texts if other == picture for one in concepts})


def test_a_file_of_words(tmp_path: Path):
    file = tmp_path / "concepts.txt"
    file.write_text("\ufeffDog\r\n\r\n  ball \n狗\n", encoding="utf-8")
    assert concepts_of_file(str(file)).words == ("dog", "ball", "狗")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.txt: 0 words, where concepts must be 2..8192"),
        ("dog\n", "f.txt: 1 words, where concepts must be 2..8192"),
        ("dog\n12\n", "f.txt, line 2: '12' is no single word; give one word a line"),
        ("dog\n...\n", "f.txt, line 2: '...' is no single word"),
        ("a dog\ncat", "f.txt, line 1: 'a dog' is no single word"),
        ("dog\ncat\nDOG", "f.txt, line 3: 'dog' stands in line 1 as well; take one out"),
        ("".join(f"w{number}\n" for number in range(8193)), "f.txt: 8193 words"),
    ],
)
def test_what_is_no_list_of_concepts_is_one_line(text, message):
    with pytest.raises(UserError, match=f"^{message}"):
        concepts_in(text, "f.txt")


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path):
    with pytest.raises(UserError, match="nowhere.txt: no such file"):
        concepts_of_file(str(tmp_path / "nowhere.txt"))
    (tmp_path / "latin.txt").write_bytes("Männer\nFrau\n".encode("latin-1"))
    with pytest.raises(UserError, match="is not UTF-8"):
        concepts_of_file(str(tmp_path / "latin.txt"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 1}, "concepts.count: must be at least 2"),
        ({"count": 9000}, "concepts.count: must be at most 8192"),
        ({"min_count": 0}, "concepts.min_count: must be at least 1"),
        ({"most_share": 0.0}, "concepts.most_share: must be above 0"),
        ({"most_share": float("nan")}, "concepts.most_share: must be at most 1"),
        ({"width": 0}, "concepts.width: must be at least 1"),
        ({"scale": 1.0}, "concepts.scale: must be above 1"),
        ({"threshold": 0.0}, "concepts.threshold: must be above 0"),
        (
            {"file": "a.txt", "leave_out": "b.txt"},
            "concepts.file names the concepts themselves, so that concepts.leave",
        ),
        ({"neighbours": -1.0}, "concepts.neighbours: must be at least 0"),
    ],
)
def test_settings_that_mean_nothing_are_one_line(options, message):
    with pytest.raises(UserError, match=f"^{message}"):
        ConceptConfig(**options)
