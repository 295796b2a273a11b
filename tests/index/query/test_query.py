import math

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import LESS, GivenPicture, GivenVector, Like, Query, Term, Words
from rungwise.index.query._query import MOST_WEIGHT


def test_the_reading_names_every_part() -> None:
    query = Query(
        (
            Term(Words("a  red\nboat"), 2.0),
            Term(Like("boat-7")),
            Term(GivenPicture(b"", "upload.png"), -LESS),
            Term(GivenVector(np.ones(2), "pasted"), -1.0),
        )
    )
    assert query.reading == (
        'pictures like 2 × "a red boat" and the picture boat-7,'
        " less like the picture upload.png and 1 × the picture pasted"
    )
    assert query.texts == query.wanted_texts == ("a  red\nboat",)
    assert query.like == ("boat-7",)
    assert query.has_words


def test_a_single_picture_or_a_single_word_wanted_less_is_said() -> None:
    assert Query((Term(Like("a")),)).reading == "pictures like the picture a"
    assert Query((Term(Words("a"), -LESS),)).reading == 'pictures unlike "a"'
    assert not Query((Term(Like("a")),)).has_words


def test_signs_in_a_plain_text_are_left_alone() -> None:
    assert Query.of("a - b").terms == (Term(Words("a - b")),)


def test_words_that_stand_twice_are_encoded_once() -> None:
    query = Query((Term(Words("a")), Term(Words("b"), -1.0), Term(Words("a"))))
    assert query.texts == ("a", "b")
    assert query.wanted_texts == ("a",)


@pytest.mark.parametrize("weight", [math.nan, math.inf, -math.inf, MOST_WEIGHT * 2])
def test_weights_that_mean_nothing_are_refused(weight: float) -> None:
    with pytest.raises(UserError, match='of "dog"'):
        Term(Words("dog"), weight)


def test_empty_queries_are_refused() -> None:
    for terms in ((), (Term(Words("a"), 0.0),)):
        with pytest.raises(UserError, match="the query is empty"):
            Query(terms)
    with pytest.raises(UserError, match="the query is empty"):
        Term(Words(" "))
