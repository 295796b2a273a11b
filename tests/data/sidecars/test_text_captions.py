import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import limited
from rungwise.data import NOT_READ, ImageCaptions, read
from rungwise.data.sidecars._text_captions import LONGEST_CAPTION, MOST_LINES


def folder(root: Path, **files: str | None) -> Path:
    """Pictures are given as None; ``__`` stands for a dot and ``___`` for a slash."""
    for name, text in files.items():
        path = root / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if text is None else path.write_text(text)
    return root


def captions(data: ImageCaptions) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text, image in zip(data.captions, data.image_of_caption.tolist(), strict=True):
        found.setdefault(data.image_ids[image], []).append(text)
    return found


def said(data: ImageCaptions) -> list[tuple[str, str]]:
    return [(issue.kind, issue.where) for issue in data.issues]


def test_each_line_is_a_caption_and_ids_are_paths(tmp_path: Path) -> None:
    data = read(
        folder(tmp_path, x___b__jpg=None, x___b__txt="B.\n\n Two. \r\n", a__jpg=None, c__png=None, c__png__txt="C.")
    )
    assert (data.layout, data.image_ids) == ("text-files", ("a.jpg", "c.png", "x/b.jpg"))
    assert captions(data) == {"x/b.jpg": ["B.", "Two."], "c.png": ["C."]}
    assert data.issues == ()
    assert data.splits == ("none",) * 3


def test_a_text_without_a_picture_is_no_caption(tmp_path: Path) -> None:
    data = read(folder(tmp_path, a__jpg=None, README__txt="Read me.", notes__txt="Buy film."))
    assert (data.layout, data.captions) == ("folder", ())
    assert said(data) == [(NOT_READ, "2 other files (.txt), such as README.txt")]
    data = read(folder(tmp_path, a__txt="A dog."))
    assert captions(data) == {"a.jpg": ["A dog."]}
    assert said(data) == [("text without a picture", "README.txt"), ("text without a picture", "notes.txt")]
    assert "'Buy film.'" in data.issues[1].detail


def test_of_two_pictures_of_one_name_none_gets_the_text(tmp_path: Path) -> None:
    data = read(folder(tmp_path, a__jpg=None, a__png=None, a__txt="Which?"))
    assert (data.layout, data.captions) == ("folder", ())
    (issue,) = data.issues
    assert (issue.kind, issue.where, issue.detail) == (
        "ambiguous picture",
        "a.txt",
        "may be of a.jpg or a.png; left out: 'Which?'",
    )
    assert captions(read(folder(tmp_path, a__png__txt="This."))) == {"a.png": ["This."]}


def test_a_text_of_a_raw_file_is_not_given_to_another(tmp_path: Path) -> None:
    data = read(folder(tmp_path, a__cr2="", a__txt="A bird.", b__jpg=None, b__txt="B."))
    assert captions(data) == {"b.jpg": ["B."]}
    assert ("text of a picture that is not read", "a.txt") in said(data)


@pytest.mark.parametrize(
    "text", ["x" * (LONGEST_CAPTION + 1), "line\n" * (MOST_LINES + 1), "0 0.5 0.5 0.2 0.1\n1 0.3 0.3 1e-2 0.2\n"]
)
def test_texts_that_are_no_captions(tmp_path: Path, text: str) -> None:
    data = read(folder(tmp_path, a__jpg=None, b__jpg=None, a__txt=text, b__txt=text))
    assert (data.layout, data.captions) == ("folder", ())
    assert said(data) == [(NOT_READ, "2 text files beside pictures, such as a.txt")]
    data = read(folder(tmp_path, b__txt="B.", c__jpg=None, c__txt="C."))
    assert captions(data) == {"b.jpg": ["B."], "c.jpg": ["C."]}
    assert said(data) == [("text that is no caption", "a.txt")]


def test_texts_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    folder(tmp_path, a__jpg=None, b__jpg=None, c__jpg=None, a__txt="A.", c__txt="")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    data = read(tmp_path)
    assert captions(data) == {"a.jpg": ["A."]}
    assert sorted(said(data)) == [("empty caption", "c.txt"), ("unreadable file", "b.txt")]
    with limited(sidecar_bytes=1):
        assert read(tmp_path).captions == ()


def test_a_table_goes_before_texts_which_are_counted(tmp_path: Path) -> None:
    data = read(
        folder(tmp_path, a__jpg=None, a__txt="From the text.", captions__csv="image,caption\na.jpg,From the table.\n")
    )
    assert captions(data) == {"a.jpg": ["From the table."]}
    assert said(data) == [(NOT_READ, "1 text file beside pictures, such as a.txt")]


def img2dataset(caption: str | None, **fields: object) -> str:
    return json.dumps({
        "caption": caption, "url": "https://example.org/a.jpg", "key": "000000000", "status": "success",
        "error_message": None, "width": 256, "height": 171, "original_width": 640, "exif": "{}", "sha256": "ab" * 32,
        **fields,
    })  # fmt: skip


def test_what_img2dataset_writes(tmp_path: Path) -> None:
    data = read(folder(tmp_path, d___0__jpg=None, d___0__txt="A dog.", d___0__json=img2dataset("A dog.", punsafe=0.1)))
    assert captions(data) == {"d/0.jpg": ["A dog."]}
    assert dict(data.columns) == {
        "url": ("https://example.org/a.jpg",), "width": (256,), "height": (171,), "original_width": (640,),
        "punsafe": (0.1,),
    }  # fmt: skip
    assert data.issues == ()


