import pytest

from rungwise.core import UserError
from rungwise.relevance import Inference, PairInference


@pytest.mark.parametrize("settings", [Inference, PairInference])
def test_settings_beyond_their_bounds_are_refused(settings):
    with pytest.raises(UserError, match="batch_size"):
        settings(batch_size=0)
    with pytest.raises(UserError, match="precision"):
        settings(precision="float16")


def test_a_longest_pair_of_no_tokens_is_refused():
    with pytest.raises(UserError, match="max_length"):
        PairInference(max_length=0)
