import io
import tarfile
from pathlib import Path

import pytest

from rungwise.core import UserError, limited
from rungwise.data.files import PackedPicture, ParquetCell, TarMember, packed_picture

FILE = Path("a.tar")


def test_a_member_is_read_from_its_place(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data in (("a.jpg", b"one"), ("b.jpg", b"another")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    with tarfile.open(tmp_path / "a.tar") as archive:
        places = [TarMember(tmp_path / "a.tar", one.offset_data, one.size, one.name) for one in archive]
    assert [place.read() for place in places] == [b"one", b"another"]
    with limited(picture_bytes=3), pytest.raises(UserError, match="a.tar, b.jpg: 7 bytes, where at most 3 bytes"):
        places[1].read()
    with (tmp_path / "a.tar").open("r+b") as file:
        file.truncate(places[1].offset + 2)
    with pytest.raises(UserError, match="a.tar, b.jpg: the archive ends within it; copy the archive again"):
        places[1].read()


def test_pictures_are_values_told_apart_by_kind_file_and_place() -> None:
    some: list[PackedPicture] = [
        TarMember(FILE, 512, 3, "a.jpg"),
        TarMember(FILE, 1024, 3, "a.jpg"),
        TarMember(Path("b.tar"), 512, 3, "a.jpg"),
        ParquetCell(FILE, 0, 1, "image"),
        ParquetCell(FILE, 1, 0, "image"),
    ]
    assert len(set(some)) == 5
    for one in some:
        assert packed_picture(one.file, one.place) == one


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"offset": 1, "size": 2},
        {"offset": -1, "size": 2, "name": "a"},
        {"offset": True, "size": 2, "name": "a"},
        {"offset": 1 << 70, "size": 2, "name": "a"},
        {"offset": 1.5, "size": 2, "name": "a"},
        {"offset": "1", "size": 2, "name": "a"},
        {"offset": 1, "size": 2, "name": None},
        {"offset": 1, "size": 2, "name": "a", "file": "/etc/passwd"},
        {"row_group": 0, "row": -1, "column": "image"},
        {"row_group": 0, "row": 1, "column": 3},
    ],
)
def test_what_is_no_place_is_refused(place: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="the place of a picture"):
        packed_picture(FILE, place)
