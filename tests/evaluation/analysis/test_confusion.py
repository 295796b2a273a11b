import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.evaluation import RankedLists
from rungwise.evaluation.analysis import _confusion as confusions
from rungwise.evaluation.analysis import confusion as confuse
from rungwise.evaluation.analysis._top_candidates import top_candidates_of


def slow(order, asking, answering, k):
    """Per pair of classes, the mean share over the queries of the one, and of wrong results alone."""
    classes = sorted({label for own in (*asking, *answering) for label in own})
    shares, wrong = {}, {}
    for a in classes:
        members = [query for query, own in enumerate(asking) if a in own and len(order[query])]
        for b in classes:
            total = total_wrong = 0.0
            for query in members:
                listed = order[query][:k]
                for candidate in listed:
                    if b in answering[candidate]:
                        part = 1 / len(answering[candidate]) / len(listed)
                        total += part
                        total_wrong += part * (b not in asking[query])
            shares[a, b] = 100 * total / len(members) if members else float("nan")
            wrong[a, b] = 100 * total_wrong / len(members) if members else float("nan")
    return classes, shares, wrong


def assert_same(found, classes, shares, wrong):
    assert list(found.classes) == classes
    for row, a in enumerate(classes):
        for column, b in enumerate(classes):
            assert found.shares[row, column] == pytest.approx(shares[a, b], nan_ok=True)
            assert found.wrong[row, column] == pytest.approx(wrong[a, b], nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_shares_equal_nested_loops(data):
    images, captions = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    owners = data.draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions))
    names = st.sets(st.sampled_from("abcd"), max_size=3).map(sorted)
    labels = data.draw(st.lists(names, min_size=images, max_size=images))
    k = data.draw(st.integers(1, 12))
    scores = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 4, (images, captions))
    of_captions = [labels[owner] for owner in owners]
    lists = top_candidates_of(scores.astype(float), owners, k=12)
    for way, s, asking, answering in (("i2t", scores, labels, of_captions), ("t2i", scores.T, of_captions, labels)):
        found = confuse(lists[way], labels, owners, k)
        order = np.argsort(-s, axis=1, kind="stable").tolist()
        classes, shares, wrong = slow(order, asking, answering, k)
        # Labels of images without captions are classes, too.
        classes = sorted({label for own in labels for label in own})
        full = {(a, b): shares.get((a, b), float("nan")) for a in classes for b in classes}
        assert_same(found, classes, full, {pair: wrong.get(pair, float("nan")) for pair in full})


def test_rows_add_up_and_chance_is_the_share_of_candidates():
    labels = [["a"], ["a", "b"], ["b"], ["c"]] * 5
    lists = top_candidates_of(np.random.default_rng(0).random((20, 20)), np.arange(20), k=7)
    found = confuse(lists["t2i"], labels, np.arange(20), 7)
    np.testing.assert_allclose(found.shares.sum(axis=1), 100)
    np.testing.assert_allclose(found.chance, [37.5, 37.5, 25.0])
    assert found.queries.tolist() == [10, 10, 5]
    assert (found.direction, found.k) == ("t2i", 7)
    assert np.all(found.wrong <= found.shares + 1e-12)
    assert found.wrong.diagonal().tolist() == [0, 0, 0]


def test_nearest_wrong_classes_are_in_order_and_leave_out_what_is_right():
    labels = ["a", "b", "c", "b"]
    scores = np.array([[0, 3, 1, 2], [0, 3, 1, 2], [0, 1, 3, 2], [0, 3, 1, 2]], dtype=float)
    found = confuse(top_candidates_of(scores, np.arange(4), k=3)["i2t"], labels, np.arange(4), 3)
    assert [(name, round(share, 1)) for name, share in found.nearest_wrong("a")] == [("b", 66.7), ("c", 33.3)]
    assert [name for name, _ in found.nearest_wrong("b")] == ["c"]


def test_numbered_classes_are_in_the_order_of_their_numbers():
    lists = top_candidates_of(np.eye(4), np.arange(4), k=1)["i2t"]
    assert confuse(lists, ["10", "2", "dog", "1"], np.arange(4), 1).classes == ("1", "2", "10", "dog")


def test_short_lists_are_taken_as_they_are():
    lists = RankedLists({"t2i": [[0], [1, 0], []]}, (2, 3))
    found = confuse(top_candidates_of(lists, [0, 1, 1])["t2i"], ["a", "b"], [0, 1, 1], 10)
    np.testing.assert_allclose(found.shares, [[100, 0], [50, 50]])
    assert found.queries.tolist() == [1, 2]


def test_what_does_not_fit_is_refused(monkeypatch):
    lists = top_candidates_of(np.eye(6), np.arange(6), k=3)["i2t"]
    labels = list("abcabc")
    with pytest.raises(UserError, match="the lists hold 3 candidates of each query; ask for k of 1 to 3, not 4"):
        confuse(lists, labels, np.arange(6), 4)
    with pytest.raises(UserError, match="not 0"):
        confuse(lists, labels, np.arange(6), 0)
    with pytest.raises(UserError, match="6 queries and 6 candidates, the labels of 7 and 6"):
        confuse(lists, [*labels, "d"], np.arange(6), 2)
    with pytest.raises(UserError, match="labels of 2 images, not of each"):
        confuse(lists, labels[:2], np.arange(6), 2)
    monkeypatch.setattr(confusions, "MOST_CLASSES", 2)
    with pytest.raises(UserError, match="3 classes are too many"):
        confuse(lists, labels, np.arange(6), 2)
