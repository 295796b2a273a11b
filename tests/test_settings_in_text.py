"""What is chosen for an experiment prints all that was chosen, so that a logger which stores the text records it.

Losses, which are modules, are tested with all that holds for them in ``tests/losses/test_every_loss.py``.
"""

import inspect
import sys
from abc import ABC
from dataclasses import fields
from typing import get_args

import pytest
import torch

from rungwise.encoders import AnyHead
from rungwise.losses import Ladder
from rungwise.models.subspace._heads import Centred, KernelRows, Posteriors
from rungwise.similarity import AnySimilarity, CrossAttention
from rungwise.training.batches import AnySampler
from rungwise.training.distributed import GlobalNegatives
from rungwise.training.steps import AnyOptimizer, AnySchedule, AnyStep


def members(kind):
    """The classes of a union that may stand within annotations."""
    if isinstance(kind, type):
        return [kind]
    return [
        one for part in get_args(kind) if not isinstance(part, str) for one in members(part) if isinstance(one, type)
    ]


VALUES = [
    one
    for kind in (AnyHead, AnySimilarity, CrossAttention, AnySampler, AnyStep, AnyOptimizer, AnySchedule)
    for one in members(kind)
]


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_a_setting_prints_as_the_call_that_makes_it(kind):
    made = kind()
    for one in fields(made):
        assert one.repr, one.name
    names = vars(sys.modules["rungwise.encoders._heads"]) | vars(sys.modules[kind.__module__])
    assert eval(repr(made), dict(names)) == made
    assert inspect.signature(kind).parameters.keys() == {one.name for one in fields(made)}


def test_there_are_some_of_each():
    assert len(VALUES) == len(set(VALUES))
    assert {"StackHead", "Order", "RelevanceAware", "SGD"} <= {one.__name__ for one in VALUES}
    assert not any(ABC in one.__bases__ for one in VALUES)


def test_fitted_heads_print_their_settings():
    assert repr(KernelRows(3, 2)) == "KernelRows(landmarks=3, width=2)"
    assert repr(Centred(3, 2)) == "Centred(width=3, outputs=2)"
    assert repr(Posteriors(3, 2, exclusive=True)) == "Posteriors(inputs=3, classes=2, exclusive=True)"


def test_a_loss_over_all_processes_prints_what_it_compares_with():
    def mine(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return first @ second.T

    text = repr(GlobalNegatives(Ladder(), similarity=mine))
    compared = "similarity=mine, within=mine, relevance=None, positives=None, gather=True"
    assert f"{compared}\n  (loss): Ladder(thresholds=(0.63,), " in text
