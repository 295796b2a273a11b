"""Every measure against slow obvious references, over every way of cutting the matrix.

Also tests rungwise.metrics._rankings and rungwise.metrics._relevant_sets.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.metrics import (
    DIRECTIONS,
    FAMILIES,
    CheckedDegrees,
    MatrixSource,
    MeanDegree,
    Measure,
    ProductSource,
    TiledSource,
    as_slice,
    measure_all,
    parse,
)
from rungwise.metrics import _sources as sources
from rungwise.metrics import _streaming as streaming

from . import slow_metrics

NAMES = (
    *("R@1", "R@3", "R@500", "Recall@2", "Recall@5", "MedR", "MeanR", "MRR", "MAP", "MAP@R", "RPrecision"),
    *("P@1", "P@3", "P@500", "MAP@1", "MAP@3", "MAP@500", "MAP@3(of_possible)", "MAP@500(of_possible)", "AP11"),
    *("CS@1", "CS@2", "CS@6", "CS@500", "Kendall", "Spearman", "NCS@1", "NCS@4", "NCS@500", "NCS@3(non_gt)"),
    *(
        "NCS@500(non_gt)",
        "nDCG@3",
        "nDCG@500",
        "nDCG@1(ties=expected)",
        "nDCG@3(ties=expected)",
        "nDCG@500(ties=expected)",
        "SR@1",
        "SR@4(m=3)",
        "SR@500(m=500)",
        "SR@3(non_gt)",
        "SR@3(m=4,non_gt)",
        "SR@1(any)",
        "SR@4(m=3,any)",
        "SR@500(m=500,any)",
        "SR@2(m=3,non_gt,any)",
        "NCS@2(m=2)",
        "NCS@4(m=3)",
        "NCS@500(m=500)",
        "NCS@3(m=2,non_gt)",
        "NCS@500(m=4,non_gt)",
        "MeanDegree@1",
        "MeanDegree@3",
        "MeanDegree@500",
    ),
)


def test_every_family_is_held_against_a_reference():
    """Those that take gaps have theirs in test_cutting and test_graded."""
    assert {parse(name).name for name in NAMES} == {family.name for family in FAMILIES if not family.takes_gaps}


def degrees_of(matrix):
    images, captions = (np.arange(length) for length in matrix.shape)
    return CheckedDegrees(lambda i, c: matrix[i][:, c], images, captions)


def measures(names=NAMES):
    found = [parse(name) for name in names]
    assert all(isinstance(one, Measure) for one in found)
    return found


def assert_matches_reference(similarity, relevance, owners, names=NAMES, chunk=None):
    found = measure_all(MatrixSource(similarity), owners, measures(names), degrees_of(relevance), chunk)
    for direction in DIRECTIONS:
        scores, degrees = (m if direction == "i2t" else m.T for m in (similarity, relevance))
        for name in names:
            values = found.values[direction, parse(name)]
            for query, got in enumerate(values):
                own = [
                    query_positive
                    for query_positive in range(scores.shape[1])
                    if (owners[query_positive] == query if direction == "i2t" else owners[query] == query_positive)
                ]
                wanted = slow_metrics.value(name, direction, scores[query], degrees[query], own)
                np.testing.assert_allclose(
                    got, wanted, rtol=1e-9, atol=1e-9, equal_nan=True, err_msg=f"{direction}/{name}, query {query}"
                )


@st.composite
def worlds(draw):
    """Small matrices with few distinct values, so that ties are everywhere, and any number of captions per image."""
    images = draw(st.integers(1, 6))
    captions = draw(st.integers(1, 12))
    owners = np.array(draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions)))
    levels = draw(st.sampled_from([1, 2, 3, 50]))
    cells = st.lists(st.integers(0, levels), min_size=images * captions, max_size=images * captions)
    kind = draw(st.sampled_from([np.float32, np.float64]))
    similarity = np.array(draw(cells), dtype=kind).reshape(images, captions) / 7 - 1
    relevance = np.array(draw(cells), dtype=kind).reshape(images, captions) / 3
    return similarity, relevance, owners


@settings(max_examples=20)
@given(worlds(), st.sampled_from([None, 1, 2, 5]))
def test_every_measure_equals_its_definition_under_ties(world, chunk):
    assert_matches_reference(*world, chunk=chunk)


SHORT = tuple(name for name in NAMES if name not in ("Kendall", "Spearman"))


@settings(max_examples=20)
@given(worlds(), st.sampled_from([None, 1, 2, 5]))
def test_lists_kept_during_the_pass_equal_the_definitions_too(world, chunk):
    assert_matches_reference(*world, names=SHORT, chunk=chunk)
    assert_matches_reference(*world, names=("CS@500", "NCS@2(non_gt)", "SR@1(m=3,non_gt)"), chunk=chunk)
    assert_matches_reference(*world, names=("NCS@1(m=4,non_gt)", "NCS@5(m=1)", "SR@2(m=6,non_gt,any)"), chunk=chunk)


@settings(max_examples=20)
@given(worlds(), st.sampled_from([None, 1, 2, 5]), st.integers(1, 4), st.integers(1, 7), st.booleans(), st.booleans())
def test_semantic_recall_with_the_sets_of_the_authors_program(world, chunk, m, length, non_gt, any_of_them):
    similarity, relevance, owners = world
    measure = parse(f"SR@3(m={m}{',non_gt' if non_gt else ''},lists={length}{',any' if any_of_them else ''})")
    one_query = slow_metrics.any_of_caption_list if any_of_them else slow_metrics.caption_list_recall
    found = measure_all(MatrixSource(similarity), owners, [measure], degrees_of(relevance), chunk)
    sets = [slow_metrics.caption_list_set(relevance, owners, i, m, length, non_gt) for i in range(len(similarity))]
    wanted_i2t, wanted_t2i = [], []
    for image, scores in enumerate(similarity):
        right = [caption for caption, owner in enumerate(owners) if owner in sets[image]]
        removed = [caption for caption, owner in enumerate(owners) if owner == image] if non_gt else []
        wanted_i2t.append(one_query(scores.tolist(), 3, right, removed))
    for caption, owner in enumerate(owners):
        scores = similarity[:, caption].tolist()
        wanted_t2i.append(one_query(scores, 3, sets[owner], [owner] if non_gt else []))
    np.testing.assert_allclose(found.values["i2t", measure], wanted_i2t, rtol=1e-9)
    np.testing.assert_allclose(found.values["t2i", measure], wanted_t2i, rtol=1e-9)


def test_every_measure_equals_its_definition_without_ties():
    generator = np.random.default_rng(3)
    owners = np.repeat(np.arange(30), generator.integers(0, 6, 30))
    shape = (30, len(owners))
    assert_matches_reference(generator.standard_normal(shape), generator.random(shape), owners)


def test_constant_rows_count_zero_and_are_counted():
    similarity = np.array([[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
    relevance = np.array([[0.1, 0.2, 0.3], [0.0, 0.0, 0.0]])
    found = measure_all(
        MatrixSource(similarity), np.array([0, 1, 1]), [parse("CS@3"), parse("NCS@2")], degrees_of(relevance)
    )
    assert found.values["i2t", parse("CS@3")].tolist() == [0.0, 0.0]
    assert dict(found.remarks["i2t", parse("CS@3")]) == {"constant S or R, counted 0": 2}
    assert dict(found.remarks["i2t", parse("NCS@2")]) == {"nothing relevant, counted 0": 1}


def test_images_without_captions_are_left_out_and_counted():
    found = measure_all(
        MatrixSource(np.array([[0.1, 0.9], [0.3, 0.2]])), np.array([0, 0]), [parse("R@1"), parse("MedR")]
    )
    assert found.values["i2t", parse("R@1")].tolist() == pytest.approx([100.0, math.nan], nan_ok=True)
    assert dict(found.remarks["i2t", parse("R@1")]) == {"no positive, left out": 1}
    assert parse("R@1").aggregate(found.values["i2t", parse("R@1")]) == 100.0


def embeddings(images, captions, width, shuffled, seed=0):
    """Floats whose products round differently in differently shaped matrices, with exact duplicates among them."""
    generator = np.random.default_rng(seed)
    image = generator.standard_normal((images, width), dtype=np.float32)
    text = generator.standard_normal((captions, width), dtype=np.float32)
    image[1::7] = image[::7][: len(image[1::7])]
    text[2::9] = text[::9][: len(text[2::9])]
    owners = np.sort(generator.integers(0, images, captions))
    return image, text, generator.permutation(owners) if shuffled else owners


@pytest.mark.parametrize(
    ("kind", "shuffled"), [("embeddings", False), ("embeddings", True), ("function", True), ("matrix", True)]
)
def test_the_numbers_are_the_same_whatever_the_chunk(kind, shuffled, monkeypatch):
    monkeypatch.setattr(sources, "TILE", (16, 64))  # several tiles each way although the matrix is small
    image, text, owners = embeddings(40, 140, 37, shuffled)
    relevance = np.random.default_rng(1).random((40, 140)).round(2)
    order = np.argsort(owners, kind="stable")
    source = {
        "embeddings": lambda: ProductSource(image, text, order),
        "function": lambda: TiledSource(lambda i, c: image[as_slice(i)] @ text[as_slice(c)].T, (40, 140), order),
        "matrix": lambda: MatrixSource(image @ text.T),
    }[kind]
    by_lists = ("SR@10(m=2,lists=5)", "SR@10(m=2,non_gt,lists=5)", "SR@10(m=2,non_gt,lists=5,any)")
    wanted = measures((*NAMES, *by_lists))
    results = [measure_all(source(), owners, wanted, degrees_of(relevance), chunk) for chunk in (1, 7, 1000, 10**9)]
    monkeypatch.setattr(streaming, "_KEPT", 0)  # lists of caption queries from columns instead
    results.append(measure_all(source(), owners, wanted, degrees_of(relevance), 7))
    for key, values in results[0].values.items():
        for other in results[1:]:
            np.testing.assert_array_equal(values, other.values[key], err_msg=str(key))


@pytest.mark.parametrize("shuffled", [False, True])
def test_ranks_of_both_directions_come_from_the_same_bits(shuffled, monkeypatch):
    monkeypatch.setattr(sources, "TILE", (128, 512))
    image, text, owners = embeddings(300, 2100, 16, shuffled)
    source = ProductSource(image, text, np.argsort(owners, kind="stable"))
    similarity = np.empty((300, 2100), dtype=np.float32)
    for which, block in source.rows(64):
        similarity[which] = block
    for which, block in source.columns(64):
        np.testing.assert_array_equal(similarity[:, which], block.T)
    np.testing.assert_array_equal(source.pairs(owners, np.arange(2100)), similarity[owners, np.arange(2100)])
    found = measure_all(source, owners, [parse("MeanR")])
    ranks = found.values["t2i", parse("MeanR")]
    for caption in range(0, 2100, 50):
        assert ranks[caption] == slow_metrics.best_rank(similarity[:, caption].tolist(), [owners[caption]])
    exact = measure_all(MatrixSource(similarity), owners, [parse("MeanR")])
    for direction in DIRECTIONS:
        np.testing.assert_array_equal(found.values[direction, parse("MeanR")], exact.values[direction, parse("MeanR")])


def test_a_selection_is_measured_like_the_cut_out_matrix():
    image, text, owners = embeddings(40, 200, 8, shuffled=True)
    images, captions = np.arange(10, 30), np.flatnonzero((owners >= 10) & (owners < 30))
    source = ProductSource(image, text, np.argsort(owners, kind="stable")).select(images, captions)
    matrix = MatrixSource(image @ text.T).select(images, captions)
    for direction in DIRECTIONS:
        a, b = (measure_all(one, owners[captions] - 10, [parse("MeanR")]).values for one in (source, matrix))
        assert np.mean(a[direction, parse("MeanR")] != b[direction, parse("MeanR")]) < 0.05  # bits of ties may differ


def test_random_scores_give_the_expected_numbers():
    generator = np.random.default_rng(0)
    images, per_image = 400, 5
    captions = images * per_image
    owners = np.repeat(np.arange(images), per_image)
    wanted = measures(("R@10", "MeanR", "CS@50", "Recall@10"))
    found = measure_all(
        MatrixSource(generator.random((images, captions))),
        owners,
        wanted,
        degrees_of(generator.random((images, captions))),
    )
    mean = {key: values.mean() for key, values in found.values.items()}
    chance_of_none = np.prod([(captions - 10 - j) / (captions - j) for j in range(per_image)])
    assert mean["i2t", parse("R@10")] == pytest.approx(100 * (1 - chance_of_none), abs=2.5)
    assert mean["t2i", parse("R@10")] == pytest.approx(100 * 10 / images, abs=1.5)
    assert mean["i2t", parse("MeanR")] == pytest.approx((captions + 1) / (per_image + 1), rel=0.15)
    assert mean["t2i", parse("MeanR")] == pytest.approx((images + 1) / 2, rel=0.05)
    assert mean["i2t", parse("Recall@10")] == pytest.approx(100 * 10 / captions, abs=0.5)
    for direction in DIRECTIONS:
        assert abs(mean[direction, parse("CS@50")]) < 0.02


def test_an_oracle_gives_the_maxima():
    generator = np.random.default_rng(0)
    owners = np.repeat(np.arange(20), 3)
    relevance = generator.random((20, 60))
    relevance[owners, np.arange(60)] += 1
    names = [name for name in NAMES if name not in ("R@500", "P@500", "MedR", "MeanR", "CS@1", "Recall@2")]
    found = measure_all(MatrixSource(relevance), owners, measures(names), degrees_of(relevance))
    for (direction, measure), values in found.values.items():
        wanted = measure.bounds[1]
        if str(measure) == "P@3" and direction == "t2i":  # one image is right
            wanted = 100 / 3
        if str(measure) == "SR@1":  # one candidate of three wanted ones fits
            wanted = 100 / 3 if direction == "i2t" else 100
        if str(measure) in ("SR@3(m=4,non_gt)",):
            wanted = 75
        if isinstance(measure, MeanDegree):
            values, wanted, _ = measure.curves(values)
        np.testing.assert_allclose(values, wanted, err_msg=f"{direction}/{measure}")


def test_a_scorer_that_changes_its_mind_is_found_out():
    generator = np.random.default_rng(0)
    source = TiledSource(lambda i, c: generator.random((len(i), len(c))), (3, 6), np.arange(6))
    with pytest.raises(UserError, match="images 0 to 2: a pair got another score"):
        measure_all(source, np.repeat(np.arange(3), 2), [parse("R@1")])


def test_negative_relevance_is_refused_by_gains_and_taken_by_correlations():
    similarity, owners = np.array([[0.3, 0.2], [0.1, 0.4]]), np.array([0, 1])
    degrees = degrees_of(np.array([[-0.5, 0.2], [0.1, 1.0]]))
    found = measure_all(MatrixSource(similarity), owners, [parse("CS@2")], degrees)
    assert found.values["i2t", parse("CS@2")].tolist() == [-1, 1]
    for name in ("NCS@1", "nDCG@1"):
        with pytest.raises(UserError, match=r"degree of -0\.5 is negative"):
            measure_all(MatrixSource(similarity), owners, [parse(name)], degrees)


def test_graded_measures_need_relevance():
    with pytest.raises(UserError, match="CS@2 needs relevance"):
        measure_all(MatrixSource(np.eye(2)), np.array([0, 1]), [parse("CS@2")])
