"""What lies under an address; what an index does there is tested in tests/index/layout/test_location.py."""

from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.network import address_of, object_stamp, objects_below, opened_object


@pytest.fixture
def place(tmp_path: Path) -> str:
    """An address whose objects are files here, which pyarrow takes for a store like any other."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.tar").write_bytes(bytes(range(256)) * 8192)
    (tmp_path / "one.tar").write_bytes(b"abc")
    return f"file://{tmp_path}"


def test_objects_are_listed_by_name(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/two.tar", "one.tar"):
        (tmp_path / name).write_bytes(b"abc")
    assert address_of(f"file://{tmp_path}") is None, "a path from the root is no bucket"
    names = [one.removeprefix("file://") for one in objects_below(f"file://{tmp_path}")]
    assert names == [f"{tmp_path}/b/two.tar", f"{tmp_path}/one.tar"]
    assert objects_below(f"file://{tmp_path}/one.tar") == [f"file://{tmp_path}/one.tar"]
    with pytest.raises(UserError, match="nothing lies there; correct the address"):
        objects_below(f"file://{tmp_path}/nowhere")


def test_an_object_is_read_anywhere(place: str, tmp_path: Path) -> None:
    with opened_object(f"{place}/b/two.tar") as file, (tmp_path / "b" / "two.tar").open("rb") as same:
        for offset, whence, size in ((0, 0, 10), (1_500_000, 0, 300), (-7, 2, 20), (5, 0, 1), (9_000_000, 0, 4)):
            file.seek(offset, whence)
            same.seek(offset, whence)
            assert file.read(size) == same.read(size)
    assert object_stamp(f"{place}/one.tar")[0] == 3
    with pytest.raises(FileNotFoundError):
        object_stamp(f"{place}/nowhere")
