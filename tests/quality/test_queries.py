from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.quality import given_texts, own_captions, own_pictures
from tests.colour_model import ColourModel, colour_pictures

MIXED = ["red", "green", "blue", "red", "yellow"]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "index")


def test_captions_have_the_vectors_of_the_model_and_know_their_pictures(index: Index) -> None:
    queries = own_captions(index, 100)
    assert sorted(queries.names) == sorted(index.captions())
    np.testing.assert_allclose(queries.vectors, ColourModel().encode_text(list(queries.names)), rtol=1e-6)
    assert all(name in index.item(owner).captions for name, owner in zip(queries.names, queries.owners, strict=True))


def test_so_many_are_drawn_and_a_seed_draws_the_same(index: Index) -> None:
    first, again = (own_pictures(index, 3, seed=4) for _ in range(2))
    assert len(first) == 3
    assert first.names == again.names
    assert {own_pictures(index, 1, seed=seed).names for seed in range(60)} == {(item.id,) for item in index.items()}


def test_captions_that_no_picture_bears_are_no_queries(index: Index) -> None:
    index.caption_store.upsert(["nobody's"], ColourModel().encode_text(["red"]))
    assert "nobody's" not in own_captions(index, 100).names


def test_texts_are_asked_once_each_and_blank_ones_not_at_all(index: Index) -> None:
    queries = given_texts(index, ColourModel(), ["red ", "", "blue", "red"], 10)
    assert queries.names == ("red", "blue")
    assert queries.clusters.tolist() == [0, 1]


def test_queries_of_one_picture_are_one_cluster(index: Index) -> None:
    queries = own_captions(index, 100)
    of_picture = dict(zip(queries.owners, queries.clusters.tolist(), strict=True))
    assert len(set(of_picture.values())) == len(of_picture)


def test_an_index_without_captions_says_what_to_ask_instead(index: Index) -> None:
    index.caption_store.delete(list(index.captions()))
    with pytest.raises(UserError, match="no captions to take as queries; take its pictures"):
        own_captions(index, 10)


def test_another_model_is_refused(index: Index) -> None:
    with pytest.raises(UserError, match="built by model"):
        given_texts(index, ColourModel(fingerprint="another"), ["red"], 10)


def test_less_than_one_query_is_refused(index: Index) -> None:
    with pytest.raises(UserError, match="at least 1"):
        own_pictures(index, 0)
