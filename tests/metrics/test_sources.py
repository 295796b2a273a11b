import warnings

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.metrics import MatrixSource, ProductSource


def test_sources_refuse_it_where_they_read_it():
    wrong = np.ones((2, 2), dtype=complex)
    with pytest.raises(UserError, match="complex128"):
        next(MatrixSource(wrong).rows(1))
    with pytest.raises(UserError, match="complex128"):
        ProductSource(wrong, np.ones((2, 2)), np.arange(2))


def test_numbers_too_large_for_float32_are_refused_and_numpy_says_nothing():
    huge = np.full((3, 2), 1e200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="image_embeddings"):
            ProductSource(huge, huge, np.arange(3))
