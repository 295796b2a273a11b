import math

import pytest

from rungwise.core.errors import UserError
from rungwise.index import Condition, Where


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
