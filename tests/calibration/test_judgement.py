import numpy as np
import pytest

from rungwise.calibration import Background
from rungwise.core import UserError


def test_a_background_is_a_sample_of_finite_scores():
    assert Background(np.array([0.5, 0.25]), 2).total == 2
    with pytest.raises(UserError, match="3 scores of 2 candidates"):
        Background(np.zeros(3), 2)
    with pytest.raises(UserError, match="not finite"):
        Background(np.array([0.5, np.nan]), 2)
