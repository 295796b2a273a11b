import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rungwise.core import UserError, limited
from rungwise.data.files import _parquet_cells as parquet_cells
from rungwise.data.files._parquet_cells import cell_digests, read_cell

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS, GROUP = 90, 25


def cell(row: int) -> bytes:
    return b"%d:" % row + bytes([row]) * 1000


def written(path: Path, rows: int = ROWS) -> Path:
    cells = [{"bytes": cell(row), "path": f"{row}.jpg"} for row in range(rows)]
    table = pa.table({"image": cells, "plain": [one["bytes"] for one in cells], "text": ["x"] * rows})
    pq.write_table(table, path, row_group_size=GROUP)
    return path


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of the batches that were unpacked; batches are small, and nothing is kept of earlier tests."""
    rows: list[int] = []
    advance = parquet_cells._Stream.advance

    def counted(stream: parquet_cells._Stream) -> list[bytes | None]:
        cells = advance(stream)
        rows.append(len(cells))
        return cells

    monkeypatch.setattr(parquet_cells._Stream, "advance", counted)
    monkeypatch.setattr(parquet_cells, "_BATCH_BYTES", 8000)
    monkeypatch.setattr(parquet_cells, "_SHELF", parquet_cells._Shelf())
    return rows


@pytest.mark.parametrize("column", ["image", "plain"])
def test_every_cell_in_any_order_and_in_threads(tmp_path: Path, unpacked: list[int], column: str) -> None:
    file = written(tmp_path / "a.parquet")
    rows = list(range(ROWS)) * 2
    random.Random(0).shuffle(rows)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: read_cell(file, row // GROUP, row % GROUP, column), rows))
    assert found == [cell(row) for row in rows]


def test_rows_in_their_order_are_unpacked_once(tmp_path: Path, unpacked: list[int]) -> None:
    file = written(tmp_path / "a.parquet")
    for row in range(ROWS):
        assert read_cell(file, row // GROUP, row % GROUP, "image") == cell(row)
    assert sum(unpacked) == ROWS
    assert len(unpacked) > 4  # no row group was unpacked at once


def test_what_is_kept_and_open_is_bounded(tmp_path: Path, unpacked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_cells, "_KEPT_BYTES", 5000)
    monkeypatch.setattr(parquet_cells, "_STREAMS", 2)
    file = written(tmp_path / "a.parquet")
    for row in [*range(ROWS), *range(ROWS - 1, -1, -9)]:
        assert read_cell(file, row // GROUP, row % GROUP, "image") == cell(row)
    assert parquet_cells._SHELF._size <= 5000
    assert parquet_cells._SHELF._size == sum(map(len, parquet_cells._SHELF._cells.values()))
    assert len(parquet_cells._SHELF._slots) == 2


def test_a_file_that_took_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet")
    assert read_cell(file, 0, 3, "image") == cell(3)
    pq.write_table(pa.table({"image": [{"bytes": b"other"}] * 4}), tmp_path / "b.parquet")
    (tmp_path / "b.parquet").replace(file)
    assert read_cell(file, 0, 3, "image") == b"other"


@pytest.mark.parametrize(
    ("group", "row", "column", "said"),
    [
        (9, 0, "image", "has no row group 9 with bytes in a column 'image'"),
        (0, 0, "text", "has no row group 0 with bytes in a column 'text'"),
        (0, 0, "none", "has no row group 0 with bytes in a column 'none'"),
        (0, GROUP, "image", "row 25 of row group 0, column 'image': holds no picture"),
    ],
)
def test_places_that_are_not_there(tmp_path: Path, group: int, row: int, column: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_cell(written(tmp_path / "a.parquet"), group, row, column)
    assert "\n" not in str(caught.value)


def test_empty_and_too_large_cells(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": [None, {"bytes": None}, {"bytes": b""}, {"bytes": b"12345"}]}), file)
    for row in range(3):
        with pytest.raises(UserError, match=f"row {row} of row group 0, column 'image': holds no picture"):
            read_cell(file, 0, row, "image")
    for _ in range(2):
        with limited(picture_bytes=4), pytest.raises(UserError, match="5 bytes, where at most 4 bytes are read"):
            read_cell(file, 0, 3, "image")
        assert read_cell(file, 0, 3, "image") == b"12345"


def test_damaged_pages_are_one_line(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet")
    data = bytearray(file.read_bytes())
    data[4:400] = b"\xff" * 396
    file.write_bytes(data)
    with pytest.raises(UserError, match="not a readable Parquet file") as caught:
        read_cell(file, 0, 0, "image")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", ["image", "plain"])
def test_digests_tell_cells_apart(tmp_path: Path, unpacked: list[int], column: str) -> None:
    cells = [cell(3), None, cell(4), cell(3), b"", b"x" * 3000]
    structures = [{"bytes": one, "path": "a"} for one in cells]
    structures[1] = None  # type: ignore[call-overload]
    pq.write_table(pa.table({"image": structures * 9, "plain": cells * 9}), tmp_path / "a.parquet", row_group_size=27)
    three, four = (hashlib.sha256(cell(n)).digest() for n in (3, 4))
    with limited(picture_bytes=2000):
        found = [cell_digests(tmp_path / "a.parquet", group, [*range(27), 3], column) for group in (0, 1)]
    for at in range(54):
        expected = [three, None, four, three, None, found[at // 27][at % 27]]
        assert found[at // 27][at % 27] == expected[at % 6]
    large = [{found[group][at - 27 * group] for at in range(5, 54, 6) if at // 27 == group} for group in (0, 1)]
    assert not large[0] & large[1]
    assert None not in large[0] | large[1]
    assert cell_digests(tmp_path / "a.parquet", 0, [], column) == {}
