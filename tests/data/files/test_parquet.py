from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError, limited
from rungwise.data import read
from rungwise.data.files import opened_parquet
from rungwise.evaluation.inputs import read_embeddings

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def written(path: Path, columns: object, names: list[str] | None = None) -> Path:
    pq.write_table(pa.table(columns, names=names) if names else pa.table(columns), path)
    return path


def test_rows_come_in_their_order_however_many_there_are(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"n": list(range(5000)), "other": ["x"] * 5000})
    with opened_parquet(file) as found:
        assert found.schema.names == ["n", "other"]
        assert [row["n"] for row in found.rows(["n"])] == list(range(5000))


def test_a_small_file_of_endless_rows_is_refused(tmp_path: Path) -> None:
    count = 20_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), ["A" * 5000])
    file = written(tmp_path / "a.parquet", {"image": ["a.jpg"] * count, "caption": same})
    assert file.stat().st_size < 20_000
    with limited(text_bytes=8 << 20), pytest.raises(UserError, match="unpacked: goes on beyond 8.0 MiB") as caught:
        read(file, captions_only=True)
    assert "RUNGWISE_MAX_TEXT_BYTES" in str(caught.value)
    plain = written(tmp_path / "b.parquet", {"image": ["a.jpg"] * count, "caption": ["x"] * count})
    with limited(text_bytes=1 << 20), pytest.raises(UserError, match="unpacked: goes on beyond 1.0 MiB"):
        read(plain, captions_only=True)
    vectors = written(tmp_path / "c.parquet", {"vector": [[0.0] * 64] * count})
    with limited(unpacked_bytes=1 << 20), pytest.raises(UserError, match="unpacked: goes on beyond 1.0 MiB"):
        read_embeddings(vectors)


def deep() -> object:
    kind = pa.int32()
    for _ in range(60):
        kind = pa.list_(kind)
    return pa.array([None], kind)


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        ([["a"], ["b"], ["x"]], ["image", "image", "caption"], "column 'image' stands twice"),
        ([[{"name": "x"}], ["x"]], ["image", "caption"], "row 1 .column 'image' holds a dict"),
        ([["a"], [[["x"]]]], ["image", "caption"], "row 1 .column 'caption' holds a list"),
        ([["a"], [b"\xff"]], ["image", "caption"], "row 1 .column 'caption' holds a bytes"),
        (lambda: [deep(), ["x"]], ["image", "caption"], "not a readable Parquet file .*deeply nested"),
        (
            lambda: [["a"], pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())],
            ["image", "caption"],
            "not a readable Parquet file",
        ),
        (
            lambda: [["a"], pa.array([2**60], pa.timestamp("ms"))],
            ["image", "caption"],
            "not a readable Parquet file",
        ),
    ],
)
def test_columns_that_hold_no_captions_get_one_line(tmp_path: Path, columns, names, said) -> None:
    file = written(tmp_path / "a.parquet", columns() if callable(columns) else columns, names)
    with pytest.raises(UserError, match=said) as caught:
        read(file, captions_only=True)
    assert "\n" not in str(caught.value)


def test_ids_that_are_no_text_get_one_line(tmp_path: Path) -> None:
    ids = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    with pytest.raises(UserError, match=r"a.parquet: not a readable Parquet file \('utf-8' codec"):
        read_embeddings(written(tmp_path / "a.parquet", {"vector": [[1.0]], "id": ids}))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"vector": [[[1.0]], [[2.0]]]}, "column 'vector' holds no lists of numbers"),
        ({"vector": [["a"], ["b"]]}, "column 'vector' holds no lists of numbers"),
        ({"vector": [[1.0, None]]}, "has gaps"),
        ({"vector": pa.array([[]], pa.list_(pa.float32()))}, "is not embeddings"),
        ({"vector": [[1.0]] * 1500 + [[1.0, 2.0]]}, "row 1500: a vector of 2 where row 0 has 1"),
        ({"vector": [{"x": 1.0}]}, "column 'vector' holds no lists of numbers"),
    ],
)
def test_columns_that_hold_no_vectors_get_one_line(tmp_path: Path, columns, said) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_embeddings(written(tmp_path / "a.parquet", columns))
    assert "\n" not in str(caught.value)


def test_a_damaged_file_gets_one_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.parquet", {"image": ["a.jpg"] * 99, "caption": ["A dog."] * 99}).read_bytes()
    said = []
    for at in range(4, len(whole), 7):
        (tmp_path / "a.parquet").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read(tmp_path / "a.parquet", captions_only=True)
        except UserError as error:
            said.append(str(error))
    assert len(said) > 10
    assert not any("\n" in line for line in said)
