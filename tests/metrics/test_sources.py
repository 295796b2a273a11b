import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.metrics.sources import MatrixSource, ProductSource


def test_sources_refuse_it_where_they_read_it():
    wrong = np.ones((2, 2), dtype=complex)
    with pytest.raises(UserError, match="complex128"):
        next(MatrixSource(wrong).rows(1))
    with pytest.raises(UserError, match="complex128"):
        ProductSource(wrong, np.ones((2, 2)), np.arange(2))
