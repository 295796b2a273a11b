import io
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rungwise.data import ImageCaptions, Issue, inspect, read, render
from rungwise.data._inspection import SAMPLED_ROWS, FeatureSize, Inspection, SplitSize
from rungwise.data.files import FeatureRows, TarMember
from tests.odd_files import on_posix, put

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


def rows_with_holes() -> FeatureRows:
    rows = np.random.default_rng(0).normal(size=(5, 3, 2)).astype(np.float16)
    rows[1, 2] = 0
    rows[3, 0, 1] = np.nan
    rows[4] = np.inf
    return FeatureRows(rows)


def test_features_are_sampled_for_what_no_model_can_use() -> None:
    data = ImageCaptions(tuple("abcde"), ("A dog.",), np.array([0]), features=rows_with_holes())
    found = inspect(data)
    assert found.features == FeatureSize(row=(3, 2), dtype="float16", size=60, sampled=5)
    assert [(issue.kind, issue.where, issue.detail) for issue in found.odd] == [
        ("features all zero", "b", "1 of 3 regions"),
        ("features not finite", "d", "1 of 3 regions"),
        ("features not finite", "e", "3 of 3 regions"),
    ]
    assert (found.files, found.checked, found.widths) == (0, False, None)
    text = " ".join(printed(found).split())
    assert "features in place of pictures 3 regions of 2 numbers, float16" in text
    assert "3 odd things; 5 of 5 rows of features were looked at" in text
    assert "picture files" not in text


def test_a_large_file_of_features_is_sampled_only_and_always_alike() -> None:
    rows = np.ones((1000, 4))
    rows[0] = 0
    data = ImageCaptions(tuple(map(str, range(1000))), (), np.empty(0, np.int64), features=FeatureRows(rows))
    found = inspect(data)
    assert found == inspect(data)
    assert found.features is not None
    assert (found.features.sampled, found.features.row, found.kinds) == (SAMPLED_ROWS, (4,), {"features all zero": 1})
    quick = inspect(data, check_pictures=False)
    assert quick.features is not None
    assert (quick.features.sampled, quick.odd) == (0, ())
    assert "nothing odd; 0 of 1000 rows of features were looked at" in printed(quick)


@pytest.mark.real_data
@pytest.mark.slow
def test_the_real_photos(real_data: Path) -> None:
    data = read(real_data / "flickr8k")
    found = inspect(data)
    assert found.captions_per_picture == (5, 5.0, 5)
    assert "unreadable picture" not in found.kinds
    assert found.tokens > found.frequent_tokens > 2000


@on_posix
@pytest.mark.parametrize("kind", ["pipe", "dangling"])
def test_what_is_no_file_is_an_odd_thing(tmp_path: Path, picture: MakePicture, kind: str) -> None:
    put(tmp_path / "odd.png", kind)
    data = ImageCaptions(("a", "odd"), (), np.empty(0), paths=(picture("a.png"), tmp_path / "odd.png"))
    (issue,) = inspect(data).odd
    assert (issue.kind, issue.where) == ("missing file" if kind == "dangling" else "unreadable picture", "odd")


def test_names_that_look_like_markup_are_printed_as_they_are(picture: MakePicture) -> None:
    data = ImageCaptions(
        ("[/b]",), ("A dog.",), np.array([0]), paths=(picture("a.png"),), splits=("[red]x[/]",), name="[/b]:smile:"
    )
    text = printed(inspect(data))
    assert "[/b]:smile: (given)" in text
    assert "[red]x[/]" in text


def test_rows_in_place_of_words_are_looked_at_and_not_counted_as_words() -> None:
    rows = FeatureRows(np.ones((2, 4)))
    texts = FeatureRows(np.array([[0.5, np.nan, 0], [0, 0, 0]], np.float32))
    data = ImageCaptions(
        ("a", "b"), ("", ""), np.arange(2), features=rows, text_features=texts, labels=(("art",), ("art", "music"))
    )
    found = inspect(data)
    assert (found.tokens, found.tokens_per_caption, found.repeated_texts, found.labels) == (0, None, 0, 2)
    assert found.text_features == FeatureSize((3,), "float32", 24, 2)
    assert [(issue.kind, issue.where) for issue in found.odd] == [
        ("features not finite", "a#0"),
        ("features all zero", "b#0"),
    ]
    text = " ".join(printed(found).split())
    assert "features in place of words 3 numbers, float32" in text
    assert "tokens" not in text


def test_larger_files_that_hold_the_pictures_are_counted(tmp_path: Path) -> None:
    places = tuple(TarMember(tmp_path / name, 0, 3, "a.jpg") for name in ("0.tar", "1.tar", "1.tar"))
    found = inspect(ImageCaptions(("a", "b", "c"), (), [], paths=places))
    assert (found.archives, found.files, found.kinds) == (2, 3, {"missing file": 3})
    assert "files that hold the pictures 2" in " ".join(printed(found).split())


def test_captions_without_blanks_between_words_are_told() -> None:
    texts = ("一只棕色的狗在草地上奔跑", "两个人在海边散步")
    found = inspect(ImageCaptions(("a", "b"), texts, np.array([0, 1])))
    (issue,) = found.odd
    assert (issue.kind, issue.where) == ("no blanks between words", "a#0")
    assert "--tokenizer icu" in issue.detail
    assert inspect(ImageCaptions(("a", "b"), ("A red hat 红色", "A dog"), np.array([0, 1]))).odd == ()
