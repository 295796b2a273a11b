from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.index.update import Thumbnails
from tests.colour_model import picture_bytes

CONTENT = "0a" * 32


def test_a_damaged_copy_is_none(tmp_path: Path) -> None:
    kept = Thumbnails(tmp_path)
    small = kept.make(picture_bytes((9, 9, 9)))
    assert small is not None
    kept.put(CONTENT, small)
    file = next(tmp_path.rglob("*.thumbnail"))
    data = file.read_bytes()
    for at in (0, 300, len(small) - 1, len(data) - 1):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert kept.read(CONTENT) is None
    file.write_bytes(small[:-7])
    assert kept.read(CONTENT) is None
    file.write_bytes(b"")
    assert kept.read(CONTENT) is None


@pytest.mark.parametrize("content", ["", "../../etc/passwd", "0a" * 31, "0A" * 32])
def test_names_that_are_no_digest_lead_nowhere(tmp_path: Path, content: str) -> None:
    kept = Thumbnails(tmp_path)
    assert (kept.read(content), kept.has(content)) == (None, False)
    kept.remove([content])


def test_what_is_no_picture_has_no_copy(tmp_path: Path) -> None:
    assert Thumbnails(tmp_path).make(b"no picture") is None


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "thumbnails").touch()
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        Thumbnails(tmp_path).put(CONTENT, b"x")
