"""Results as small JSON: what stays exact, what is rounded, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.formats import as_json
from rungwise.evaluation import System, compact_result, compare, evaluate, of_compact
from rungwise.evaluation.result._compact_result import PackedValues
from rungwise.evaluation.tables import SystemsBlock, systems_table


@pytest.fixture
def result():
    draw = np.random.default_rng(0)
    return evaluate(
        similarity=draw.random((30, 90)),
        image_of_caption=np.repeat(np.arange(30), 3),
        relevance=draw.random((30, 90)),
        measures=["rsum", "MedR", "nDCG@10", "CS@20", "MeanDegree@5", "Nsum"],
    )


def through_json(result):
    return of_compact(json.loads(json.dumps(as_json(compact_result(result)))))


def test_ranks_and_hits_stay_exact_and_the_rest_moves_by_less_than_half_a_step(result):
    found = through_json(result)
    for name in result.numbers:
        if name.endswith("MeanDegree@5"):
            assert found[name] == result[name]
        elif "R@" in name or name == "rsum" or name.endswith("MedR"):
            assert found[name] == pytest.approx(result[name], abs=1e-12)
        else:
            assert found[name] == pytest.approx(result[name], abs=0.3 if name == "Nsum" else 0.05)
    for name in ("i2t/nDCG@10", "t2i/NCS@5"):
        assert np.abs(found.per_query(name) - result.per_query(name)).max() <= 0.05 + 1e-9
    assert np.abs(found.per_query("t2i/CS@20") - result.per_query("t2i/CS@20")).max() <= 0.0005 + 1e-9
    np.testing.assert_array_equal(found.image_of_query("t2i"), result.image_of_query("t2i"))


def test_it_is_read_to_the_same_result_again(result):
    once = through_json(result)
    assert through_json(once) == once
    assert compact_result(once) == compact_result(result)


def test_queries_without_a_value_stay_without_one():
    degrees = np.array([[np.nan, 1.0, np.nan], [0.5, 0.0, np.nan]])
    result = evaluate(
        similarity=np.array([[0.9, 0.1, 0.3], [0.8, 0.2, 0.4]]),
        image_of_caption=[0, 1, 1],
        relevance=degrees,
        measures=["JudgedNDCG@10", "JudgedAP(0.5)"],
    )
    found = through_json(result)
    assert np.isnan(result.per_query("t2i/JudgedNDCG@10")).any()
    for name in result.numbers:
        np.testing.assert_array_equal(np.isnan(found.per_query(name)), np.isnan(result.per_query(name)))
        assert found[name] == pytest.approx(result[name], abs=0.06)


def test_two_are_compared_as_their_results_are(result):
    other = evaluate(
        similarity=np.random.default_rng(1).random((30, 90)),
        image_of_caption=np.repeat(np.arange(30), 3),
        measures=["rsum", "MedR"],
    )
    plain, small = compare([result, other])["rsum"], compare([through_json(result), through_json(other)])["rsum"]
    assert small.pictures.interval == pytest.approx(plain.pictures.interval)


def test_numbers_without_their_values_are_not_compared_and_are_named(result):
    small = through_json(result)
    assert not small.has_values("i2t/MeanDegree@5")
    assert "i2t/MeanDegree@5" not in small.intervals()
    found = compare([small, small])
    assert found.without_values == ("i2t/MeanDegree@5", "t2i/MeanDegree@5")
    assert found.left_out() == ["without values per query, not compared: i2t/MeanDegree@5, t2i/MeanDegree@5"]
    with pytest.raises(UserError, match="i2t/MeanDegree@5: without values per query in some result; compare other"):
        compare([small, small], ["i2t/MeanDegree@5"])
    table = systems_table([SystemsBlock("small", (System("one", (small,)), System("other", (small,))))])
    assert "MeanDegree@5" in table.to_text()


def test_it_is_much_smaller(result):
    assert 2 * len(json.dumps(as_json(compact_result(result)))) < len(result.to_json())


def test_a_result_without_values_per_query_keeps_its_numbers(result):
    bare = of_compact({**result.plain()})
    assert of_compact(compact_result(bare)) == bare
    assert not bare.has_queries


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.just(float("nan")), st.integers(-(10**6), 10**6).map(lambda at: at / 10)), max_size=40))
def test_whole_steps_are_packed_without_loss(values):
    packed = PackedValues.of(np.array(values, dtype=np.float64), 10)
    np.testing.assert_allclose(packed.values(), np.array(values, dtype=np.float64), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("packed", "no base 85 \\", "packed values"),
        ("packed", PackedValues.of(np.zeros(3)).packed, "not those of"),
        ("count", 5, "not those of"),
        ("count", -1, "none that were packed"),
        ("count", 1 << 40, "none that were packed"),
        ("parts_of_one", 0, "none that were packed"),
        ("parts_of_one", 1, "is possible"),
    ],
)
def test_damaged_values_are_refused(result, name, value, said):
    content = json.loads(json.dumps(as_json(compact_result(result))))
    content["per_query"]["t2i/nDCG@10"][name] = value
    with pytest.raises(ValueError, match=said):
        of_compact(content)


def test_a_number_that_does_not_follow_from_its_values_is_refused(result):
    content = json.loads(json.dumps(as_json(compact_result(result))))
    content["numbers"]["t2i/nDCG@10"] += 1.0
    with pytest.raises(ValueError, match="t2i/nDCG@10 is .*, but its values per query give"):
        of_compact(content)
