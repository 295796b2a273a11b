"""Answers of both models are true: degrees, facts and counts are those of the pictures.

Also tests rungwise.demo._examples.
"""

import numpy as np
import pytest

from rungwise.calibration import RUNGS
from rungwise.core import UserError
from rungwise.demo._comparison import LONGEST
from rungwise.demo._examples import choose_examples
from rungwise.demo._parts import fresh_queries
from rungwise.demo._places import NAMES, RELEVANT_FROM
from rungwise.scenes import SceneQuery, read_statement
from tests.demo.conftest import SMALL

QUERY = "a small red star above a blue heart"


def test_degrees_and_facts_are_exact(demo):
    answer = demo.comparison.answer(QUERY)
    degrees = dict(zip(demo.comparison.ids, demo.comparison.degrees([read_statement(QUERY)])[0].tolist(), strict=True))
    assert answer.facts == 6
    assert answer.pictures == len(degrees)
    assert answer.relevant == sum(degree >= RELEVANT_FROM for degree in degrees.values())
    assert list(answer.ideal) == pytest.approx(sorted(degrees.values(), reverse=True)[: len(answer.ideal)], abs=1e-4)
    assert [column.name for column in answer.columns] == list(NAMES)
    for column in answer.columns:
        for hit in column.hits:
            assert hit.degree == pytest.approx(degrees[hit.id], abs=1e-4)
            assert hit.true == round(hit.degree * 6)
            assert bool(hit.wrong) == (hit.true < 6)


def test_bands_stand_before_the_end_and_nowhere_else(demo):
    for query in fresh_queries(SMALL, (), 12):
        for column in demo.comparison.answer(query.text).columns:
            bands = [hit.band for hit in column.hits]
            assert all(band in RUNGS for band in bands[: column.shown])
            assert not any(bands[column.shown :])
            assert [RUNGS.index(band) for band in bands[: column.shown]] == sorted(
                RUNGS.index(band) for band in bands[: column.shown]
            )


def test_the_order_is_that_of_a_search(demo):
    from rungwise.index import Searcher

    for column in demo.comparison.answer(QUERY).columns:
        side = demo.comparison.sides[column.name]
        hits = Searcher(side.index, side.model).search_text(QUERY, len(column.hits))
        assert [hit.id for hit in hits] == [hit.id for hit in column.hits]


def test_what_is_not_understood_has_no_degrees(demo):
    answer = demo.comparison.answer("a purple elephant")
    assert answer.unknown == ("elephant",)
    assert (answer.facts, answer.chance, answer.ideal) == (0, None, ())
    for column in answer.columns:
        assert (column.curve, dict(column.measures), column.first_right) == ((), {}, None)
        assert {hit.degree for hit in column.hits} == {None}


@pytest.mark.parametrize("query", ["quantum chromodynamics equation", "the stock market fell", "ein Hund am Strand"])
def test_for_what_is_of_another_world_nothing_is_shown(demo, query):
    for column in demo.comparison.answer(query).columns:
        assert (column.shown, column.belief < 0.5) == (0, True)


@pytest.mark.parametrize(("query", "complaint"), [("  ", "is empty"), ("star " * LONGEST, "characters")])
def test_queries_that_are_refused(demo, query, complaint):
    with pytest.raises(UserError, match=complaint):
        demo.comparison.answer(query)


def test_spaces_make_no_difference(demo):
    assert demo.comparison.answer(f"  {QUERY.replace(' ', '  ')} ") == demo.comparison.answer(QUERY)


def test_examples_are_what_they_are_said_to_be(demo):
    queries = fresh_queries(SMALL, (), 60)
    examples = choose_examples(demo.comparison, queries, queries)
    assert sum(example.outcome == "found" for example in examples) <= 4
    for example in examples:
        answer = demo.comparison.answer(example.text)
        own = answer.columns[NAMES.index("degrees")]
        match example.outcome:
            case "found":
                assert own.first_right == 1
                assert own.shown > 0
                assert answer.relevant >= 4
            case "missed":
                assert own.first_right is None or own.first_right > 5
            case "absent":
                assert own.shown == 0
                assert answer.relevant == 0


def test_examples_come_in_their_order(demo):
    """The first that fit, not the best that can be found."""
    texts = [query.text for query in fresh_queries(SMALL, (), 60)]
    answers = [(text, demo.comparison.answer(text)) for text in texts]
    found = [text for text, answer in answers if answer.columns[1].first_right == 1 and answer.relevant >= 4]
    shown = [text for text in found if demo.comparison.answer(text).columns[1].shown][:4]
    queries = [SceneQuery(text, read_statement(text)) for text in texts]
    assert [one.text for one in choose_examples(demo.comparison, queries, ()) if one.outcome == "found"] == shown


def test_chance_is_the_mean_degree(demo):
    answer = demo.comparison.answer(QUERY)
    assert answer.chance == pytest.approx(np.mean(demo.comparison.degrees([read_statement(QUERY)])), abs=1e-4)
