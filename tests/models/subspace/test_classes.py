"""Labels in all their forms are the same classes."""

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.models.subspace._classes import Classes

MEMBERS = [[True, False], [False, True], [False, False], [True, False]]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", None, "a"],
        ["a", "b", "", "a"],
        [("a",), ["b"], (), {"a"}],
        [("a", "a"), ("b",), (None, ""), ("a",)],
        [1, 2, None, 1],
        [1, 2, float("nan"), 1],
        [1.0, 2.0, np.float32("nan"), 1],
        [np.int64(1), np.int8(2), np.float64("nan"), np.float32(1)],
        np.array([1, 2, np.nan, 1]),
        np.array([1, 2, np.nan, 1], np.float16),
        np.array(["a", "b", "", "a"]),
        np.array(["a", "b", None, "a"], dtype=object),
        torch.tensor([1.0, 2.0, float("nan"), 1.0]),
        np.array([[1, 0], [0, 1], [0, 0], [1, 0]]),
        np.array([[1, 0], [0, 1], [0, 0], [1, 0]], np.float32),
        np.array([[1, 0], [0, 1], [0, 0], [1, 0]], bool),
        np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]),  # nobody is in the second class
        torch.tensor([[1, 0], [0, 1], [0, 0], [1, 0]]),
        (label for label in ["a", "b", None, "a"]),
    ],
)
def test_every_form_of_labels_gives_the_same_members(labels) -> None:
    found = Classes.of(labels)
    assert found.members.tolist() == MEMBERS
    assert found.labelled.tolist() == [True, True, False, True]
    assert found.counts.tolist() == [2, 1]
    assert found.are_single
    assert len(found) == 4


def test_numbers_stand_by_size_and_before_words() -> None:
    assert Classes.of([10, 9, "b", "a", 2.0, "2", 2.5]).names == ("2", "9", "10", "2.5", "a", "b")
    assert Classes.of([-1, 3]).names == ("3", "-1")  # no number that counts
    assert Classes.of(["9" * 30, "8"]).names == ("8", "9" * 30)
    assert Classes.of([True, False]).names == ("False", "True")
    assert Classes.of(np.array([[0, 1], [0, 1]])).names == ("1",)


def test_an_item_may_have_several_labels() -> None:
    found = Classes.of([("a", "b"), "b", ("c", "a", None)])
    assert found.names == ("a", "b", "c")
    assert found.members.tolist() == [[True, True, False], [False, True, False], [True, False, True]]
    assert not found.are_single
    assert found.counts.tolist() == [2, 2, 1]


def test_some_items_have_the_classes_among_them_alone() -> None:
    found = Classes.of(["a", "b", "c", "a"]).take(np.array([3, 2]))
    assert found.names == ("a", "c")
    assert found.members.tolist() == [[True, False], [False, True]]


def test_nobody_has_a_label() -> None:
    found = Classes.of([None, ""])
    assert (found.names, found.members.shape, found.labelled.tolist()) == ((), (2, 0), [False, False])
    assert found.are_single


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("abc", "expected one label for each row, got 'abc'"),
        (5, "expected one label for each row, got 5"),
        (np.array(5), r"an array of shape \(\)"),
        (np.zeros((2, 2, 2)), r"an array of shape \(2, 2, 2\)"),
        (np.array([[2, 0], [0, 1]]), "holds 0 and 1 alone"),
        (np.array([[0.5, 0], [0, 1]]), "holds 0 and 1 alone"),
        (np.array([[np.nan, 0], [0, 1]]), "holds 0 and 1 alone"),
        (np.array([[-1, 0], [0, 1]]), "holds 0 and 1 alone"),
        (np.array([["0", "1"]]), "holds 0 and 1 alone"),
    ],
)
def test_what_is_no_labels_is_refused_in_one_line(labels, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        Classes.of(labels)
    assert "\n" not in str(caught.value)
