import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.search import fused

RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=3)


@given(RANKINGS)
def test_rankings_are_fused_by_the_sum_of_reciprocal_ranks(rankings: list) -> None:
    result = fused(rankings)
    assert sorted(result) == sorted({one for ranking in rankings for one in ranking})
    sums = [sum(1 / (61 + ranking.index(one)) for ranking in rankings if one in ranking) for one in result]
    assert sums == pytest.approx(sorted(sums, reverse=True))


def test_one_ranking_stays_and_two_that_agree_go_before_one() -> None:
    assert fused([["a", "b"], []]) == ["a", "b"]
    assert fused([["a", "b", "c"], ["c"]])[0] == "c"
