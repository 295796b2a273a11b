import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.search import Rarity, fused

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


def test_rare_words_say_more_than_frequent_ones() -> None:
    rarity = Rarity(["a dog", "a cat", "a bird", "a boat"])
    assert rarity.shares("a dog", ["a cat"])[0] < 0.1
    assert rarity.shares("a dog", ["the DOG"])[0] > 0.9
    assert rarity.shares("a dog", ["a dog there"])[0] == 1
    assert rarity.shares("sneakers", ["a dog in sneakers"])[0] == 1
    assert rarity.shares("red sneakers", ["a red dog"])[0] == 0.5
    assert rarity.shares("?!", ["a dog"])[0] == 0
    assert Rarity([]).shares("dog", ["dog"])[0] == 1
