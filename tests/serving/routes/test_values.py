from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import ExactStore, Index
from rungwise.index.stores import StoreCounts, count_records
from rungwise.serving import _app as app
from rungwise.serving import create_app
from rungwise.serving.routes import values
from rungwise.serving.state import Overviews
from tests.colour_model import COLOURS, ColourModel


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """A hundred pictures, four in a folder, of which three lie in others."""
    noise = np.random.default_rng(0).normal(0, 5, (100, 3))
    rows = FeatureRows((np.array(COLOURS["red"]) + noise).astype(np.float32))
    folders = tuple(f"trips/{row // 4:02}" if row < 12 else f"{row // 4:02} \udcff" for row in range(100))
    columns = {"folder": folders, "person": tuple("bob" if row % 30 == 0 else "eve" for row in range(100))}
    data = ImageCaptions(tuple(map(str, range(100))), (), np.array([], int), features=rows, columns=columns)
    return Index.build(data, ColourModel(), tmp_path / "index")


def test_folders_and_names_are_found(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    overviews = Overviews()
    monkeypatch.setattr(app, "Overviews", lambda: overviews)
    client = TestClient(create_app(index, ColourModel()))
    client.get("/about")
    overviews.settle()
    found = client.get("/values?column=person&contains=O").json()
    assert {name: found[name] for name in ("column", "ready", "about", "values", "more")} == {
        "column": "person",
        "ready": True,
        "about": False,
        "values": [{"value": "bob", "rows": 4, "inner": False}],
        "more": False,
    }
    assert client.get("/values?column=folder&contains=trips&k=1").json()["values"] == [
        {"value": "trips", "rows": 12, "inner": True}
    ]
    within = client.get("/values", params={"column": "folder", "within": "trips"}).json()["values"]
    assert [(one["value"], one["rows"]) for one in within] == [("trips/00", 4), ("trips/01", 4), ("trips/02", 4)]
    outermost = client.get("/values?column=folder&within=&k=5").json()
    assert (len(outermost["values"]), outermost["more"]) == (5, True)
    about = {column["name"]: column for column in client.get("/about").json()["columns"]}
    assert [(one["value"], one["rows"]) for one in about["person"]["values"]] == [("eve", 96), ("bob", 4)]
    for asked in ("column=shop", "column=person&k=0", "", f"column={'x' * 501}"):
        refused = client.get(f"/values?{asked}")
        assert refused.status_code == 422
        assert "\n" not in refused.json()["error"]


def test_what_is_typed_is_found_and_counted_though_some_pictures_stand_for_all(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    overviews = Overviews()
    monkeypatch.setattr(app, "Overviews", lambda: overviews)
    some = [record for _, record in index.picture_store.records()][:10]
    monkeypatch.setattr(ExactStore, "counts", lambda _, most: StoreCounts(*count_records(some, most), of=100))
    client = TestClient(create_app(index, ColourModel()))
    client.get("/about")
    overviews.settle()

    def found(**asked: str) -> tuple[bool, dict[str, int]]:
        answer = client.get("/values", params=asked).json()
        return answer["about"], {one["value"]: one["rows"] for one in answer["values"]}

    assert found(column="folder", within="") == (True, {"trips": 100})
    assert found(column="folder", contains="trips/0") == (False, {"trips/00": 4, "trips/01": 4, "trips/02": 4})
    assert found(column="folder", contains="2") == (False, {"trips/02": 4, **{f"{one} ?": 4 for one in range(20, 25)}})
    assert found(column="person", contains="b") == (False, {"bob": 4})
    # Some pictures show two folders that begin so, the store three.
    shown = client.get("/values?column=folder&contains=trips/0&k=3").json()
    assert (len(shown["values"]), shown["more"]) == (3, False)
    shown = client.get("/values?column=folder&contains=1&k=3").json()
    assert (len(shown["values"]), shown["more"]) == (3, True)
    monkeypatch.setattr(values, "_COUNTED", 2)
    shown = client.get("/values?column=folder&contains=trips/0&k=3").json()
    assert (len(shown["values"]), shown["more"]) == (2, True)


def test_until_pictures_are_counted_no_value_is_found(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    overviews, may, counting = Overviews(), threading.Event(), ExactStore.counts
    monkeypatch.setattr(app, "Overviews", lambda: overviews)
    monkeypatch.setattr(ExactStore, "counts", lambda store, most: (may.wait(), counting(store, most))[1])
    client = TestClient(create_app(index, ColourModel()))
    found = client.get("/values?column=person").json()
    assert (found["ready"], found["values"]) == (False, [])
    assert {column["rows"] for column in client.get("/about").json()["columns"]} == {None}
    may.set()
    overviews.settle()
    found = client.get("/values?column=person").json()
    assert (found["ready"], [one["value"] for one in found["values"]]) == (True, ["eve", "bob"])
