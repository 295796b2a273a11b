"""Queries that are measured in parts get the values that they get among all, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.metrics import (
    DIRECTIONS,
    MatrixSource,
    MeasureRequest,
    ProductSource,
    QueryValues,
    measure_all,
    measure_shard,
    put_together,
    shards_of,
)
from rungwise.metrics import _sources as sources

from .test_streaming import degrees_of, embeddings, measures, worlds


def in_shards(source, owners, asked_measures, relevance, count, chunk):
    asked = MeasureRequest.of(source.shape, owners, asked_measures, relevance)
    found = QueryValues.nothing(source.shape, asked_measures)
    for shard in reversed(shards_of(source, count)):
        put_together(found, measure_shard(source, asked, shard, chunk))
    return found


def assert_same(found, expected):
    assert found.values.keys() == expected.values.keys()
    for key, values in expected.values.items():
        np.testing.assert_array_equal(found.values[key], values, err_msg=str(key), strict=True)
    assert found.remarks == expected.remarks


@settings(max_examples=15)
@given(worlds(), st.sampled_from([1, 2, 3, 7]), st.sampled_from([None, 1, 2]))
def test_every_measure_of_a_matrix_under_ties(world, count, chunk):
    similarity, relevance, owners = world[:3]
    given_measures, degrees = measures(), degrees_of(relevance)
    whole = measure_all(MatrixSource(similarity), owners, given_measures, degrees)
    parts = in_shards(MatrixSource(similarity), owners, given_measures, degrees, count, chunk)
    assert_same(parts, whole)


@pytest.mark.parametrize(("count", "shuffled"), [(1, True), (2, False), (3, True), (7, False)])
def test_every_measure_of_embeddings(count, shuffled, monkeypatch):
    monkeypatch.setattr(sources, "TILE", (7, 16))
    image, text, owners = embeddings(40, 100, 6, shuffled)
    order = np.argsort(owners, kind="stable")
    relevance = degrees_of(np.round(np.random.default_rng(3).random((40, len(owners))), 1).astype(np.float32))
    given_measures = measures()
    whole = measure_all(ProductSource(image, text, order), owners, given_measures, relevance)
    source = ProductSource(image, text, order)
    assert len(shards_of(source, count)) == (2 * count if count < 7 else 6 + 7)
    assert_same(in_shards(source, owners, given_measures, relevance, count, None), whole)


def test_a_part_of_embeddings_is_cut_likewise(monkeypatch):
    monkeypatch.setattr(sources, "TILE", (4, 8))
    image, text, owners = embeddings(40, 100, 6, True)
    images = np.arange(5, 30)
    captions = np.flatnonzero(np.isin(owners, images))
    part = ProductSource(image, text, np.argsort(owners, kind="stable")).select(images, captions)
    own = owners[captions] - 5
    given_measures = measures(["R@1", "MeanR", "MAP"])
    whole = measure_all(part, own, given_measures)
    assert_same(in_shards(part, own, given_measures, None, 3, None), whole)


@given(st.integers(1, 50), st.integers(1, 9), st.integers(1, 12))
def test_runs_are_whole_tiles_of_about_one_length(queries, tile, count):
    runs = sources._divided(queries, tile, count)
    assert [place for start, stop in runs for place in range(start, stop)] == list(range(queries))
    assert len(runs) == min(count, -(-queries // tile))
    assert all(start % tile == 0 for start, _ in runs)
    tiles = [-(-(stop - start) // tile) for start, stop in runs]
    assert max(tiles) - min(tiles) <= 1


def test_directions_without_queries_have_no_shards():
    assert [shard.direction for shard in shards_of(MatrixSource(np.zeros((3, 0))), 2)] == [DIRECTIONS[0]] * 2
