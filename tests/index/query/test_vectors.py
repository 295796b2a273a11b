import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rungwise.core import UserError
from rungwise.index.query import combined

VECTORS = st.lists(arrays(np.float32, 4, elements=st.integers(-3, 3).map(float)), min_size=2, max_size=4)


def test_a_single_vector_stays_bit_for_bit() -> None:
    vector = np.array([0.1, 0.7, 3.0], np.float32)
    assert combined([vector], [2.5])[0].tobytes() == vector.tobytes()


@given(VECTORS, st.lists(st.floats(-2, 2, width=16), min_size=4, max_size=4))
def test_cosines_with_the_sum_rank_as_the_sum_of_cosines(vectors: list, weights: list) -> None:
    assume(all(np.linalg.norm(one) for one in vectors))
    weights = weights[: len(vectors)]
    units = [one / np.linalg.norm(one) for one in vectors]
    total = sum(weight * unit for weight, unit in zip(weights, units, strict=True))
    assume(np.linalg.norm(total) > 1e-2)
    assume(min(unit.min() for unit in units) < 0)
    made = combined(vectors, weights)
    np.testing.assert_allclose(made[0], total / np.linalg.norm(total), atol=1e-4)


def test_where_no_part_is_negative_the_sum_is_not() -> None:
    assert combined([np.array([1.0, 0]), np.array([1.0, 1.0])], [1, -0.9]).min() == 0


def test_what_is_wanted_less_alone_turns_its_vector_round() -> None:
    np.testing.assert_array_equal(combined([np.array([0, 2.0])], [-0.5]), [[0, -1]])


def test_parts_that_cancel_each_other_are_refused() -> None:
    one = np.array([0.3, 0.4, -0.1], np.float32)
    with pytest.raises(UserError, match="cancel each other"):
        combined([one, 2 * one], [1, -1])
