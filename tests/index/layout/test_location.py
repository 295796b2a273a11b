"""An index under an address of an object store does what one in a folder does.

Also tests rungwise.index.stores._addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.index import Index
from rungwise.index.layout import (
    Grade,
    SavedSearch,
    add_grade,
    add_queries,
    forget_queries,
    forget_search,
    keep_favourite,
    location,
    manifest,
    read_favourites,
    read_grades,
    save_search,
    take_back,
)
from rungwise.index.maintenance import verify_index
from rungwise.index.stores.lance._tables import connected
from tests.colour_model import ColourModel, colour_pictures


@pytest.mark.parametrize(
    ("place", "address"),
    [
        ("s3://bucket/pets", "s3://bucket/pets"),
        (Path("s3://bucket/pets/"), "s3://bucket/pets"),
        (Path("gs://bucket"), "gs://bucket"),
        (Path("pets"), None),
        ("/tmp/s3:/pets", None),
        ("C:/pets", None),
        ("C:\\pets", None),
    ],
)
def test_addresses_are_told_from_folders(place: Path | str, address: str | None) -> None:
    assert address_of(place) == address


def test_small_files_of_a_folder_stay_where_they_are(tmp_path: Path) -> None:
    with location.at_hand(tmp_path, ["a"], writing=True) as at_hand:
        assert at_hand == tmp_path


@pytest.mark.smoke
def test_an_index_under_an_address(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "_SECONDS", -1.0)  # what is known of a file is asked again at once
    place, model = Path(f"{bucket}/colours"), ColourModel()
    data = colour_pictures(tmp_path / "photos", ["red", "blue", "green"])
    with pytest.raises(UserError, match=r"s3://pets/some/index/colours: no index here"):
        Index.open(place)
    assert not manifest.is_index(place)
    with pytest.raises(UserError, match="small copies"):
        Index.create(place, model, thumbnails=True)
    with pytest.raises(UserError, match="exact store is a folder"):
        Index.create(place, model, store="exact")

    index = Index.create(place, model)
    index.update(data.select(range(2)), model)
    other = Index.open(place)
    assert (len(other), sorted(item.id for item in other.items())) == (2, sorted(data.image_ids[:2]))
    with pytest.raises(UserError, match="an index stands here already"):
        Index.create(place, model)

    changes = index.update(data, model)
    assert (changes.added, changes.unchanged) == (1, 2)
    assert other.is_replaced()
    other = Index.open(place)
    assert not other.is_replaced()
    assert [hit.id for hit in other.similar(data.image_ids[0], k=1)]
    assert other.remove(data.image_ids[:1]) == 1
    assert len(Index.open(place)) == 2
    index.compact()
    assert [check.wrong for check in verify_index(place) if check.wrong] == []
    assert not list(Path.cwd().glob("s3:*"))


@pytest.mark.slow
def test_a_build_under_an_address_appears_when_it_is_whole(bucket: str, tmp_path: Path) -> None:
    place, model = Path(f"{bucket}/built"), ColourModel()
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])

    def die(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(data, model, place, store="auto", progress=die)
    with pytest.raises(UserError, match="no index here"):
        Index.open(place)
    assert len(Index.build(data, model, place, store="auto")) == 2
    assert len(Index.open(place).search(np.ones((1, model.dimension)), 5)[0]) == 2


@pytest.mark.slow
def test_a_table_of_somebody_else_stays(bucket: str, tmp_path: Path) -> None:
    place, data = f"{bucket}/theirs", colour_pictures(tmp_path / "photos", ["red"])
    connected(place).create_table(manifest.PICTURES, [{"name": "dog"}])
    for make in (Index.create, lambda where, model: Index.build(data, model, where, store="auto")):
        with pytest.raises(UserError, match=r"pictures\.lance: a table of somebody else stands here"):
            make(Path(place), ColourModel())
    assert connected(place).open_table(manifest.PICTURES).to_arrow()["name"].to_pylist() == ["dog"]


def test_an_address_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(UserError, match=r"s3://pets/none: .*check the address"):
        Index.open(Path("s3://pets/none"))


@pytest.mark.parametrize(
    "use",
    [
        lambda folder: keep_favourite(folder, "a"),
        lambda folder: save_search(folder, SavedSearch("x", "a", "", "")),
        lambda folder: forget_search(folder, "x"),
        lambda folder: add_grade(folder, Grade("boats", "a", "right", "")),
        lambda folder: take_back(folder, "boats", "a"),
        lambda folder: add_queries(folder, ["boats"], days=1, most=1),
        lambda folder: forget_queries(folder),
        lambda folder: read_favourites(folder),
        lambda folder: read_grades(folder),
    ],
)
def test_a_folder_that_was_moved_away_is_neither_made_anew_nor_taken_for_empty(
    tmp_path: Path, use: Callable[[Path], object]
) -> None:
    """Made anew, an index that is moved to its name would come to lie inside it."""
    with pytest.raises(UserError, match="moved: no index here, in which"):
        use(tmp_path / "moved")
    assert not list(tmp_path.iterdir())
