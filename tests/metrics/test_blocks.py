import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.metrics import CheckedDegrees, as_floats


@pytest.mark.parametrize(
    "given", [[[1, 2]], np.array([[True]]), np.ones((1, 1), np.float16), torch.ones(1, 1, dtype=torch.bfloat16)]
)
def test_real_numbers_of_any_kind_are_floats(given):
    assert as_floats(given).dtype in (np.float32, np.float64)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones((2, 2), dtype=complex), "must be real numbers, got complex128"),
        (torch.ones(2, 2, dtype=torch.complex64), "must be real numbers, got complex64"),
        (np.array([["a", "b"], ["c", "d"]]), "must be real numbers, got <U1"),
        (np.array([[None, 1.0]]), "must be real numbers, got object"),
        ([[1, 2], [3]], "must be a table of numbers"),
    ],
)
def test_what_is_no_real_number_is_refused_in_one_line(given, said):
    with pytest.raises(UserError, match=said) as caught:
        as_floats(given)
    assert "\n" not in str(caught.value)


def test_degrees_of_a_part_are_those_of_the_whole_with_gaps_where_they_are_allowed():
    whole = np.arange(12.0).reshape(3, 4)
    whole[2, 1] = np.nan
    images, captions = np.array([2, 0]), np.array([1, 3])
    given = (lambda some, others: whole[np.ix_(some, others)], np.arange(3), np.arange(4))
    part = CheckedDegrees(*given, gaps=True).select(images, captions).select(np.array([1, 0]), np.array([0]))
    np.testing.assert_array_equal(part.block(np.arange(2), np.arange(1)), [[1], [np.nan]])
    with pytest.raises(UserError, match="relevance, row 2: a value is nan"):
        CheckedDegrees(*given).select(images, captions).block(np.arange(2), np.arange(2))
