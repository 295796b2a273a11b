import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.index.maintenance import export
from tests.colour_model import ColourModel, colour_pictures


@pytest.fixture
def index(tmp_path: Path) -> Index:
    data = colour_pictures(tmp_path / "photos", ["red", "green", "blue"])
    columns = {"year": (2020, None, 2021), "tags": (("a", "b"), None, None), "vector": ("x", "\ud83d", None)}
    return Index.build(replace(data, columns=columns), ColourModel(), tmp_path / "index")


def test_parquet_has_every_column_and_vector(index: Index, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export(index, tmp_path / "rows.parquet") == 3
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [row["id"] for row in rows] == ["0-red", "1-green", "2-blue"]
    assert rows[0]["captions"] == ["a red square"]
    assert rows[0]["path"] == str(tmp_path / "photos" / "0-red.png")
    assert [row["year"] for row in rows] == [2020, None, 2021]
    assert [row["tags"] for row in rows] == [["a", "b"], None, None]
    assert [row["vector_"] for row in rows] == ["x", "\\ud83d", None]
    assert rows[0]["width"] == 40
    for row in rows:
        np.testing.assert_array_equal(row["vector"], index.picture_store.get([row["id"]])[row["id"]].vector)


def test_lines_beside_numbers(index: Index, tmp_path: Path) -> None:
    export(index, tmp_path / "rows.npy")
    first = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0])
    assert (first["id"], first["captions"], first["tags"]) == ("0-red", ["a red square"], ["a", "b"])
    assert np.load(tmp_path / "rows.npy").shape == (3, 3)


@pytest.mark.parametrize("text", ["my captions\n", '{"image": "a.jpg", "captions": []}\n', "[1]\n", '{"id": 1}\n', ""])
def test_lines_that_somebody_else_wrote_stay(index: Index, tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"rows\.jsonl: is no part of an export, and rows\.npy needs .*choose another"):
        export(index, tmp_path / "rows.npy")
    assert (tmp_path / "rows.jsonl").read_text() == text
    assert not (tmp_path / "rows.npy").exists()
    assert export(index, tmp_path / "rows.parquet") == 3
    (tmp_path / "rows.jsonl").unlink()
    assert [export(index, tmp_path / "rows.npy") for _ in range(2)] == [3, 3], "its own lines are replaced"


def test_nothing_to_export_is_said(index: Index, tmp_path: Path) -> None:
    index.remove(["0-red", "1-green", "2-blue"])
    with pytest.raises(UserError, match="nothing to export"):
        export(index, tmp_path / "rows.parquet")
    assert not (tmp_path / "rows.parquet").exists()
