"""Filters over columns hold for the rows for which they hold in plain Python.

Also tests rungwise.index.stores._scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from rungwise.index.filters import Columns, Condition, Expression, Where
from rungwise.index.stores._scan import compare_all, inverse_lengths
from rungwise.similarity import Cosine, Order, Similarity
from tests.index.filter_expressions import EXPRESSIONS, RECORDS


@settings(max_examples=40)
@given(records=RECORDS, expression=EXPRESSIONS)
def test_a_filter_holds_where_it_holds_in_python(records: list[dict], expression: Expression) -> None:
    wanted = [Where((expression,)).holds("", record) for record in records]
    assert Columns(records).holding((expression,)).tolist() == wanted


def test_whole_numbers_beyond_double_precision_are_told_apart() -> None:
    columns = Columns([{"n": 2**53}, {"n": 2**53 + 1}, {"n": float(2**53)}, {"n": 10**400}, {"n": 1}])
    assert columns.holding((Condition("n", "==", 2**53 + 1),)).tolist() == [False, True, False, False, False]
    assert columns.holding((Condition("n", ">", 2**53),)).tolist() == [False, True, False, True, False]
    assert columns.holding((Condition("n", "<", 10**400),)).tolist() == [True, True, True, False, True]


class Rows:
    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors, self.shape, self.read = vectors, vectors.shape, 0

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, block: slice) -> np.ndarray:
        self.read += len(self.vectors[block])
        return self.vectors[block]

    def gathered(self, positions: np.ndarray) -> np.ndarray:
        self.read += len(positions)
        return np.asarray(self.vectors[positions])

    @property
    def inverse_lengths(self) -> np.ndarray:
        return inverse_lengths(self.vectors)


@pytest.mark.parametrize(
    ("share", "similarity", "metric"),
    [
        (0.0, Cosine(), None),
        (0.1, Cosine(), None),
        (0.1, Order(), None),
        (0.1, Cosine(), "cosine"),
        (0.5, Order(), None),
        (1.0, Cosine(), "cosine"),
    ],
)
def test_kept_rows_are_compared_and_few_of_them_alone_are_read(
    share: float, similarity: Similarity, metric: Any
) -> None:
    generator = np.random.default_rng(0)
    vectors, queries = (generator.integers(-2, 3, (n, 8)).astype(np.float32) for n in (500, 3))
    vectors[7] = 0
    kept, rows = generator.random(500) < share, Rows(vectors)
    positions, scores = compare_all(rows, queries, 20, similarity, "image", metric, kept)
    wanted = similarity.array(vectors, queries).T
    if metric:
        wanted = wanted * inverse_lengths(vectors) / np.linalg.norm(queries, axis=1, keepdims=True)
    wanted = np.where(kept, wanted, -np.inf)
    order = np.argsort(-np.round(wanted, 5), axis=1, kind="stable")[:, : min(20, int(kept.sum()))]
    np.testing.assert_allclose(scores, np.take_along_axis(wanted, order, axis=1), atol=1e-5)
    assert kept[positions].all()
    if metric is None:
        np.testing.assert_array_equal(positions, order)
    if share == 0.1:
        assert rows.read == kept.sum()
