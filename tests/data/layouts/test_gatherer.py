from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.data import Issue
from rungwise.data.layouts import PictureFolder, clean_caption, split_in_file_name, split_name
from rungwise.data.layouts._gatherer import Gatherer


def folder(root: Path, *names: str) -> PictureFolder:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return PictureFolder(root)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("train", "Training", " TRAIN "), "train"),
        (("val", "valid", "Validation", "dev", "development"), "val"),
        (("test", "testing"), "test"),
        (("restval",), "restval"),
        (("testall",), "testall"),
        (("", "  "), "none"),
    ],
)
def test_every_spelling_of_a_split_has_one_name(words: tuple[str, ...], name: str) -> None:
    assert {split_name(word) for word in words} == {name}


def test_a_file_name_speaks_of_a_split_in_whole_words_only() -> None:
    names = ("train.csv", "my-dev.captions.tsv", "A_TEST_b.jsonl", "latest.csv", "training2.csv")
    assert [split_in_file_name(Path(name)) for name in names] == ["train", "val", "test", None, None]


def test_images_stand_in_the_order_in_which_they_are_met_then_those_that_nothing_named(tmp_path: Path) -> None:
    gatherer = Gatherer(folder(tmp_path, "pics/a.jpg", "pics/b.jpg", "pics/c.jpg"))
    assert [gatherer.image(name, "x.csv, line 1") for name in ("c.jpg", "a.jpg", "c.jpg")] == [0, 1, 0]
    gatherer.caption(1, " A cat. ", "x.csv, line 2")
    gatherer.caption(0, "A dog.", "x.csv, line 3", "70")
    gatherer.caption(1, "A pet.", "x.csv, line 4")
    data = gatherer.collection("pets", "table")
    assert data.image_ids == ("c.jpg", "a.jpg", "b.jpg")
    assert [path.relative_to(tmp_path).as_posix() for path in data.paths] == ["pics/c.jpg", "pics/a.jpg", "pics/b.jpg"]
    assert (data.captions, data.caption_ids) == (("A cat.", "A dog.", "A pet."), ("a.jpg#0", "70", "a.jpg#1"))
    assert data.image_of_caption.tolist() == [1, 0, 1]
    assert (data.name, data.layout, data.labels, data.splits) == ("pets", "table", (), ("none",) * 3)


def test_names_are_tried_in_the_order_given(tmp_path: Path) -> None:
    gatherer = Gatherer(folder(tmp_path, "x/a.jpg", "y/a.jpg", "y/b.jpg"))
    assert gatherer.image("first", "x.json", "y/a.jpg", "a.jpg") == 0
    assert gatherer.image("second", "x.json", "z/b.jpg.gone", "b.jpg") == 1
    assert gatherer.image("third", "x.json", "a.jpg") is None
    data = gatherer.collection("pets", "karpathy")
    assert data.paths[:2] == (tmp_path / "y" / "a.jpg", tmp_path / "y" / "b.jpg")
    assert data.issues == (Issue("ambiguous picture", "x.json", "'third' may be x/a.jpg, y/a.jpg"),)


def test_the_first_of_two_splits_stays(tmp_path: Path) -> None:
    gatherer = Gatherer(None)
    gatherer.image("a", "x")
    for name in ("", "dev", "validation", "test"):
        gatherer.split(0, name, f"place of {name!r}")
    data = gatherer.collection("pets", "table")
    assert data.splits == ("val",)
    assert data.issues == (
        Issue("conflicting splits", "place of 'test'", "'test', but 'val' before; the first is kept"),
    )


def test_labels_are_gathered_once_each() -> None:
    gatherer = Gatherer(None)
    for name in ("a", "b"):
        gatherer.image(name, "x")
    for labels in (["dog", "pet"], ["pet", "brown"]):
        gatherer.label(1, labels)
    assert gatherer.collection("pets", "table").labels == ((), ("dog", "pet", "brown"))


def test_a_caption_id_may_stand_once() -> None:
    gatherer = Gatherer(None)
    gatherer.image("a", "x")
    gatherer.caption(0, "A dog.", "line 2", "7")
    with pytest.raises(UserError, match="line 3: caption id '7' stands already in line 2; make the ids unique"):
        gatherer.caption(0, "A cat.", "line 3", "7")


def test_nothing_gathered_names_the_first_reason(tmp_path: Path) -> None:
    gatherer = Gatherer(folder(tmp_path, "a.jpg"))
    assert gatherer.image("b.jpg", "x.csv, line 2") is None
    with pytest.raises(UserError, match=r"x.csv, line 2: no picture named 'b.jpg', nor any other that is named there"):
        gatherer.collection("pets", "table")
    gatherer = Gatherer(None)
    gatherer.issue("malformed row", "x.csv, line 2", "3 columns")
    with pytest.raises(
        UserError, match=r"pets: no usable caption, first malformed row: x.csv, line 2 \(3 columns\); correct"
    ):
        gatherer.collection("pets", "table")


