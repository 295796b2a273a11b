"""The names of the room, most of which are loaded when they are first used."""

import subprocess
import sys

import pytest

from rungwise import relevance


def test_every_name_can_be_had():
    assert [name for name in relevance.__all__ if not hasattr(relevance, name)] == []


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(AttributeError, match="'rungwise.relevance' has no attribute 'Bleu'"):
        _ = relevance.Bleu


HEAVY = """
import sys
def loaded():
    print(sorted({"numba", "torch", "transformers"} & set(sys.modules)))
import rungwise.relevance.config
loaded()
rungwise.relevance.CIDErD
loaded()
"""


@pytest.mark.slow
def test_kernels_are_loaded_when_a_source_is_asked_for_and_models_by_none_of_them():
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['numba']"]
