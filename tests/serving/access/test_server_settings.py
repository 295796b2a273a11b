from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.serving import ServerSettings, ServingLimits, new_app


def test_settings_that_say_nothing_let_only_this_machine_in():
    usual = ServerSettings()
    assert (usual.host, usual.port, usual.token, usual.open_to_all) == ("127.0.0.1", None, None, False)
    assert usual.limits == ServingLimits()
    assert replace(usual, port=0).limits is usual.limits


def test_a_token_that_is_too_short_is_refused_when_the_application_is_made():
    with pytest.raises(UserError, match="token"):
        new_app("pictures", ServerSettings(token="short"))