@pytest.mark.parametrize(
    ("text", "clean", "odd"),
    [
        (" A dog. ", "A dog.", ""),
        ("", "", ""),
        ("line\nbreak\tand tab", "line\nbreak\tand tab", ""),
        ("caf\u00e9 \u05d0\u200f \u00a0\u2028 \U0001f600", "caf\u00e9 \u05d0\u200f \u00a0\u2028 \U0001f600", ""),
        ("a\x00b\x1b]0;title\x07c\x7fd\x9be", "a b ]0;title c d e", "control characters, which became blanks"),
        ("\x1b\x07", "", "control characters, which became blanks"),
        ("\ud83d dog", "", "an escape such as \\ud83d is half a character"),
    ],
)
def test_a_caption_holds_no_signs_for_terminals_and_no_halves(text: str, clean: str, odd: str) -> None:
    found = clean_caption(text)
    assert found[0] == clean
    assert found[1].startswith(odd)
    assert bool(found[1]) == bool(odd)


def test_whatever_is_half_a_character_is_left_out_and_listed() -> None:
    gatherer = Gatherer(None)
    assert gatherer.image("a\udcff.jpg", "line 1") is None
    image = gatherer.image("a.jpg", "line 2")
    assert image == 0
    gatherer.caption(0, "half \udc00", "line 3", "1")
    gatherer.caption(0, "A dog.", "line 4", "\ud800")
    gatherer.caption(0, "A \x1bcat.", "line 5", "2")
    gatherer.split(0, "te\ud83dst", "line 6")
    gatherer.label(0, ["ok", "\ud83d"], "line 7")
    data = gatherer.collection("pets", "table")
    assert (data.image_ids, data.captions, data.caption_ids) == (("a.jpg",), ("A  cat.",), ("2",))
    assert (data.splits, data.labels) == (("none",), (("ok",),))
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("malformed text", f"line {line}") for line in (1, 3, 4, 5, 6, 7)
    ]


def gathered(files: PictureFolder, *names: str) -> tuple[dict[str, list[str]], list[str]]:
    """The captions of each picture by its path, and the details of all issues; each name has a caption of its own."""
    gatherer = Gatherer(files)
    for name in [*names, *names]:
        image = gatherer.image(name, "t.csv", captions=[f"of {name}"])
        if image is not None:
            gatherer.caption(image, f"of {name}", "t.csv")
            gatherer.column(image, "name", name, "t.csv")
    data = gatherer.collection("pets", "table")
    found = {
        path.relative_to(files.root).as_posix(): [data.captions[at] for at in own]
        for path, own in zip(data.paths, data.captions_of_image, strict=True)
        if isinstance(path, Path)
    }
    named = data.columns.get("name", (None,) * len(data))
    assert all(value in (None, image_id.strip()) for value, image_id in zip(named, data.image_ids, strict=True))
    return found, [issue.detail for issue in data.issues]


@pytest.mark.parametrize(
    ("there", "names", "owner"),
    [
        (["1.jpg"], ["a/1.jpg"], "a/1.jpg"),  # of a moved folder, which nothing else claims
        (["1.jpg"], ["a/1.jpg", "b/1.jpg"], None),
        (["1.jpg"], ["a/1.jpg", "1.jpg"], "1.jpg"),
        (["1.jpg"], ["1.jpg", "a/1.jpg"], "1.jpg"),
        (["1.jpg", "2.jpg"], ["2.jpg", "a/1.jpg"], None),  # names are whole paths here
        (["a/1.jpg"], ["1.jpg"], "1.jpg"),
        (["a/1.jpg"], ["1.jpg", "a/1.jpg"], "a/1.jpg"),
        (["a/1.jpg", "b/2.jpg"], ["b/2.jpg", "1.jpg"], None),  # and here
        (["a/1.jpg", "2.jpg"], ["2.jpg", "1.jpg"], "1.jpg"),
        (["a/1.jpg"], ["b/1.jpg", "x.jpg"], None),
        (["1.jpg"], ["1", "1.jpg"], "1.jpg"),
        (["1.jpg"], ["1"], "1"),
        (["1.jpg", "1.png"], ["1"], None),
        (["1.jpg"], ["1.png"], None),
        (["1.png.jpg"], ["1.png"], None),
        (["1.JPG"], ["1.jpg"], "1.jpg"),
        (["1.JPG"], ["1.jpg", "1.Jpg"], None),
        (["1.jpg"], [" 1.jpg", "1.jpg"], "1.jpg"),
        (["1.jpg"], [" 1.jpg"], " 1.jpg"),
        (["stra\u00dfe.jpg"], ["strasse.jpg"], None),
        (["a/1.jpg", "1.jpg"], ["b/1.jpg"], None),
        (["a/1.jpg", "1.jpg"], ["/home/b/1.jpg"], "/home/b/1.jpg"),
    ],
)
def test_a_name_that_resembles_a_picture_has_it_only_if_no_other_name_may(
    tmp_path: Path, there: list[str], names: list[str], owner: str | None
) -> None:
    # One picture is found in any case, by no whole path.
    found, said = gathered(folder(tmp_path, *there, "anchor.png"), "anchor", *names)
    for name in names:
        kept = sum(texts.count(f"of {name}") for texts in found.values())
        listed = sum(detail.partition("; left out: ")[2].count(f"'of {name}'") for detail in said)
        assert (kept, listed) == ((2, 0) if name == owner or name in there else (0, 2))
        assert all(path in (name, *there) for path, texts in found.items() if f"of {name}" in texts)
