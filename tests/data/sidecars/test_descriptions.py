from pathlib import Path

from rungwise.core import limited
from rungwise.data import NOT_READ, ImageCaptions, read
from tests.odd_folder import in_languages, takeout, xmp


def pictures(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).touch()
    return root


def values(data: ImageCaptions, name: str) -> dict[str, object]:
    column = data.columns.get(name, (None,) * len(data))
    return {one: value for one, value in zip(data.image_ids, column, strict=True) if value is not None}


def said(data: ImageCaptions) -> list[tuple[str, str]]:
    return [(issue.kind, issue.where) for issue in data.issues]


def test_xmp_beside_pictures(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "a.xmp").write_bytes(xmp(xmp_Rating="2"))
    (tmp_path / "b.jpg.xmp").write_bytes(xmp(in_languages("title", x_default="B; and more;so"), xmp_Rating="4.5"))
    data = read(tmp_path)
    assert values(data, "rating") == {"a.jpg": 2, "b.jpg": 4.5}
    assert values(data, "title") == {"b.jpg": "B; and more;so"}
    assert (data.captions, data.issues, data.layout) == ((), (), "folder")
    (tmp_path / "a.jpg.xmp").write_bytes(xmp(xmp_Rating="5"))
    assert values(read(tmp_path), "rating")["a.jpg"] == 5


def test_xmp_of_a_raw_file_is_not_that_of_the_jpeg(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg", "a.cr2", "b.jpg", "b.cr2", "c.cr2")
    (tmp_path / "a.xmp").write_bytes(xmp(xmp_Rating="2"))
    (tmp_path / "b.xmp").write_bytes(xmp(xmp_Rating="3", photoshop_SidecarForExtension="JPG"))
    (tmp_path / "c.xmp").write_bytes(xmp(xmp_Rating="4"))
    data = read(tmp_path)
    assert values(data, "rating") == {"b.jpg": 3}
    assert said(data) == [
        ("ambiguous picture", "a.xmp"),
        (NOT_READ, "1 XMP file, such as c.xmp"),
        (NOT_READ, "3 RAW pictures (.cr2), such as a.cr2"),
    ]
    assert data.issues[0].detail == "may be of a.jpg or a.cr2; rating 2"


def test_damaged_and_large_xmp_is_listed(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "a.xmp").write_bytes(xmp(xmp_Rating="2")[:-5])
    (tmp_path / "b.xmp").write_bytes(xmp(xmp_Rating="2") + b" " * 2000)
    with limited(sidecar_bytes=2000):
        assert said(read(tmp_path)) == [
            ("unreadable file", "b.xmp"),
            (NOT_READ, "1 damaged XMP file, such as a.xmp"),
        ]


def test_of_takeout_what_the_camera_does_not_say(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "a.jpg.json").write_text(takeout("a.jpg", description="At sea."))
    (tmp_path / "metadata.json").write_text('{"title": "Holiday", "description": "", "access": "protected"}')
    data = read(tmp_path)
    assert values(data, "description") == {"a.jpg": "At sea."}
    assert data.fallbacks == {"taken": ("2020-09-13T12:26:40+00:00", None), "year": (2020, None)}
    assert data.select([1, 0]).fallbacks["year"] == (None, 2020)
    assert said(data) == [(NOT_READ, "1 Google Takeout file, such as metadata.json")]
    assert data.captions == ()


def test_two_takeout_files_of_one_picture(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg")
    for name, text in (("a.jpg.json", "One"), ("a.jpg.suppl.json", "Two")):
        (tmp_path / name).write_text(takeout("a.jpg", description=text))
    data = read(tmp_path)
    assert values(data, "description") == {"a.jpg": "One"}
    assert said(data) == [(NOT_READ, "a.jpg.suppl.json")]
    (tmp_path / "a.xmp").write_bytes(xmp(in_languages("description", x_default="Three")))
    assert values(read(tmp_path), "description") == {"a.jpg": "Three"}


def test_a_column_of_the_table_stays(tmp_path: Path) -> None:
    pictures(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "captions.csv").write_text("image,caption,rating\nb.jpg,A dog.,9\n")
    (tmp_path / "a.xmp").write_bytes(xmp(in_languages("title", x_default="A"), xmp_Rating="2"))
    data = read(tmp_path)
    assert (values(data, "rating"), values(data, "title")) == ({"b.jpg": 9}, {"a.jpg": "A"})
    assert said(data) == [("column left out", "rating")]
