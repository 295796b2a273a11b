"""Compacting an index: what it frees, and what is said of the place that is left.

What it removes from Milvus is tested with its catalogue.
"""

from pathlib import Path

import pytest

from rungwise.index import Index, LanceStore
from rungwise.index.maintenance import Compaction, compact_index
from rungwise.index.stores import StoreSpace
from tests.colour_model import ColourModel, colour_pictures


def bytes_below(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def test_each_byte_of_a_table_is_said_to_be_for_something(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", ["red"] * 6)
    index = Index.build(data, ColourModel(), tmp_path / "index", store="lance")
    index.remove(data.image_ids[:3])
    done = compact_index(tmp_path / "index")
    assert done.pictures == 3
    of_stores = sum(bytes_below(tmp_path / "index" / f"{name}.lance") for name in ("pictures", "captions"))
    assert sum(one.rows + one.indexes + one.earlier for one in done.spaces) == of_stores
    assert min(one.rows for one in done.spaces) > 0 < min(one.indexes for one in done.spaces)
    assert done.earlier > 0
    assert done.free_after is not None
    written = max(path.stat().st_mtime for path in (tmp_path / "index" / "pictures.lance").rglob("*"))
    assert abs(done.free_after.timestamp() - written - 3600) < 60, "versions stay so long for those who read them"
    assert f"compact after {done.free_after:%H:%M}" in done.lines()[-1]

    fresh = LanceStore.create(tmp_path / "fresh", "pictures", 3, index.similarity)
    fresh.upsert(["a", "b"], [[1, 0, 0], [0, 1, 0]])
    fresh.compact()
    assert (fresh.space().earlier, fresh.space().free_after) == (0, None), "who made it leaves no earlier version"


def test_what_is_not_known_is_not_said() -> None:
    assert Compaction(3).lines() == []
    assert Compaction(3, 5 << 20, 4 << 20).lines() == ["5.0 MiB before, 4.0 MiB now"]
    left = Compaction(3, 5 << 20, 4 << 20, (StoreSpace(3 << 20, earlier=1 << 20),))
    assert left.lines()[-1] == "1.0 MiB are files of no version that can be opened"


@pytest.mark.slow
def test_of_an_index_in_an_object_store_the_bytes_are_asked_there(bucket: str, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    Index.build(data, ColourModel(), Path(bucket), store="lance")
    done = compact_index(Path(bucket))
    assert done.before
    assert done.after
    assert done.spaces == ()
