import logging
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core import UnavailableError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import ExactStore, Index, Searcher
from rungwise.index.stores import StoreCounts
from rungwise.serving import _app as app
from rungwise.serving import create_app
from rungwise.serving.state import Current, Overviews, ServedIndex
from rungwise.serving.state import _overview as overview
from tests.colour_model import COLOURS, ColourModel


def served(folder: Path, *, captions: bool = True, kinds: bool = False) -> ServedIndex:
    """Twelve rows of each of two colours, with a little noise."""
    colours = ["red", "blue"] * 12
    noise = np.random.default_rng(0).normal(0, 5, (24, 3))
    rows = FeatureRows((np.array([COLOURS[colour] for colour in colours]) + noise).astype(np.float32))
    texts = tuple(f"a {colour} square" for colour in colours) if captions else ()
    titles = {"title": tuple(f"{colour.upper()} shoe number {row}" for row, colour in enumerate(colours))}
    if kinds:
        titles |= {"kind": tuple(f"{colour}-ware" for colour in colours), "shop": ("Rome",) * len(colours)}
    ids = tuple(f"{row}-{colour}" for row, colour in enumerate(colours))
    data = ImageCaptions(ids, texts, np.arange(len(texts)), features=rows, columns=titles)
    index = Index.build(data, ColourModel(), folder / "index")
    return Current(Searcher(index, ColourModel())).now()


@pytest.fixture(autouse=True)
def _two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_GROUPS", 2)


def test_groups_hold_what_is_alike_under_a_phrase_of_their_captions(tmp_path: Path) -> None:
    made = overview.overview(served(tmp_path))
    assert {(cluster.label, cluster.size) for cluster in made.clusters} == {("red square", 12), ("blue square", 12)}
    for cluster in made.clusters:
        colour = cluster.label.split()[0]
        assert len(cluster.ids) == 12
        assert all(one.endswith(colour) for one in cluster.ids)
    assert sorted(made.sample) == sorted(f"{row}-{['red', 'blue'][row % 2]}" for row in range(24))


def test_groups_without_captions_are_called_by_a_phrase_of_their_titles(tmp_path: Path) -> None:
    made = overview.overview(served(tmp_path, captions=False))
    assert {cluster.label for cluster in made.clusters} == {"RED shoe number", "BLUE shoe number"}


def test_groups_are_called_by_the_value_of_a_column_that_they_share_and_others_lack(tmp_path: Path) -> None:
    made = overview.overview(served(tmp_path, kinds=True))
    assert {cluster.label for cluster in made.clusters} == {"red-ware", "blue-ware"}


def test_a_few_pictures_make_no_groups(tmp_path: Path) -> None:
    data = ImageCaptions(("a",), (), np.array([], int), features=FeatureRows(np.array([COLOURS["red"]], np.float32)))
    index = Index.build(data, ColourModel(), tmp_path / "index")
    made = overview.overview(Current(Searcher(index, ColourModel())).now())
    assert (made.clusters, made.sample) == ((), ("a",))


def test_an_overview_is_made_once_for_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, made = served(tmp_path), []
    monkeypatch.setattr(overview, "overview", lambda one: made.append(one) or overview.Overview(one.version, (), ()))
    overviews = Overviews()
    assert overviews.of(now) is None
    overviews.settle()
    assert overviews.of(now) is overviews.of(now) is overviews.at_hand
    assert made == [now]


def test_a_failure_leaves_the_page_without_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ServedIndex) -> None:
        raise MemoryError

    monkeypatch.setattr(overview, "overview", fail)
    caplog.set_level(logging.ERROR)
    overviews, now = Overviews(), served(tmp_path)
    assert overviews.of(now) is None
    overviews.settle()
    assert overviews.of(now) is None
    assert "no overview" in caplog.text


def test_an_overview_that_cost_much_is_not_made_anew_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, versions = [0.0], []

    def dear(one: ServedIndex) -> overview.Overview:
        versions.append(one.version)
        now[0] += 10
        return overview.Overview(one.version, (), ())

    monkeypatch.setattr(overview, "overview", dear)
    overviews, first = Overviews(clock=lambda: now[0]), served(tmp_path)
    second = replace(first, version="another")
    for one in (first, second, second):
        overviews.of(one)
        overviews.settle()
    assert versions == [first.version]
    now[0] += 600  # which is as long as anything waits
    overviews.of(second)
    overviews.settle()
    assert versions == [first.version, "another"]


