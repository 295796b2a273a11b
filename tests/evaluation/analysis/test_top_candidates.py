import numpy as np
import pytest
from scipy.stats import skew

from rungwise.evaluation import RankedLists
from rungwise.evaluation.analysis import _top_candidates as top_candidates
from rungwise.evaluation.analysis._top_candidates import top_candidates_of
from rungwise.evaluation.judgements._positives import positives_from_lists


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_lists_equal_a_sort_whatever_the_blocks(monkeypatch, block):
    monkeypatch.setattr(top_candidates, "_BLOCK_VALUES", block)
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 9, (15, 45)) / 8
    degrees = generator.random((15, 45))
    owners = generator.permutation(np.repeat(np.arange(15), 3))
    found = top_candidates_of(scores, owners, degrees, k=12)
    for way, s, r in (("i2t", scores, degrees), ("t2i", scores.T, degrees.T)):
        order = np.argsort(-s, axis=1, kind="stable")
        lists = found[way]
        np.testing.assert_array_equal(lists.candidates, order[:, :12])
        np.testing.assert_array_equal(lists.degrees, np.take_along_axis(r, order[:, :12], axis=1))
        for query in range(len(s)):
            right = np.flatnonzero(owners == query) if way == "i2t" else np.array([owners[query]])
            wrong = np.setdiff1d(np.arange(s.shape[1]), right)
            assert lists.best_rank[query] == 1 + min(np.flatnonzero(np.isin(order[query], right)))
            assert lists.margin[query] == pytest.approx(s[query, right].max() - s[query, wrong].max())
            assert lists.own_degrees[query] == r[query, right].min()
            np.testing.assert_array_equal(lists.annotated[query], np.isin(order[query, :12], right))
        counts = np.bincount(order[:, :10].ravel(), minlength=s.shape[1])
        np.testing.assert_array_equal(lists.occurrences, counts)
        assert lists.hubness == pytest.approx(skew(counts))


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_degrees_by_rank_equal_a_sort(monkeypatch, block):
    monkeypatch.setattr(top_candidates, "_BLOCK_VALUES", block)
    monkeypatch.setattr(top_candidates, "_DEEPEST", 40)
    generator = np.random.default_rng(0)
    scores, degrees = generator.integers(0, 9, (15, 45)) / 8, generator.random((15, 45))
    found = top_candidates_of(scores, generator.permutation(np.repeat(np.arange(15), 3)), degrees, k=3)
    for way, s, r, deepest in (("i2t", scores, degrees, 40), ("t2i", scores.T, degrees.T, 15)):
        order, by_rank = np.argsort(-s, axis=1, kind="stable"), found[way].by_rank
        assert by_rank.ranks[0] == 1
        assert by_rank.ranks[-1] == deepest
        for place, rank in enumerate(by_rank.ranks):
            at = np.take_along_axis(r, order[:, rank - 1 : rank], axis=1)[:, 0]
            np.testing.assert_array_equal(by_rank.found[:, place], at)
            np.testing.assert_array_equal(by_rank.ideal[:, place], np.sort(r, axis=1)[:, -rank])
        np.testing.assert_allclose(by_rank.mean, r.mean(axis=1))
        assert found[way].candidates.shape == (len(s), 3)
    assert found["t2i"].positives.tolist() == [1] * 45
    assert found["i2t"].positives.tolist() == [3] * 15


def test_without_all_degrees_there_are_none_by_rank():
    assert top_candidates_of(np.eye(2), [0, 1])["i2t"].by_rank is None
    assert top_candidates_of(np.eye(2), [0, 1], [[1, np.nan], [1, 1]])["i2t"].by_rank is None
    short = RankedLists({"i2t": [[0, 1], [1]]}, (2, 2))
    assert top_candidates_of(short, [0, 1], np.eye(2))["i2t"].by_rank.ranks.tolist() == [1]
    empty = RankedLists({"i2t": [[0, 1], []]}, (2, 2))
    assert top_candidates_of(empty, [0, 1], np.eye(2))["i2t"].by_rank is None


def test_queries_without_a_right_candidate_have_no_rank():
    positives = {"i2t": positives_from_lists([[0, 1], []]), "t2i": positives_from_lists([[0], [0]])}
    lists = top_candidates_of(np.eye(2), [0, 1], np.eye(2), positives)["i2t"]
    assert lists.best_rank[0] == 1
    assert np.isnan([lists.best_rank[1], lists.margin[0], lists.margin[1], lists.own_degrees[1]]).all()


@pytest.mark.parametrize("block", [1, 1 << 22])
def test_what_short_lists_do_not_name_is_not_guessed(monkeypatch, block):
    monkeypatch.setattr(top_candidates, "_BLOCK_VALUES", block)
    given = RankedLists({"i2t": [[3, 0], [], [5, 4, 1]]}, (3, 6))
    degrees = np.arange(18.0).reshape(3, 6)
    [(way, lists)] = top_candidates_of(given, [0, 0, 1, 1, 2, 2], degrees, k=4).items()
    assert way == "i2t"
    np.testing.assert_array_equal(lists.candidates, [[3, 0, -1, -1], [-1] * 4, [5, 4, 1, -1]])
    np.testing.assert_array_equal(lists.degrees, [[3, 0, np.nan, np.nan], [np.nan] * 4, [17, 16, 13, np.nan]])
    np.testing.assert_array_equal(lists.annotated, [[0, 1, 0, 0], [0] * 4, [1, 1, 0, 0]])
    np.testing.assert_array_equal(lists.best_rank, [2, np.inf, 1])
    np.testing.assert_array_equal(lists.occurrences, [1, 1, 0, 1, 1, 1])
    assert np.isnan(lists.scores).all()
    assert np.isnan(lists.margin).all()
    assert lists.lengths.tolist() == [2, 0, 3]
    assert lists.depth == 0


def test_rankings_are_known_as_far_as_the_shortest_list_of_a_query_with_a_right_candidate():
    positives = {"i2t": positives_from_lists([[0], []]), "t2i": positives_from_lists([[0], []])}
    lists = top_candidates_of(RankedLists({"i2t": [[0, 1], [1]], "t2i": [[1, 0], []]}, (2, 2)), [0, 1], None, positives)
    assert (lists["i2t"].depth, lists["t2i"].depth) == (2, 2)
    assert top_candidates_of(np.eye(2), [0, 1])["i2t"].depth == 2
