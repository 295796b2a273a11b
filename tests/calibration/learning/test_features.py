import numpy as np
import pytest
from scipy import stats

from rungwise.calibration import Background, Known
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning._features import (
    CAPTIONED,
    DEPTH,
    HIT_NAMES,
    NAMES,
    QUERY_NAMES,
    QUERY_VIEWS,
    STATING,
    VIEWS,
    depth_of,
    hit_features,
    query_features,
)


def made(hits=300, known=None, log_rate=np.nan, seed=0):
    scores = np.sort(np.random.default_rng(seed).normal(0.2, 0.1, 1000))[::-1]
    null = Null.of(Background(scores, 1000))
    _, table, of_query = hit_features(scores[:hits], null, known, log_rate)
    return scores[:hits], null, dict(zip(NAMES, table.T, strict=True)), of_query


def test_each_column_is_what_its_name_says():
    captions = np.random.default_rng(1).random(300)
    captions[3] = np.nan
    stated, counts = np.random.default_rng(2).random(300), np.random.default_rng(3).integers(1, 4, 300)
    known = Known(
        caption_scores=captions, unknown_share=0.25, words=3, stated=stated, counts=counts, bearers=7, texts=99
    )
    scores, null, columns, _ = made(known=known, log_rate=-3.0)
    has_one = [at for at in range(DEPTH) if at != 3]
    for at in (0, 7, 49, 60, 195):
        z = (scores[at] - null.centre) / null.low_spread
        usual = stats.norm.isf((at + 0.5) / 1000)
        excess = z - usual
        then = min(at + 10, DEPTH - 1)
        later = (scores[then] - null.centre) / null.low_spread - stats.norm.isf((then + 0.5) / 1000)
        first = (scores[0] - null.centre) / null.low_spread - stats.norm.isf(0.5 / 1000)
        assert columns["position"][at] == pytest.approx(z)
        assert columns["below_best"][at] == pytest.approx(first - excess)
        assert columns["best"][at] == pytest.approx(first)
        assert columns["log_rank"][at] == pytest.approx(np.log((at + 1) / 1000))
        assert columns["density"][at] == pytest.approx(excess - later)
        among = captions[has_one]
        assert columns["caption"][at] == captions[at]
        assert columns["caption_z"][at] == pytest.approx((captions[at] - among.mean()) / among.std())
        assert columns["caption_rank"][at] == pytest.approx(np.log(1 + (among > captions[at]).sum()))
        assert columns["stated"][at] == stated[at]
        assert columns["log_texts"][at] == pytest.approx(np.log(1 + counts[at]))
        assert columns["stated_best_ten"][at] == pytest.approx(np.sort(stated[:DEPTH])[-10:].mean())
        assert columns["log_words"][at] == pytest.approx(np.log(3))
        assert columns["log_bearers"][at] == pytest.approx(np.log(7.5 / 100 / counts[:CAPTIONED].mean()))
        assert columns["caption_best_ten"][at] == pytest.approx(np.sort(captions[has_one])[-10:].mean())
        assert (columns["log_rate"][at], columns["unknown_share"][at]) == (-3.0, 0.25)
    assert np.isnan(columns["caption"][3])
    expected = stats.norm.isf((np.arange(100) + 0.5) / 1000)
    assert columns["best_hundred"][0] == pytest.approx((columns["position"][:100] - expected).mean())
    # As measured, where there are 1,000.
    assert columns["best_ten_above"][0] == pytest.approx(scores[:10].mean() - null.centre, rel=0.01)


def test_the_size_of_an_index_moves_no_column_of_a_query():
    """Noise of 300 and of 100,000 candidates looks alike but for chance."""
    rng = np.random.default_rng(4)
    names = QUERY_VIEWS[-1]
    means = []
    for total in (300, 100_000):
        rows = []
        for _ in range(20):
            scores = np.sort(rng.normal(0.2, 0.1, total))[::-1]
            rows.append(query_features(scores[:DEPTH], Null.of(Background(scores, total))))
        means.append(dict(zip(QUERY_NAMES, np.mean(rows, axis=0), strict=True)))
    for name in names:
        assert means[0][name] == pytest.approx(means[1][name], abs=0.25), name


def test_the_query_s_columns_are_repeated_and_alone_the_same():
    scores, null, columns, of_query = made()
    alone = query_features(scores, null)
    assert np.array_equal(alone, of_query, equal_nan=True)
    for name, value in zip(QUERY_NAMES, alone, strict=True):
        assert np.array_equal(columns[name], np.full(DEPTH, value), equal_nan=True)


