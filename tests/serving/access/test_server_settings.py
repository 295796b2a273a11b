from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.serving import ServerSettings, ServingLimits, new_app
from rungwise.serving.access import Visitor, parse_tokens


def test_settings_that_say_nothing_let_only_this_machine_in():
    usual = ServerSettings()
    assert (usual.host, usual.port, usual.token, usual.open_to_all) == ("127.0.0.1", None, None, False)
    assert usual.limits == ServingLimits()
    assert replace(usual, port=0).limits is usual.limits


def test_one_token_or_several_and_not_both():
    several = parse_tokens("ada read correct-horse", "here")
    assert ServerSettings().known_tokens is None
    assert ServerSettings(tokens=several).known_tokens is several
    assert ServerSettings(token="correct-horse").known_tokens.visitors == (Visitor("", "write"),)
    with pytest.raises(UserError, match="one token was given, and also several"):
        new_app("pictures", ServerSettings(token="correct-horse", tokens=several))


def test_a_token_that_is_too_short_is_refused_when_the_application_is_made():
    with pytest.raises(UserError, match="token"):
        new_app("pictures", ServerSettings(token="short"))
