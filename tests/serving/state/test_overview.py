import logging
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index, Searcher
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


def test_columns_are_read_anew_within_seconds_though_groups_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    reading = overview.columns_of

    def slow(*given: object) -> object:
        now[0] += 1
        return reading(*given)

    monkeypatch.setattr(overview, "columns_of", slow)
    overviews, first = Overviews(clock=lambda: now[0]), served(tmp_path)
    assert overviews.columns_of(first) == first.columns  # until they are read
    overviews.settle()
    before = overviews.columns_of(first)
    assert {column.name for column in before} >= {"title"}
    second = replace(first, version="another", pictures=48)
    assert overviews.columns_of(second) == before
    overviews.settle()
    assert overviews.columns_of(second) == before  # not at once again
    now[0] += 3
    overviews.columns_of(second)
    overviews.settle()
    assert overviews.columns_of(second)[0].rows == 48


def test_columns_that_cannot_be_read_leave_those_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(overview, "columns_of", lambda *_: 1 / 0)
    overviews, now = Overviews(), served(tmp_path)
    overviews.columns_of(now)
    overviews.settle()
    assert overviews.columns_of(now) == now.columns
    assert "columns of the index" in caplog.text
