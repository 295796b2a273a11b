"""The names of the room, most of which are loaded when they are first used."""

import pytest

from rungwise import relevance


def test_every_name_can_be_had():
    assert [name for name in relevance.__all__ if not hasattr(relevance, name)] == []


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(AttributeError, match="'rungwise.relevance' has no attribute 'Bleu'"):
        _ = relevance.Bleu
