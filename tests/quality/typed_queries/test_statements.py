import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.quality.typed_queries._statements import reader_of, statements_of, words_in

WORDS = ("red", "blue", "wallet", "belt", "shoe")
TEXTS = st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.integers(0, 3)), min_size=1, max_size=12)
QUERIES = st.lists(st.lists(st.sampled_from((*WORDS, "hat")), min_size=1, max_size=3), min_size=1, max_size=4)


@given(TEXTS, QUERIES)
def test_shares_are_those_of_loops(texts: list, queries: list) -> None:
    told = statements_of([" ".join(words) for words, _ in texts], np.array([at for _, at in texts]), 4, words_in)
    found = told.shares([words_in(" ".join(query)) for query in queries])
    for row, query in enumerate(queries):
        for picture in range(4):
            held = {word for words, at in texts if at == picture for word in words}
            wanted = set(query)
            assert found[row, picture] == pytest.approx(len(wanted & held) / len(wanted))


@given(TEXTS, QUERIES)
def test_what_texts_miss_is_estimated_as_chao_does(texts: list, queries: list) -> None:
    told = statements_of([" ".join(words) for words, _ in texts], np.array([at for _, at in texts]), 4, words_in)
    found = told.missed([words_in(" ".join(query)) for query in queries])
    number = [sum(at == picture for _, at in texts) for picture in range(4)]
    counts = []
    for row, query in enumerate(queries):
        for picture in range(4):
            stating = sum(set(query) <= set(words) for words, at in texts if at == picture)
            if stating and number[picture] > 1:
                counts.append((row, stating, number[picture]))
    if not counts:
        assert (found == 0.5).all()
        return
    many = sum(texts for _, _, texts in counts) / len(counts)

    def unseen(stated: list[int]) -> float:
        once, twice = (stated.count(times) for times in (1, 2))
        return (many - 1) / many * once * (once - 1) / (2 * (twice + 1))

    usual = min(4.0, unseen([stating for _, stating, _ in counts]) / len(counts))
    for row in range(len(queries)):
        own = [stating for at, stating, _ in counts if at == row]
        assert found[row] == pytest.approx(min(4.0, (unseen(own) + 10 * usual) / (len(own) + 10)))


def test_a_query_that_captions_seldom_repeat_is_overlooked_more_often() -> None:
    """Of "red" every text that could say it says it; "bright" is said by one of four, in every picture."""
    texts = ["red wallet"] * 4 + ["bright wallet", "small wallet", "small wallet", "wallet"]
    told = statements_of(texts * 30, np.repeat(np.arange(60), 4), 60, words_in)
    red, small, bright, unheard = told.missed([words_in(one) for one in ("red", "small", "bright", "hat")])
    assert red == small < unheard < bright


def test_words_are_read_without_case_plural_and_joining_words() -> None:
    assert words_in("The Black WALLETS of 2019") == {("word", "black"), ("word", "wallet")}
    assert words_in("glass dress") == {("word", "glass"), ("word", "dress")}
    assert words_in("of 42") == frozenset()
    assert len(words_in("雪")) == 1


def test_english_captions_are_read_by_their_grammar_and_other_texts_by_words() -> None:
    pytest.importorskip("lemminflect")
    parse, name = reader_of(["A black dog runs in the snow.", "Two men on a beach"] * 5)
    assert "grammar" in name
    assert parse("a black dog") == {("dog",), ("dog", "black")}
    assert parse("puppies") == parse("dog")
    for texts in (["Puma Men Black Watch", "Nike Red Shirt"], ["Ein Hund im Schnee"], ["雪の中の犬"], []):
        assert reader_of(texts) == (words_in, "words")


def test_another_colour_contradicts_and_silence_does_not() -> None:
    pytest.importorskip("lemminflect")
    parse, _ = reader_of(["a dog in the snow"])
    texts = ["a white dog", "a black and white dog", "a dog", "a white cat with a dog"]
    told = statements_of(texts, np.arange(4), 4, parse)
    assert told.contradicted([parse("a black dog")]).tolist() == [[True, False, False, False]]
    assert not told.contradicted([parse("dog"), parse("a big dog")]).any()


COLOURS, SIZES, THINGS = ("red", "white", "black"), ("big", "small"), ("dog", "cat")
STATED = st.frozensets(st.sampled_from([(thing, of) for thing in THINGS for of in (*COLOURS, *SIZES, "happy")]))


@given(st.lists(st.tuples(STATED, st.integers(0, 3)), max_size=8), st.lists(STATED, min_size=1, max_size=3))
def test_contradictions_are_those_of_loops(texts: list, queries: list) -> None:
    names = [str(at) for at in range(len(texts))]
    told = statements_of(names, np.array([at for _, at in texts], int), 4, lambda text: texts[int(text)][0])
    found = told.contradicted(queries)
    for row, query in enumerate(queries):
        for picture in range(4):
            held = {unit for stated, at in texts if at == picture for unit in stated}
            expected = False
            for thing, attribute in query:
                for family in (COLOURS, SIZES):
                    if attribute in family and (thing, attribute) not in held:
                        expected |= any((thing, other) in held for other in family)
            assert found[row, picture] == expected
