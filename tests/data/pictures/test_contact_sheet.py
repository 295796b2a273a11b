import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFont

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.data.pictures import contact_sheet
from tests.odd_files import on_posix, put

MakePicture = Callable[..., Path]


@pytest.fixture
def pictures(picture: MakePicture) -> ImageCaptions:
    """Seven pictures, one of them damaged, some with captions."""
    paths = [picture(f"{n}.png", seed=n, size=(10 + n, 20)) for n in range(7)]
    paths[5].write_bytes(paths[5].read_bytes()[:60])
    return ImageCaptions(tuple("abcdefg"), ("A dog.", "A cat."), np.array([0, 3]), paths=tuple(paths))


def labelled(tmp_path: Path, picture: MakePicture, text: str) -> tuple[NDArray[np.uint8], int]:
    """Pixels of the label of a sheet with one picture, and how many characters could not be drawn."""
    data = ImageCaptions(("a",), (text,), np.array([0]), paths=(picture("a.png"),))
    lacking = contact_sheet(data, tmp_path / "sheet.png", columns=1, rows=1)
    return np.asarray(Image.open(tmp_path / "sheet.png").convert("L"))[212:], lacking


def test_a_contact_sheet_has_the_pictures_asked_for(tmp_path: Path, pictures: ImageCaptions) -> None:
    for name, columns, rows, seed in (("a", 3, 1, 0), ("b", 3, 1, 0), ("c", 3, 1, 5), ("d", 4, 9, 0)):
        contact_sheet(pictures, tmp_path / f"{name}.out", columns=columns, rows=rows, seed=seed)
    sheets = {name: Image.open(tmp_path / f"{name}.out") for name in "abcd"}
    assert sheets["a"].format == "PNG"
    assert sheets["a"].tobytes() == sheets["b"].tobytes()
    assert sheets["a"].tobytes() != sheets["c"].tobytes()
    # Seven pictures fill two rows of four, however many rows were asked for.
    assert sheets["d"].width > sheets["a"].width
    assert sheets["a"].height < sheets["d"].height < 3 * sheets["a"].height


def test_a_contact_sheet_wraps_captions_that_are_too_long(tmp_path: Path, picture: MakePicture) -> None:
    path = picture("a.png")
    data = ImageCaptions(("a",), ("word " * 500 + "x" * 500,), np.array([0]), paths=(path,))
    contact_sheet(data, tmp_path / "sheet.png", columns=1, rows=1)
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    assert (sheet[:, -8:] == 255).all()
    assert (sheet[-8:] == 255).all()
    assert (sheet[215:] < 128).any()


def test_a_contact_sheet_needs_pictures(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no picture files to show"):
        contact_sheet(ImageCaptions(("a",), (), np.empty(0, np.int64)), tmp_path / "sheet.png")
    rows = FeatureRows(np.zeros((1, 4)))
    with pytest.raises(UserError, match="has no picture files to show; a contact sheet needs"):
        contact_sheet(ImageCaptions(("a",), (), np.empty(0, np.int64), features=rows), tmp_path / "sheet.png")
    assert not (tmp_path / "sheet.png").exists()


@pytest.mark.parametrize("text", ["Μικρός σκύλος", "маленькая собака", "zażółć gęślą"])
def test_labels_in_greek_cyrillic_and_polish_are_drawn(tmp_path: Path, picture: MakePicture, text: str) -> None:
    label, lacking = labelled(tmp_path, picture, text)
    assert lacking == 0
    boxes, _ = labelled(tmp_path, picture, "\U0010ffff" * len(text))
    assert (label < 128).any()
    assert not np.array_equal(label, boxes)


def test_without_any_font_of_the_system_pillows_own_is_used_and_what_it_lacks_is_counted(
    tmp_path: Path, picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ImageFont.truetype

    def none_found(font: object, *args: object, **more: object) -> ImageFont.FreeTypeFont:
        if isinstance(font, str | Path):
            raise OSError("cannot open resource")
        return own(font, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ImageFont, "truetype", none_found)
    label, lacking = labelled(tmp_path, picture, "A plain dog.")
    assert lacking == 0
    assert (label < 128).any()
    assert labelled(tmp_path, picture, "A σκύλος, σ")[1] == len(set("σκύλος"))


def test_matplotlib_is_asked_for_its_font_where_the_system_has_none(
    tmp_path: Path, picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("rungwise.data.pictures._contact_sheet._FONT_FILES", ())
    assert labelled(tmp_path, picture, "σκύλος")[1] == 0
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert labelled(tmp_path, picture, "σκύλος")[1] == len(set("σκύλος"))


@pytest.mark.real_data
@pytest.mark.slow
def test_a_sheet_of_real_photos(real_data: Path, tmp_path: Path) -> None:
    assert contact_sheet(read(real_data / "flickr8k"), tmp_path / "sheet.png") == 0
    assert (tmp_path / "sheet.png").stat().st_size > 100_000


@pytest.mark.parametrize("text", ["half \ud83d", "\0\x1b[31m", "\u202etxt", "word " * 1_000_000, "x" * 1_000_000])
def test_any_text_is_drawn(tmp_path: Path, picture: MakePicture, text: str) -> None:
    labelled(tmp_path, picture, text)


@on_posix
def test_what_is_no_file_is_drawn_as_unreadable(tmp_path: Path) -> None:
    put(tmp_path / "a.png", "pipe")
    data = ImageCaptions(("a",), ("A dog.",), np.array([0]), paths=(tmp_path / "a.png",))
    contact_sheet(data, tmp_path / "sheet.png", columns=1, rows=1)
    assert Image.open(tmp_path / "sheet.png").format == "PNG"
