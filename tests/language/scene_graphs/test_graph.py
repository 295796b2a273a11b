import pytest

from rungwise.language.scene_graphs import canonical, spoken
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._graph import merged

RELATIONS = sorted(known.PREPOSITIONS | {name for names in known.PHRASES.values() for name in names})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("square", "right of", "circle"), ("circle", "left of", "square")),
        (("square", "below", "circle"), ("circle", "above", "square")),
        (("square", "under", "circle"), ("circle", "over", "square")),
        (("dog", "behind", "cat"), ("cat", "in front of", "dog")),
        (("dog", "near", "cat"), ("cat", "beside", "dog")),
        (("dog", "inside", "box"), ("dog", "in", "box")),
        (("dog", "on top of", "box"), ("dog", "upon", "box")),
    ],
)
def test_one_fact_said_in_two_ways_is_one(first, second):
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("square", "right of", "circle"), ("square", "left of", "circle")),
        (("square", "above", "circle"), ("circle", "above", "square")),
        (("dog", "in front of", "cat"), ("cat", "in front of", "dog")),
        (("dog", "on", "box"), ("dog", "in", "box")),
        (("man", "ride", "horse"), ("horse", "ride", "man")),
    ],
)
def test_two_facts_stay_two(first, second):
    assert canonical(first) != canonical(second)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_one_way_to_say_a_fact_stays_as_it_is(relation):
    for fact in (("dog", relation, "cat"), ("cat", relation, "dog")):
        assert canonical(canonical(fact)) == canonical(fact)
        assert {canonical(fact)[0], canonical(fact)[2]} == {"dog", "cat"}


def test_objects_and_attributes_have_one_way():
    assert canonical(("near",)) == ("near",)
    assert canonical(("dog", "near")) == ("dog", "near")


def test_facts_of_several_captions_stand_once():
    graphs = [frozenset({("dog",), ("dog", "red")}), frozenset({("dog",), ("cat",)}), frozenset()]
    assert merged(graphs) == {("dog",), ("dog", "red"), ("cat",)}
    assert merged([]) == frozenset()


def test_facts_are_spoken_in_their_order():
    assert [spoken(fact) for fact in (("dog",), ("dog", "red"), ("dog", "on top of", "bed"))] == [
        "dog",
        "dog: red",
        "dog - on top of - bed",
    ]
