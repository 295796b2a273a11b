from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.index import ExactStore, LanceStore, Store
from rungwise.index.stores.factory import choose, create_store, open_store
from rungwise.similarity import Cosine, Order


@pytest.mark.parametrize(("kind", "made"), [("exact", ExactStore), ("lance", LanceStore)])
def test_what_was_made_is_opened(tmp_path: Path, kind: str, made: type[Store]) -> None:
    create_store(kind, tmp_path, "pictures", 2, Cosine(), "image").upsert(["a"], [[1, 0]])
    opened = open_store(kind, tmp_path, "pictures")
    assert isinstance(opened, made)
    assert opened.count() == 1
    assert opened.about().exact


def test_an_unknown_kind_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'cloud'.*exact"):
        open_store("cloud", tmp_path, "pictures")  # type: ignore[arg-type]


def test_lance_is_chosen_where_it_can_compare(tmp_path: Path) -> None:
    assert choose("auto", tmp_path, Cosine()) == "lance"
    assert choose("auto", tmp_path, Order()) == "exact"
    assert choose("exact", tmp_path, Cosine()) == "exact"
    for kind, place, wrong in (
        ("lance", tmp_path, "'order'"),
        ("auto", "s3://pets", "'order'"),
        ("exact", "s3://pets", "folder"),
    ):
        with pytest.raises(UserError, match=wrong):
            choose(kind, place, Order())  # type: ignore[arg-type]


def test_half_precision_is_of_lance(tmp_path: Path) -> None:
    store = create_store("lance", tmp_path, "pictures", 2, Cosine(), "image", half=True)
    store.upsert(["a"], [[0.1, 0.2]])
    assert open_store("lance", tmp_path, "pictures").get(["a"])["a"].vector.tolist() == [
        0.0999755859375,
        0.199951171875,
    ]
    with pytest.raises(UserError, match="too large for half precision"):
        store.upsert(["b"], [[1e5, 0]])
    with pytest.raises(UserError, match="full precision"):
        create_store("exact", tmp_path, "captions", 2, Cosine(), "image", half=True)