def test_fields_of_nested_objects_have_joined_names_and_never_the_persons(tmp_path: Path) -> None:
    said = {
        "caption": "A shirt.",
        "attrs": {"articleType": "Shirt", "x": {"y": 1}},
        "attrs.articleType": "mine",
        "id": 7,
    }
    data = read(folder(tmp_path, a__jpg=None, a__json=json.dumps(said)))
    assert dict(data.columns) == {"attrs.articleType": ("mine",), "attrs.x.y": (1,), "id_": (7,)}
    assert [(issue.kind, issue.detail[:20]) for issue in data.issues] == [
        ("column left out", "'attrs.articleType' "),
        ("column renamed", "'id' is called 'id_'"),
    ]


@pytest.mark.parametrize(
    "text",
    ['{"year": 2020}', "[1]", "no json", '{"caption": 3}', '{"shapes": [{"label": "dog"}], "imageData": "eA=="}'],
)
def test_json_that_holds_no_caption_is_counted(tmp_path: Path, text: str) -> None:
    data = read(folder(tmp_path, a__jpg=None, a__json=text))
    assert (data.layout, data.captions, dict(data.columns)) == ("folder", (), {})
    assert said(data) == [(NOT_READ, "1 other file (.json), such as a.json")]


def test_json_whose_picture_its_name_does_not_decide_is_listed_with_its_caption(tmp_path: Path) -> None:
    text = json.dumps({"caption": "Which?"})
    data = read(folder(tmp_path, a__jpg=None, a__png=None, a__json=text, b__json=text, c__cr2="", c__json=text))
    assert (data.layout, data.captions) == ("folder", ())
    assert [(issue.where, issue.detail) for issue in data.issues if "Which?" in issue.detail] == [
        ("a.json", "may be of a.jpg or a.png; left out: 'Which?'"),
        ("b.json", "no picture of this name in its folder; left out: 'Which?'"),
        ("c.json", "of c.cr2; left out: 'Which?'"),
    ]


def test_a_long_caption_in_json_is_listed(tmp_path: Path) -> None:
    data = read(folder(tmp_path, a__jpg=None, a__json=json.dumps({"captions": ["A dog.", "x" * 2001, None, ""]})))
    assert captions(data) == {"a.jpg": ["A dog."]}
    assert said(data) == [("text that is no caption", "a.json")]


@pytest.mark.parametrize("name", ["a.caption", "a.jpg.caption", "a.TXT"])
def test_other_endings_of_texts(tmp_path: Path, name: str) -> None:
    data = read(folder(tmp_path, **{"a__jpg": None, name: "A dog."}))
    assert captions(data) == {"a.jpg": ["A dog."]}


def test_texts_in_utf_16_with_a_mark(tmp_path: Path) -> None:
    folder(tmp_path, a__jpg=None)
    (tmp_path / "a.txt").write_bytes("Ein schöner Hund".encode("utf-16"))
    assert captions(read(tmp_path)) == {"a.jpg": ["Ein schöner Hund"]}


NAMES = st.sampled_from(["a", "a.b", "A", "b", "b.jpg", "Plan 1.5 north", "Plan 1.5 south", "é", "e\u0301", " a", "a "])


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.tuples(NAMES, st.sampled_from([".jpg", ".png", ".cr2", ".JPG", ".mov"])), max_size=7),
    st.lists(
        st.tuples(NAMES, st.sampled_from([".txt", ".jpg.txt", ".png.txt", ".TXT"])),
        min_size=1,
        max_size=7,
        unique_by="".join,  # of one name there is one file
    ),
)
def test_no_caption_stands_with_another_picture(tmp_path_factory, pictures, texts) -> None:
    root = tmp_path_factory.mktemp("names")
    for stem, suffix in pictures:
        (root / f"{stem}{suffix}").touch()
    (root / "zz.jpg").touch()
    for stem, suffix in texts:
        (root / f"{stem}{suffix}").write_text(f"of {stem!a}{suffix}")
    data = read(root)
    assert isinstance(data.image_of_caption, np.ndarray)
    for picture, held in captions(data).items():
        for text in held:
            (named,) = [f"{stem}{suffix}" for stem, suffix in texts if text == f"of {stem!a}{suffix}"]
            base = named[:-4].replace("e\u0301", "é")
            composed = picture.replace("e\u0301", "é")
            assert base in (composed, composed.rpartition(".")[0])
            rivals = [one for one in pictures if base in (one[0], "".join(one)) and one[1] != ".mov"]
            assert len({f"{stem}{suffix}" for stem, suffix in rivals}) <= 1 or "é" in base
    told = " ".join(f"{issue.where} {issue.detail}" for issue in data.issues)
    for stem, suffix in texts:
        assert f"of {stem!a}{suffix}" in data.captions or f"{stem}{suffix}" in told or ".txt" in told


def test_an_empty_text_is_an_empty_caption(tmp_path: Path) -> None:
    data = read(folder(tmp_path, a__jpg=None, b__jpg=None, a__txt="A dog.", b__txt=""))
    assert (data.layout, data.captions) == ("text-files", ("A dog.",))
    assert [(issue.kind, issue.where) for issue in data.issues] == [("empty caption", "b.txt")]
