"""Searches in tables that plain LanceDB made: right, read-only, and every mistake in one line.

Also tests rungwise.index.stores.lance.foreign._no_rows and rungwise.index.stores.lance.foreign._table_filter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest

import rungwise
from rungwise.core import UserError
from tests.colour_model import COLOURS, ColourModel

NAMES = ("red", "green", "blue", "yellow")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = np.array([COLOURS[NAMES[at % 4]] for at in range(200)], np.float32) - 128 + rng.normal(0, 4, (200, 3))
    vectors = [None if at in (3, 4) else row.tolist() for at, row in enumerate(rows)]
    columns: dict[str, Any] = {
        "key": [f"k{at}" for at in range(200)],
        "same": ["x"] * 200,
        "colour": [NAMES[at % 4] for at in range(200)],
        "year": pa.array([None if at % 7 == 0 else 2000 + at % 20 for at in range(200)], pa.int32()),
        "title": [f"it's {at}" for at in range(200)],
        "day": pa.array(np.arange(200).astype("datetime64[D]")),
        "tags": pa.array([["a"] if at % 2 else None for at in range(200)], pa.list_(pa.string())),
        "number": list(range(200)),
        "image": pa.array(vectors, pa.list_(pa.float32(), 3)),
        "half": pa.array([row.astype(np.float16).tolist() for row in rows], pa.list_(pa.float16(), 3)),
        "double": pa.array(rows.tolist(), pa.list_(pa.float64(), 3)),
        "nothing": pa.array([None] * 200, pa.list_(pa.float32(), 3)),
        "wide": pa.array([[0.5] * 5] * 200, pa.list_(pa.float32(), 5)),
    }
    lancedb.connect(tmp_path / "db").create_table("photos", pa.table(columns))
    return tmp_path / "db"


def search(folder: Path, query: str | None = "a blue square", **given: Any) -> rungwise.index.Answer:
    given = {"vectors": "image", "model": ColourModel(), "quiet": True, "fold": False} | given
    return rungwise.search(f"lancedb://{folder}/photos", query, **given)


def stored(folder: Path, column: str) -> np.ndarray:
    table = lancedb.connect(folder).open_table("photos").to_arrow()
    return np.array([one or [np.nan] * 3 for one in table[column].to_pylist()], np.float64)


@pytest.mark.parametrize("column", ["image", "half", "double"])
def test_hits_are_the_nearest_and_nothing_is_written(folder: Path, column: str) -> None:
    before = {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    answer = search(folder, vectors=column, k=20, end="off")
    rows = stored(folder, column)
    query = ColourModel().encode_text(["a blue square"])[0]
    cosines = rows @ query / np.linalg.norm(rows, axis=1)
    best = np.sort(cosines[~np.isnan(cosines)])[::-1][:20]
    assert [hit.score for hit in answer.hits] == pytest.approx(best.tolist(), abs=1e-5)
    assert [cosines[int(hit.id)] for hit in answer.hits] == pytest.approx(best.tolist(), abs=1e-5)
    assert {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()} == before


def test_the_end_is_judged_and_ids_are_those_of_a_column(folder: Path) -> None:
    answer = search(folder, id="key", k=100)
    assert answer.end is not None
    assert answer.end.source.startswith("no judgements")
    assert all(hit.id.startswith("k") for hit in answer.hits)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("colour == 'red'", lambda at: at % 4 == 0),
        ("year >= 2015", lambda at: at % 7 and 2000 + at % 20 >= 2015),
        ("not year >= 2015", lambda at: not (at % 7 and 2000 + at % 20 >= 2015)),
        ("title == 'it''s 9' or number in (5, 6)", lambda at: at in (5, 6, 9)),
        ("title contains 'IT''S 19'", lambda at: at == 19 or 190 <= at <= 199),
        ("tags has 'a'", lambda at: at % 2 == 1),
        ("day == '1970-02'", lambda at: 31 <= at <= 58),
    ],
)
def test_a_filter_means_what_it_means_in_an_index(folder: Path, where: str, expected: Any) -> None:
    found = {int(hit.id) for hit in search(folder, where=where, k=200, end="off").hits}
    assert found == {at for at in range(200) if expected(at) and at not in (3, 4)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"vectors": None},
            "columns of vectors: image, half, double, nothing, wide; name one with vectors=, such as image",
        ),
        ({"vectors": "title"}, "'title' is a column of string, not of float vectors of one length; there are"),
        ({"vectors": "gone"}, "'gone' is no such column"),
        ({"vectors": "nothing"}, "no row has a vector in 'nothing'"),
        ({"vectors": "wide"}, "its vectors have dimension 5, and those of the model 3"),
        ({"id": "gone"}, "has no column 'gone' for id="),
        ({"id": "same"}, "has 'x' twice; name another column, or leave id= out"),
        ({"model": None}, "name the model whose vectors it holds"),
        ({"where": "gone == 1"}, "gone"),
    ],
)
def test_every_mistake_is_one_line(folder: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        search(folder, **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_damaged_tables(folder: Path, tmp_path: Path) -> None:
    for place, said in (
        (f"lancedb://{folder}/gone", "has no table 'gone'; there are: photos"),
        (f"lancedb://{tmp_path}/nowhere/photos", "no such folder"),
    ):
        with pytest.raises(UserError, match=said):
            rungwise.search(place, "red", model=ColourModel(), quiet=True)
    assert not (tmp_path / "nowhere").exists()
    for one in (folder / "photos.lance" / "data").iterdir():
        one.write_bytes(b"damaged")
    with pytest.raises(UserError, match="LanceDB cannot read it") as caught:
        search(folder)
    assert "\n" not in str(caught.value)


def test_a_filter_alone_needs_no_model(folder: Path) -> None:
    found = rungwise.search(f"lancedb://{folder}/photos", where="title == 'it''s 9'", vectors="image", quiet=True)
    assert len(found.hits) == 1
    assert found.end is None
