from itertools import combinations
from typing import get_args

import pytest

from rungwise.language.scene_graphs import canonical, family_of
from rungwise.language.scene_graphs._families import COLOURS, Family

MEMBERS = {
    "colour": ("red", "grey", "violet"),
    "number": ("1", "12"),
    "size": ("small", "large", "old"),
    "place": ("in", "left of", "next to", "in front of"),
    "texture": ("striped", "hollow"),
}


@pytest.mark.parametrize("family", get_args(Family))
def test_members_are_told_from_all_others(family):
    assert {family_of(word) for word in MEMBERS[family]} == {family}


def test_other_words_are_of_no_family():
    assert [family_of(word) for word in ("dog", "ride", "", "redhead", "twelve")] == [None] * 5


def test_a_relation_in_its_one_way_is_still_a_place():
    for relation in ("right of", "beneath", "near", "atop", "behind", "inside of", "between"):
        assert family_of(canonical(("a", relation, "b"))[1]) == "place", relation


def test_no_word_is_a_colour_and_something_else():
    for first, second in combinations(MEMBERS.values(), 2):
        assert not set(first) & set(second)
    assert all(family_of(word) == "colour" for word in COLOURS)
