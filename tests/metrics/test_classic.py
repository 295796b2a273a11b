"""Measures that several positives a query make interesting, against slow references; test_streaming has them all."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.evaluation import EvaluationSettings, Result, compare, evaluate
from rungwise.evaluation.judgements import positives_from_labels
from rungwise.metrics import AP11, DIRECTIONS, MAP, P, R, parse, rank_all

from . import slow_metrics

NAMES = ("MAP", "MAP@1", "MAP@4", "MAP@50", "MAP@4(of_possible)", "P@1", "P@4", "P@50", "AP11")


@st.composite
def labelled(draw):
    """Scores with many ties, and labels: some images have none, so that their queries have no positive."""
    images, captions = draw(st.integers(1, 9)), draw(st.integers(1, 14))
    owners = draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions))
    names = st.sets(st.sampled_from("abc"), max_size=2).map(sorted)
    labels = draw(st.lists(names, min_size=images, max_size=images))
    cells = st.lists(
        st.integers(0, draw(st.sampled_from([0, 2, 90]))), min_size=images * captions, max_size=images * captions
    )
    return np.array(draw(cells), dtype=np.float32).reshape(images, captions), labels, owners


@settings(max_examples=25)
@given(labelled(), st.sampled_from([None, 1, 2, 5]))
def test_measures_of_labels_equal_their_definitions_under_ties(world, chunk):
    similarity, labels, owners = world
    result = evaluate(
        similarity=similarity,
        image_of_caption=owners,
        measures=NAMES,
        protocol="labels",
        settings=EvaluationSettings(positives=positives_from_labels(labels, owners), chunk=chunk),
    )
    of_caption = [labels[owner] for owner in owners]
    for way in DIRECTIONS:
        rows = similarity if way == "i2t" else similarity.T
        asking, answering = (labels, of_caption) if way == "i2t" else (of_caption, labels)
        for name in NAMES:
            wanted = [
                slow_metrics.value(name, way, row, row, [c for c, own in enumerate(answering) if {*own} & {*mine}])
                for row, mine in zip(rows.tolist(), asking, strict=True)
            ]
            np.testing.assert_allclose(result.per_query(f"{way}/{name}"), wanted, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("positives", [*range(1, 32), 100, 1000])
def test_levels_of_recall_are_reached_exactly(positives):
    """Every positive stands at twice its number, then alone at the end of a gallery: precision says which it was."""
    ranks = np.cumsum(np.arange(1, positives + 1))  # precision 2 / (n + 1), falling
    scores = -np.arange(ranks[-1], dtype=np.float64)
    [row] = AP11().per_query(rank_all([scores], [(ranks - 1).tolist()]))
    reached = [max(1, -(-tenths * positives // 10)) for tenths in range(11)]
    np.testing.assert_allclose(row, [200 / (n + 1) for n in reached], rtol=1e-12)
    if positives == 10:
        assert row[3] == 50.0  # the third of ten


@settings(max_examples=25)
@given(labelled())
def test_what_must_hold_of_every_ranking(world):
    similarity, labels, owners = world
    own = positives_from_labels(labels, owners)["i2t"]
    rankings = rank_all(similarity, [own.candidate[a:b].tolist() for a, b in pairwise(own.starts)])
    gallery = similarity.shape[1]
    full = MAP().per_query(rankings)
    for same in (MAP(gallery), MAP(gallery + 3), MAP(gallery, of_possible=True)):
        np.testing.assert_allclose(same.per_query(rankings), full, rtol=1e-12)
    np.testing.assert_array_equal(P(1).per_query(rankings), R(1).per_query(rankings))
    known = own.counts > 0
    np.testing.assert_allclose(P(gallery).per_query(rankings)[known], 100 * own.counts[known] / gallery)
    for k in (1, 3, 6):
        assert (MAP(k, of_possible=True).per_query(rankings) <= MAP(k).per_query(rankings) + 1e-9)[known].all()
    points = AP11().per_query(rankings)
    assert np.isnan(points[~known]).all()
    assert (np.diff(points[known], axis=1) <= 0).all()
    assert (points[known, -1] >= 100 * own.counts[known] / gallery - 1e-9).all()


def test_a_query_with_nothing_right_among_the_first_counts_0_and_is_counted():
    rankings = rank_all([[0.9, 0.8, 0.1], [0.9, 0.8, 0.1], [0.9, 0.8, 0.1]], [[2], [0], []])
    np.testing.assert_array_equal(MAP(2).per_query(rankings), [0.0, 100.0, np.nan])
    assert MAP(2).remarks(rankings) == {"no positive, left out": 1, "nothing right in the first 2, counted 0": 1}
    assert MAP(2, of_possible=True).remarks(rankings) == {"no positive, left out": 1}
    assert MAP(3).remarks(rankings) == MAP().remarks(rankings) == {"no positive, left out": 1}


def test_the_full_list_keeps_its_name_and_its_numbers():
    assert str(parse("MAP")) == "MAP"
    assert parse("MAP") == MAP() != MAP(50)
    assert len({MAP(), MAP(), MAP(50), MAP(50, of_possible=True)}) == 3


def test_rows_of_eleven_are_kept_compared_and_given_intervals(tmp_path):
    generator = np.random.default_rng(0)
    labels = [str(n % 3) for n in range(20)] + [[]]
    owners = np.arange(21)
    same = np.array([[float(a == b) for b in labels] for a in labels])
    given = {"image_of_caption": owners, "measures": ["AP11"], "protocol": "labels"}
    given["settings"] = EvaluationSettings(positives=positives_from_labels(labels, owners))
    results = []
    for noise in (3.0, 0.3):
        one = evaluate(similarity=same + noise * generator.standard_normal(same.shape), **given)
        one.to_json(tmp_path / "r.json")
        results.append(Result.from_json(tmp_path / "r.json"))
    assert results[0].per_query("i2t/AP11").shape == (21, 11)
    low, high = results[0].interval("i2t/AP11")
    assert low < results[0]["i2t/AP11"] < high
    found = compare(results, draws=200)
    assert {one.verdict for one in found.differences} == {"better"}
    assert len(found.changes[0].better["i2t"]) > 10
