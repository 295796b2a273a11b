import pytest

from rungwise.core import UserError
from rungwise.core.text import refuse_idle
from rungwise.model_server import ModelLimits
from rungwise.serving import ServingLimits


def test_limits_of_any_server_are_taken_over() -> None:
    own = ModelLimits(inputs=3)
    assert ModelLimits.of(own) is own
    found = ModelLimits.of(ServingLimits(uploads_per_client=2, waiting_seconds=1.5))
    assert (found.uploads_per_client, found.waiting_seconds, found.inputs) == (2, 1.5, ModelLimits().inputs)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ModelLimits(kept_bytes=5), "kept_bytes changes nothing for a model, which is served without an index"),
        (ModelLimits(request_bytes=1 << 40), "request_bytes changes nothing above upload_bytes_in_all"),
        (ModelLimits(uploads_per_client=200), "uploads_per_client changes nothing above uploads_at_once"),
    ],
)
def test_a_limit_that_another_cancels_is_refused(limits: ModelLimits, message: str) -> None:
    refuse_idle(ModelLimits())
    with pytest.raises(UserError, match=message):
        refuse_idle(limits)
