from itertools import permutations

import pytest

from rungwise.scenes import Mention, Scene, SceneObject, Statement

STAR = SceneObject("star", "red", "small", "plain", 0.2, 0.2)
HEART = SceneObject("heart", "blue", "large", "dotted", 0.7, 0.3)
CROSS = SceneObject("cross", "red", "small", "hollow", 0.3, 0.8)


@pytest.mark.parametrize(
    ("subject", "other", "expected"),
    [
        (0, 1, ("left of",)),
        (1, 0, ("right of",)),
        (0, 2, ("above",)),
        (2, 0, ("below",)),
        (1, 2, ("right of", "above")),
        (2, 1, ("left of", "below")),
    ],
)
def test_relations_by_hand(subject, other, expected):
    assert Scene((STAR, HEART, CROSS)).relations(subject, other) == expected


def test_the_gap_itself_is_clear():
    near = SceneObject("star", "red", "small", "plain", 0.45, 0.2)
    nearer = SceneObject("star", "red", "small", "plain", 0.44, 0.2)
    assert Scene((STAR, near)).relations(0, 1) == ("left of",)
    assert Scene((STAR, nearer)).relations(0, 1) == ()


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        (Statement((Mention("star", "red", "small", "plain"),)), True),
        (Statement((Mention("star", "blue"),)), False),
        (Statement((Mention(colour="red"), Mention(colour="red"))), True),
        (Statement((Mention(colour="blue"), Mention(colour="blue"))), False),
        (Statement((Mention("heart"), Mention("star")), (("right of", 0, 1),)), True),
        (Statement((Mention("star"), Mention("heart")), (("right of", 0, 1),)), False),
        (Statement((Mention(colour="red"), Mention("heart")), (("left of", 0, 1), ("below", 0, 1))), True),
        (Statement((Mention("star"),), count=3), True),
        (Statement((Mention("star"),), count=1), False),
    ],
)
def test_truth_by_hand(statement, true):
    scene = Scene((STAR, HEART, CROSS))
    assert statement.is_true_of(scene) is true
    for objects in permutations(scene.objects):
        assert statement.is_true_of(Scene(objects)) is true


def test_more_mentions_than_objects_are_not_true():
    assert not Statement((Mention("star"), Mention("star"))).is_true_of(Scene((STAR,)))


def test_plain_form_holds_only_what_is_stated():
    statement = Statement((Mention("star", size="small"),))
    assert statement.to_plain() == {"mentions": [{"shape": "star", "size": "small"}]}
