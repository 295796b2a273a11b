import math

import pytest

from rungwise.core import UserError
from rungwise.index import Both, Condition, Either, Not, Where
from rungwise.index.filters import Expression


@pytest.mark.parametrize(
    ("operator", "value", "fit"),
    [
        ("==", 2, [2, 2.0]),
        ("!=", 2, [1, 3.5]),
        ("<", 2, [1]),
        ("<=", 2, [1, 2, 2.0]),
        (">", 2, [3.5]),
        (">=", 2, [2, 2.0, 3.5]),
        ("in", (1, 3.5, "b"), [1, 3.5, "b"]),
        ("==", True, [True]),
        ("!=", True, [False]),
        ("<", "b", ["a"]),
        ("in", (), []),
    ],
)
def test_conditions_compare_values_of_one_type(operator: str, value: object, fit: list) -> None:
    condition = Condition("n", operator, value)
    values = [1, 2, 2.0, 3.5, True, False, "a", "b", None, [2], {"n": 2}]
    assert [one for one in values if condition.holds({"n": one})] == fit
    assert not condition.holds({"m": 2})


@pytest.mark.parametrize(
    ("operator", "value", "message"),
    [
        ("like", "a", "no operator 'like'"),
        ("in", "abc", "tuple"),
        ("==", ("a",), "tuple"),
        ("==", None, "None is no text"),
        ("==", math.nan, "nan is no text"),
        ("in", ([1],), r"\[1\] is no text"),
        ("<", True, "not in order"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(operator: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        Condition("year", operator, value)
    assert "'year'" in str(error.value)


def test_all_conditions_hold_and_ids_are_left_out() -> None:
    where = Where((Condition("n", ">", 1), Condition("n", "<", 3)), without=frozenset({"b"}))
    assert [where.holds(one, {"n": n}) for one, n in (("a", 2), ("b", 2), ("c", 1), ("d", 3))] == [True] + [False] * 3


RECORD = {"n": 2, "title": "A Red Boat", "tags": ["sea", "Summer"], "none": [], "rungwise.words": "red"}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Condition("tags", "has", "sea"), True),
        (Condition("tags", "has", "SEA"), False),
        (Condition("tags", "has", "se"), False),
        (Condition("none", "has", ""), False),
        (Condition("title", "has", "A Red Boat"), False),
        (Condition("title", "contains", "red b"), True),
        (Condition("title", "contains", ""), True),
        (Condition("tags", "contains", "SUM"), True),
        (Condition("tags", "contains", "sea summer"), False),
        (Condition("n", "contains", "2"), False),
        (Condition("tags", "==", "sea"), False),
        (Condition("rungwise.words", "contains", "red"), False),
        (Not(Condition("tags", "has", "sea")), False),
        (Not(Condition("missing", "==", 1)), True),
        (Not(Condition("n", "==", "2")), True),
        (Both((Condition("n", "==", 2), Not(Condition("n", "==", 3)))), True),
        (Both(()), True),
        (Either(()), False),
        (Either((Condition("n", "==", 3), Condition("title", "contains", "BOAT"))), True),
        (Not(Either((Condition("n", "==", 3), Condition("n", "==", 2)))), False),
    ],
)
def test_conditions_on_texts_and_lists_and_what_is_made_of_them(condition: Expression, holds: bool) -> None:
    assert condition.holds(RECORD) is holds
    assert Where((condition,)).holds("a", RECORD) is holds


@pytest.mark.parametrize("operator", ["has", "contains"])
def test_only_texts_are_looked_for_in_texts(operator: str) -> None:
    with pytest.raises(UserError, match=f"`{operator}` takes a text"):
        Condition("tags", operator, 3)


def test_more_ids_are_left_out() -> None:
    where = Where((Condition("n", "==", 2),), frozenset("a")).and_without(frozenset("b"))
    assert [where.holds(one, {"n": 2}) for one in "abc"] == [False, False, True]
