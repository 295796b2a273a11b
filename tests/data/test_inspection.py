import io
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.data.inspection import Inspection, SplitSize, contact_sheet, inspect, render
from rungwise.data.readers import read

MakePicture = Callable[..., Path]


def printed(inspection: Inspection) -> str:
    console = Console(width=80, file=io.StringIO(), legacy_windows=False)
    console.print(render(inspection))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def odd_collection(tmp_path: Path, picture: MakePicture) -> ImageCaptions:
    paths = [picture(f"{n}.png", seed=n, size=(10 + n, 20)) for n in range(6)]
    shutil.copyfile(paths[0], paths[1])
    shutil.copyfile(paths[0], paths[2])
    shutil.copyfile(paths[3], paths[4])
    paths[5].write_bytes(paths[5].read_bytes()[:60])
    gone = tmp_path / "gone.png"
    return ImageCaptions(
        image_ids=("a", "b", "c", "d", "e", "f", "g"),
        captions=("A dog.", "a  DOG.", "A dog.", " ", "The dog's über-cat"),
        image_of_caption=np.array([0, 0, 1, 3, 3]),
        paths=(*paths, gone),
        splits=("train", "train", "test", "val", "val", "none", "none"),
        issues=(Issue("missing picture", "x.csv, line 9"),),
    )


def test_every_odd_thing_is_found(odd_collection: ImageCaptions) -> None:
    found = inspect(odd_collection)
    assert [(issue.kind, issue.where) for issue in found.odd] == [
        ("missing picture", "x.csv, line 9"),
        ("repeated caption", "a#1"),
        ("empty caption", "d#0"),
        ("unreadable picture", "f"),
        ("missing file", "g"),
        ("identical across splits", "a (train)"),
        ("identical in one split", "d (val)"),
    ]
    assert found.odd[5].detail == "the same file as b (train), c (test)"
    assert found.kinds["unreadable picture"] == 1
    assert found.checked


def test_the_numbers(odd_collection: ImageCaptions) -> None:
    found = inspect(odd_collection)
    assert (found.pictures, found.files, found.captions) == (7, 7, 5)
    assert found.splits == (
        SplitSize("train", 2, 3),
        SplitSize("test", 1, 0),
        SplitSize("val", 2, 2),
        SplitSize("none", 2, 0),
    )
    assert found.captions_per_picture == (0, 0.0, 2)
    # a, dog, "." three times each; the, dog, ', s, über, -, cat once more
    assert (found.tokens, found.frequent_tokens) == (9, 1)
    assert found.tokens_per_caption == (0, 3.0, 7)
    assert found.repeated_texts == 3
    assert (found.widths, found.heights) == ((10, 13), (20, 20))


def test_pictures_are_left_alone_on_request(odd_collection: ImageCaptions) -> None:
    found = inspect(odd_collection, check_pictures=False)
    assert not found.checked
    assert found.widths is None
    assert list(found.kinds) == ["missing picture", "repeated caption", "empty caption"]
    assert "pictures were not decoded" in printed(found)


def test_progress_counts_every_picture(odd_collection: ImageCaptions) -> None:
    calls: list[tuple[int, int]] = []
    inspect(odd_collection, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(n, 7) for n in range(1, 8)]


def test_a_collection_of_nothing_is_counted_too() -> None:
    found = inspect(ImageCaptions((), (), np.empty(0, np.int64)))
    assert (found.pictures, found.captions_per_picture, found.tokens_per_caption) == (0, None, None)
    assert "nothing odd" in printed(found)


def test_what_is_printed_fits_a_terminal_and_has_plain_digits() -> None:
    many = 1_234_567
    found = Inspection(
        name="x" * 100,
        layout="table",
        pictures=many,
        files=many,
        captions=many,
        splits=(SplitSize("[red]", many, many),),
        captions_per_picture=(1, 2.5, many),
        tokens=many,
        frequent_tokens=many,
        tokens_per_caption=(1, 2, 3),
        repeated_texts=0,
        widths=(1, many),
        heights=(1, 2),
        checked=True,
        odd=tuple(Issue("missing picture", f"/{'folder/' * 30}{n}.csv", "[bold]gone") for n in range(5)),
    )
    text = printed(found)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count(str(many)) == 8
    assert "[red]" in text
    assert "[bold]gone" in text.replace("\n", "").replace(" ", "")
    assert "and 2 more" in text


def test_a_contact_sheet_has_the_pictures_asked_for(tmp_path: Path, odd_collection: ImageCaptions) -> None:
    for name, columns, rows, seed in (("a", 3, 1, 0), ("b", 3, 1, 0), ("c", 3, 1, 5), ("d", 4, 9, 0)):
        contact_sheet(odd_collection, tmp_path / f"{name}.out", columns=columns, rows=rows, seed=seed)
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


@pytest.mark.real_data
@pytest.mark.slow
def test_the_real_photos(real_data: Path, tmp_path: Path) -> None:
    data = read(real_data / "flickr8k")
    found = inspect(data)
    assert found.captions_per_picture == (5, 5.0, 5)
    assert "unreadable picture" not in found.kinds
    assert found.tokens > found.frequent_tokens > 2000
    contact_sheet(data, tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size > 100_000