def test_what_is_known_of_no_hit_is_not_known():
    for known in (None, Known(), Known(caption_scores=np.full(300, np.nan)), Known(caption_scores=np.zeros(0))):
        _, _, columns, of_query = made(known=known)
        assert np.isnan(columns["caption"]).all()
        assert np.isnan(of_query[QUERY_NAMES.index("caption_best_ten")])


@pytest.mark.parametrize("hits", [1, 2, 9, 200, 201])
def test_any_number_of_hits(hits):
    _, _, columns, _ = made(hits=hits, known=Known(caption_scores=np.linspace(1, 0, hits)))
    assert len(columns["position"]) == min(hits, DEPTH)
    assert np.isfinite(columns["position"]).all()


def test_views_are_of_columns_that_are_made_and_end_with_the_poorest():
    for views, names in ((VIEWS, NAMES), (QUERY_VIEWS, QUERY_NAMES)):
        assert all(set(view) <= set(names) for view in views)
        assert all(set(views[-1]) < set(view) and view[: len(views[-1])] == views[-1] for view in views[:-1])
    assert NAMES == HIT_NAMES + QUERY_NAMES


def test_an_index_and_a_larger_one_of_the_same_kind_look_alike():
    """Ten times as many relevant and irrelevant pictures: what is said of a query stays, up to chance."""
    rng = np.random.default_rng(5)
    means = []
    for total in (2_000, 20_000, 100_000):
        rows = []
        for _ in range(20):
            scores = np.concatenate([rng.normal(0.2, 0.1, total), rng.normal(0.6, 0.1, total // 50)])
            scores = np.sort(scores)[::-1]
            sample = Background(rng.choice(scores, 2_000, replace=False), len(scores))
            rows.append(query_features(scores[: depth_of(len(scores))], Null.of(sample)))
        means.append(np.mean(rows, axis=0)[:6])
    assert means[1] == pytest.approx(means[0], abs=0.2)
    assert means[2] == pytest.approx(means[0], abs=0.2)


def test_what_follows_the_hits_is_read_from_the_sample():
    scores = np.sort(np.random.default_rng(6).normal(size=20_000))[::-1]
    _, features, _ = hit_features(scores[:1000], Null.of(Background(scores, 20_000)))
    _, few, _ = hit_features(scores[:100], Null.of(Background(scores, 20_000)))
    assert few[:, 3] == pytest.approx(features[:100, 3], abs=0.02)


def test_later_hits_whose_texts_state_all_words_have_features_too():
    stated = np.zeros(300)
    stated[[3, 250, 299]] = 1.0
    scores = np.sort(np.random.default_rng(0).normal(0.2, 0.1, 1000))[::-1]
    null = Null.of(Background(scores, 1000))
    known = Known(stated=stated, caption_scores=np.linspace(1, 0, 300))
    hits, features, _ = hit_features(scores[:300], null, known)
    assert hits.tolist() == [*range(DEPTH), 250, 299]
    assert features[-1, NAMES.index("caption")] == 0
    assert features[-1, NAMES.index("position")] == pytest.approx((scores[299] - null.centre) / null.low_spread)
    # Their rank is not known to a search, which found them by their words.
    assert features[-1, NAMES.index("log_rank")] == features[-2, NAMES.index("log_rank")]
    many = hit_features(scores, null, Known(stated=np.ones(1000)))[0]
    assert len(many) == DEPTH + STATING


def test_hits_that_were_found_by_their_words_are_no_next_nearest_ones():
    """In an index of 5,000 the best 500 have features, but only 200 were looked for; then come two found by words."""
    scores = np.sort(np.random.default_rng(0).normal(0.2, 0.1, 5000))[::-1]
    null = Null.of(Background(scores, 5000))
    found = np.append(np.arange(200), [900, 2400])
    stated = np.append(np.zeros(200), [1.0, 0.5])
    hits, features, of_query = hit_features(scores[found], null, Known(stated=stated, nearest=200))
    assert hits.tolist() == [*range(200), 200]
    alone = hit_features(scores[:200], null, Known(stated=stated[:200]))
    by_scores = [NAMES.index(name) for name in ("position", "below_best", "log_rank", "density")]
    np.testing.assert_allclose(features[:200, by_scores], alone[1][:, by_scores])
    np.testing.assert_allclose(of_query[:6], alone[2][:6])


def test_the_share_of_captions_does_not_depend_on_how_many_a_picture_has():
    """Twice as many captions for each picture: twice as many pictures have one that holds the words."""
    one = made(known=Known(stated=np.zeros(300), counts=np.ones(300, int), bearers=10, texts=999))[2]
    two = made(known=Known(stated=np.zeros(300), counts=np.full(300, 2), bearers=20, texts=999))[2]
    assert two["log_bearers"][0] == pytest.approx(one["log_bearers"][0], abs=0.03)
