from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from rungwise.core.output import MOST_LINES, WIDTH, in_few_lines, short, short_repr


@dataclass
class Many:
    ids: tuple[str, ...]
    values: object
    by_name: dict[str, int]
    text: str
    inside: object = None
    __repr__ = short_repr


@pytest.mark.parametrize("count", [0, 1, 9, 10_000])
def test_a_value_of_any_size_prints_few_short_lines(count):
    value = Many(("x" * 90,) * count, np.zeros((count, 3)), {f"n{n}": n for n in range(count)}, "a\nb" * count)
    value.inside = Many((), list(range(count)), {}, "")
    lines = repr(value).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH


def test_a_small_value_prints_as_any_dataclass():
    assert repr(Many(("a",), 1, {"b": 2}, "c")) == "Many(ids=('a',), values=1, by_name={'b': 2}, text='c', inside=None)"


def test_what_is_cut_says_how_much_there_is():
    assert short(tuple(range(5_000)), 24).endswith("... 5,000 items)")
    assert short(np.zeros((40_455, 2), np.float32)) == "<float32 40,455 x 2>"


def test_more_facts_than_lines_are_counted():
    text = in_few_lines("head", [(f"fact {n}", "yes") for n in range(40)])
    assert len(text.splitlines()) == MOST_LINES
    assert text.endswith("... 30 more")


def test_a_named_tuple_prints_as_a_dataclass():
    class Pair(NamedTuple):
        left: object
        right: str = "b"
        __repr__ = short_repr

    assert repr(Pair(np.zeros((400, 2), np.float32))) == "Pair(left=<float32 400 x 2>, right='b')"