def test_samples_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overviews, may = Overviews(), threading.Event()
    making = overview.overview
    monkeypatch.setattr(overview, "overview", lambda one: (may.wait(), making(one))[1])
    monkeypatch.setattr(app, "Overviews", lambda: overviews)
    client = TestClient(create_app(served(tmp_path).index, ColourModel()))
    newest = client.get("/sample?by=newest&k=1&of=2").json()
    assert newest["ready"]
    assert [[item["id"] for item in group["items"]] for group in newest["groups"]] == [["23-blue", "22-red"]]
    groups = client.get("/sample?k=2&of=3").json()
    assert not groups["ready"]
    assert groups["groups"][0]["items"]  # something is shown meanwhile
    may.set()
    overviews.settle()
    groups = client.get("/sample?k=2&of=3").json()
    assert groups["ready"]
    assert {group["label"] for group in groups["groups"]} == {"red square", "blue square"}
    assert {group["query"] for group in groups["groups"]} == {"red square", "blue square"}
    assert [len(group["items"]) for group in groups["groups"]] == [3, 3]
    drawn = [client.get("/sample?by=random&k=1&of=24").json()["groups"][0]["items"] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len({item["id"] for item in drawn[0]}) == 24


def test_columns_are_counted_anew_within_seconds_though_groups_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    counting = ExactStore.counts

    def slow(store: ExactStore, most: int) -> StoreCounts:
        now[0] += 1
        return counting(store, most)

    monkeypatch.setattr(ExactStore, "counts", slow)
    overviews, first = Overviews(clock=lambda: now[0]), served(tmp_path)
    assert overviews.columns_of(first) == first.columns  # until they are counted
    assert {column.rows for column in first.columns} == {None}
    overviews.settle()
    before = overviews.columns_of(first)
    assert {column.name: column.rows for column in before}["title"] == 24
    assert isinstance(first.index.picture_store, ExactStore)
    first.index.picture_store.delete(["0-red"])
    second = replace(first, version="another")
    assert overviews.columns_of(second) == before
    overviews.settle()
    assert overviews.columns_of(second) == before  # not at once again
    now[0] += 3
    overviews.columns_of(second)
    overviews.settle()
    assert overviews.columns_of(second)[0].rows == 23


def test_numbers_are_those_of_all_pictures_though_the_first_ones_differ(tmp_path: Path) -> None:
    rows = 1200
    features = FeatureRows(np.tile(np.array([COLOURS["red"]], np.float32), (rows, 1)))
    person = tuple(
        "bob" if row < 500 or row % 100 == 0 else None for row in range(rows)
    )  # as where captions come first
    columns = {"person": person, "folder": tuple(f"{row // 100:03}" for row in range(rows)), "year": tuple(range(rows))}
    data = ImageCaptions(tuple(map(str, range(rows))), (), np.array([], int), features=features, columns=columns)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    overviews, now = Overviews(), Current(Searcher(index, ColourModel())).now()
    overviews.columns_of(now)
    overviews.settle()
    found = {column.name: column for column in overviews.columns_of(now)}
    assert [(one.value, one.rows) for one in found["person"].values] == [("bob", 507)]
    assert (found["person"].rows, found["year"].least, found["year"].most) == (507, 0, 1199)
    assert {one.value: one.rows for one in found["folder"].values} == {f"{number:03}": 100 for number in range(12)}


def test_columns_that_cannot_be_counted_leave_those_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(ExactStore, "counts", lambda *_: 1 / 0)
    overviews, now = Overviews(), served(tmp_path)
    overviews.columns_of(now)
    overviews.settle()
    assert overviews.columns_of(now) == now.columns
    assert overviews.facets_of(now) is None
    assert "columns of the index" in caplog.text


def test_a_store_that_is_away_is_a_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no fault of the program, so that no traceback is needed."""

    def away(*_: object) -> None:
        raise UnavailableError("milvus://db/pets: does not answer;\ncheck that it runs")

    overviews, now = Overviews(), served(tmp_path)
    monkeypatch.setattr(ExactStore, "counts", away)
    monkeypatch.setattr(overview, "overview", away)
    overviews.columns_of(now)
    overviews.of(now)
    overviews.settle()
    assert sorted(caplog.messages) == [
        f"{what}: milvus://db/pets: does not answer; check that it runs"
        for what in ("no overview of the index could be made", "the columns of the index could not be read")
    ]
    assert not any(one.exc_info for one in caplog.records)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("dog", "Dogs"),
        ("dog", "brown dog"),
        ("two dogs", "dogs two"),
        ("The beach", "beaches"),
        ("puppy", "puppies"),
        ("CAFÉ", "cafes"),
        ("黑狗", "狗"),
        ("sea", "..."),
    ],
)
def test_names_that_say_nearly_the_same_are_taken(one: str, other: str) -> None:
    given = [overview._stems(one)]
    assert overview._is_taken(overview._stems(other), given)


@pytest.mark.parametrize(
    ("one", "other"), [("brown dog", "black dog"), ("bus", "bush"), ("class", "clas day"), ("海", "狗")]
)
def test_names_that_differ_are_not_taken(one: str, other: str) -> None:
    assert not overview._is_taken(overview._stems(other), [overview._stems(one)])


def test_neighbouring_groups_have_names_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "_GROUPS", 4)
    near = {
        "red": ("dog", "at night"),
        "orange": ("dogs", "in snow"),
        "blue": ("boat", "at sea"),
        "cyan": ("boats", "by day"),
    }
    place = {"red": [200, 0, 0], "orange": [200, 60, 0], "blue": [0, 0, 200], "cyan": [0, 60, 200]}
    names = [name for name in near for _ in range(12)]
    noise = np.random.default_rng(0).normal(0, 1, (48, 3))
    rows = FeatureRows((np.array([place[name] for name in names]) + noise).astype(np.float32))
    texts = tuple(f"a {near[name][0]}, {near[name][1]}" for name in names)
    data = ImageCaptions(tuple(map(str, range(48))), texts, np.arange(48), features=rows)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    made = overview.overview(Current(Searcher(index, ColourModel())).now())
    stems = [overview._stems(one.label) for one in made.clusters if one.label]
    assert len(made.clusters) == 4
    assert len(stems) >= 2
    assert not any(one <= other for place, one in enumerate(stems) for at, other in enumerate(stems) if at != place)
    assert [(one.size, one.about) for one in made.clusters] == [(12, False)] * 4


def test_sizes_are_about_so_where_some_pictures_were_grouped_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_SAMPLE", 12)
    made = overview.overview(served(tmp_path))
    assert all(one.about for one in made.clusters)
    assert sum(one.size for one in made.clusters) == 24
    assert sorted(made.sample) == sorted(served(tmp_path / "same").index.picture_store.drawn(12))
