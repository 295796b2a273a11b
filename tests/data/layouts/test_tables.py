"""Tables beside the pictures, whole.

Also tests rungwise.data.layouts._table_files.
"""

import codecs
import csv
import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError, limited
from rungwise.data import ImageCaptions, read
from rungwise.data.layouts import _tables, read_table

Row = dict[str, Any]
ROWS: list[Row] = [
    {"image": "a.jpg", "caption": 'A "small" dog, asleep.', "split": "train"},
    {"image": "b.png", "caption": "Two lines\nof a cat.", "split": "dev"},
    {"image": "a.jpg", "caption": "Ein Hund über Köln.", "split": "train"},
]


def write(path: Path, rows: list[Row]) -> Path:
    columns = list(rows[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, dialect="excel-tab" if path.suffix == ".tsv" else "excel")
            writer.writeheader()
            writer.writerows(rows)
    return path


def add_pictures(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".txt"])
@pytest.mark.parametrize("pictures", [".", "pictures"])
def test_every_format_reads_alike(tmp_path: Path, suffix: str, pictures: str) -> None:
    add_pictures(tmp_path / pictures, "a.jpg", "b.png", "c.jpg")
    table = write(tmp_path / f"captions{suffix}", ROWS)
    for data in (read(tmp_path), read(table)):
        assert data.layout == "table"
        assert data.image_ids == ("a.jpg", "b.png", "c.jpg")
        assert data.captions == tuple(row["caption"] for row in ROWS)
        assert data.image_of_caption.tolist() == [0, 1, 0]
        assert data.splits == ("train", "val", "none")
        assert data.labels == ()
        assert data.paths[1] == tmp_path / pictures / "b.png"
        assert data.issues == ()


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(ANY_TEXT, min_size=1), st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, captions: list[str], suffix: str) -> None:
    folder = tmp_path_factory.mktemp("table")
    add_pictures(folder, "a.jpg")
    write(folder / f"captions{suffix}", [{"image": "a.jpg", "caption": text} for text in captions])
    data = read(folder)
    shown = [
        "".join(" " if unicodedata.category(c) == "Cc" and not c.isspace() else c for c in text).strip()
        for text in captions
    ]
    assert list(data.captions) == [text for text in shown if text]
    kinds = [
        "malformed text" if new != old.strip() else "empty caption" for old, new in zip(captions, shown, strict=True)
    ]
    odd = [kind for kind, old, new in zip(kinds, captions, shown, strict=True) if not new or new != old.strip()]
    assert [issue.kind for issue in data.issues] == odd


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_optional_columns(tmp_path: Path, suffix: str) -> None:
    add_pictures(tmp_path, "1.jpg", "2.jpg")
    several: Any = "pet; brown" if suffix == ".csv" else ["pet", "brown"]
    rows = [
        {"File Name": "1", "Text": "A dog.", "class": "dog", "Labels": several, "sentid": 70},
        {"File Name": "2", "Text": "A cat.", "class": "cat", "Labels": several, "sentid": 71},
        {"File Name": "1", "Text": "A pet.", "class": "dog", "Labels": several, "sentid": None},
    ]
    for row in rows:
        row["file_name"] = row.pop("File Name")
    write(tmp_path / f"table{suffix}", rows)
    data = read(tmp_path)
    assert data.labels == (("dog", "pet", "brown"), ("cat", "pet", "brown"))
    assert data.caption_ids == ("70", "71", "1#1")


def test_a_list_of_captions_in_one_row(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    write(tmp_path / "t.jsonl", [{"image": "a.jpg", "captions": ["A dog.", "A pet."]}])
    assert read(tmp_path).caption_ids == ("a.jpg#0", "a.jpg#1")


def test_numbers_as_picture_names(tmp_path: Path) -> None:
    add_pictures(tmp_path, "12.jpg", "13.jpg")
    write(tmp_path / "t.jsonl", [{"image_id": 12, "caption": "A dog."}, {"image_id": 13.0, "caption": "A cat."}])
    assert read(tmp_path).image_ids == ("12", "13")


def test_one_table_for_each_split(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    write(tmp_path / "train.csv", [{"image": "a.jpg", "caption": "A dog."}])
    write(tmp_path / "captions_valid.csv", [{"image": "b.jpg", "caption": "A cat."}])
    data = read(tmp_path)
    assert dict(zip(data.image_ids, data.splits, strict=True)) == {"a.jpg": "train", "b.jpg": "val"}


def left_out(data: ImageCaptions) -> list[tuple[str, str]]:
    """Each table that was left out, with the reason."""
    found = [issue for issue in data.issues if issue.kind == "table left out"]
    assert all("; " in issue.detail and issue.where in issue.detail.rpartition(": --captions ")[2] for issue in found)
    return sorted((issue.where, issue.detail.rpartition("; ")[0]) for issue in found)


def test_of_two_tables_of_the_same_pictures_that_which_names_more_is_read(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    write(tmp_path / "a_few.csv", [{"image": "a.jpg", "caption": "A pet."}])
    write(tmp_path / "later" / "two.jsonl", [{"image": f"{name}.jpg", "caption": f"A {name}."} for name in "ab"])
    data = read(tmp_path)
    assert data.captions == ("A a.", "A b.")
    assert left_out(data) == [("a_few.csv", "names pictures that later/two.jsonl names too; that one is read")]
    write(tmp_path / "one.csv", [{"image": f"{name}.jpg", "caption": f"One {name}."} for name in "ab"])
    data = read(tmp_path)  # as many, and nearer to the top
    assert data.captions == ("One a.", "One b.")
    assert [where for where, _ in left_out(data)] == ["a_few.csv", "later/two.jsonl"]
    assert read(tmp_path / "a_few.csv").captions == ("A pet.",)


def test_tables_of_different_pictures_are_read_together(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "rome/b.jpg", "c.jpg")
    write(tmp_path / "one.csv", [{"image": "a.jpg", "caption": "A dog."}])
    write(tmp_path / "rome" / "two.jsonl", [{"image": "b.jpg", "caption": "A cat."}])
    (tmp_path / "three.json").write_text('{"c.jpg": "A cow."}')
    data = read(tmp_path)
    assert dict(zip(data.image_ids, data.captions, strict=True)) == {
        "a.jpg": "A dog.", "rome/b.jpg": "A cat.", "c.jpg": "A cow.",
    }  # fmt: skip
    assert (data.layout, data.issues) == ("table", ())


STRAY = {
    "taxes.csv": b"year,sum\n2025,100\n",
    "taxes.tsv": b"year\tsum\n2025\t100\n",
    "taxes.jsonl": b'{"year": 2025}\n',
    "broken.jsonl": b'{"image": "a.jpg", "cap',
    "broken.csv": b'image,caption\na.jpg,"A dog.\n',
    "latin.csv": b"image,caption\na.jpg,caf\xe9\n",
    "empty.csv": b"",
    "header.csv": b"image,caption\n",
    "binary.csv": b"\0\1\2",
    "books.csv": b"file,title\nbook.pdf,A book\n",
    "files.txt": b"file,text\nbook.pdf,A book\n",
    "captions.json": b'[{"image": "book.jpg", "caption": "A book"}]',
    "photos.json": b'[{"image": "a.jpg", "caption": "A dog."}',
    "taxes.parquet": b"PAR1 no",
}


@pytest.mark.parametrize("place", [".", "taxes/2025"])
@pytest.mark.parametrize("captioned", [False, True])
def test_a_table_that_was_only_found_never_ends_the_reading(place: str, captioned: bool, tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "trip/b.jpg")
    if captioned:
        write(tmp_path / "titles.csv", [{"image": "trip/b.jpg", "caption": "A boat."}])
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for name, content in STRAY.items():
        (tmp_path / place / name).write_bytes(content)
        data = read(tmp_path)
        assert set(data.image_ids) == {"a.jpg", "trip/b.jpg"}
        assert data.captions == (("A boat.",) if captioned else ())
        where = (Path(place) / name).as_posix()
        assert sum(issue.where == where for issue in data.issues) == 1, name
        with pytest.raises(UserError):
            read(tmp_path / place / name)
    assert {Path(issue.where).name for issue in data.issues} == set(STRAY)


def test_a_folder_of_nothing_but_a_table_says_what_the_table_lacks(tmp_path: Path) -> None:
    (tmp_path / "taxes.csv").write_text("year,sum\n2025,100\n")
    with pytest.raises(UserError, match="taxes.csv: needs an image column .* and a caption column"):
        read(tmp_path)


def test_a_table_beside_features_is_no_obstacle(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros((1, 2), np.float32))
    (tmp_path / "taxes.csv").write_text("year,sum\n2025,100\n")
    write(tmp_path / "captions.csv", [{"image": "a", "caption": "A dog."}])
    data = read(tmp_path)
    assert (data.captions, [where for where, _ in left_out(data)]) == (("A dog.",), ["taxes.csv"])
    (tmp_path / "captions.csv").unlink()
    (tmp_path / "ids.txt").write_text("a\n")
    assert read(tmp_path).image_ids == ("a",)


def test_a_folder_that_a_program_made_is_a_layout_of_its_own_name(tmp_path: Path) -> None:
    add_pictures(tmp_path, "pictures/0.png")
    write(tmp_path / "captions.jsonl", [{"image": "pictures/0.png", "caption": "A red circle.", "split": "test"}])
    for content, layout in (
        ('{"format":"rungwise scenes","version":1}', "scenes"),
        ('{\n  "format": "rungwise plants"}', "plants"),
        ('{"format": "other"}', "table"),
        ('{"name": {"format": "rungwise scenes"}}', "table"),
        ("", "table"),
    ):
        (tmp_path / "about.json").write_text(content)
        data = read(tmp_path)
        assert (data.layout, data.image_ids, data.splits) == (layout, ("pictures/0.png",), ("test",))


def test_composed_and_decomposed_names_match(tmp_path: Path) -> None:
    add_pictures(tmp_path, unicodedata.normalize("NFD", "Zoë.jpg"))
    name = unicodedata.normalize("NFC", "Zoë.jpg")
    write(tmp_path / "t.csv", [{"image": name, "caption": "A dog."}])
    assert read(tmp_path).image_ids == (name,)


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    (tmp_path / "t.csv").write_text("image,caption\na.jpg,Käse\n", encoding="utf-8-sig")
    assert read(tmp_path).captions == ("Käse",)


def test_quotation_marks_of_different_lines_join_them_unless_lines_are_rows(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('image\tcaption\n"a.jpg\tGo\nb.jpg"\tStop\n')
    assert len(read_table(tmp_path / "t.tsv").rows) == 1
    assert [line for line, _ in read_table(tmp_path / "t.tsv", by_lines=True).rows] == ["line 2", "line 3"]
    (tmp_path / "t.tsv").write_text('image\tcaption\na.jpg\t"Go\non"\n')
    assert read_table(tmp_path / "t.tsv", by_lines=True).rows == [("line 2", {"image": "a.jpg", "caption": "Go\non"})]


def test_unquoted_tsv_keeps_its_quotation_marks(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('image\tcaption\na.jpg\t"Stop" sign\nb.jpg\t12" disc\n')
    assert [row["caption"] for _, row in read_table(tmp_path / "t.tsv").rows] == ['"Stop" sign', '12" disc']


def test_skipped_rows_are_kept_account_of_with_their_lines(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "x/b.jpg", "y/b.jpg")
    lines = [
        "image,caption",
        'a.jpg,"A dog',
        'asleep."',
        "gone.jpg,A ghost.",
        "a.jpg,A dog, awake.",
        "",
        "a.jpg",
        "a.jpg,  ",
        "b.jpg,Which one?",
        ",Nobody.",
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    data = read(tmp_path)
    assert data.captions == ("A dog\nasleep.",)
    where = {issue.where.rpartition(" ")[2]: issue for issue in data.issues}
    assert {line: issue.kind for line, issue in where.items()} == {
        "4": "missing picture",
        "5": "malformed row",
        "7": "malformed row",
        "8": "empty caption",
        "9": "ambiguous picture",
        "10": "missing picture",
    }
    assert where["4"].detail == "no picture named 'gone.jpg'; left out: 'A ghost.'"
    why = "3 columns but the header has 2; put texts that hold a comma in quotes"
    assert where["5"].detail == f"{why}; left out: 'a.jpg,A dog, awake.'"
    assert where["9"].detail == "'b.jpg' may be x/b.jpg, y/b.jpg; left out: 'Which one?'"
    assert where["10"].detail == "the row names no picture; left out: 'Nobody.'"


def test_of_a_column_that_stands_twice_all_cells_count(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    (tmp_path / "t.csv").write_text("image,caption,caption,caption\na.jpg,A dog.,A pup.,\n")
    data = read(tmp_path)
    assert data.captions == ("A dog.", "A pup.")
    assert [issue.kind for issue in data.issues] == ["empty caption"]
    (tmp_path / "t.csv").write_text("image,image,caption\na.jpg,b.jpg,A dog.\n")
    with pytest.raises(
        UserError, match="column 'image' holds a list, not a text.*; left out: 'a.jpg', 'b.jpg', 'A dog.'"
    ):
        read(tmp_path / "t.csv")
    (tmp_path / "t.csv").unlink()
    (tmp_path / "t.jsonl").write_text('{"image": "a.jpg", "caption": "A dog.", "caption": ["A pup."]}\n')
    assert read(tmp_path).captions == ("A dog.", "A pup.")
    (tmp_path / "t.jsonl").write_text('{"image": "a.jpg", "caption": "A dog.", "caption": 3}\n')
    with pytest.raises(UserError, match=r"line 1: not valid JSON \(the key 'caption' stands twice in an object\)"):
        read(tmp_path / "t.jsonl")


def test_one_picture_under_two_names_is_one_picture(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    write(tmp_path / "t.csv", [{"image": name, "caption": name} for name in ("a.jpg", "./a.jpg", "./a.jpg")])
    data = read(tmp_path)
    assert data.image_of_caption.tolist() == [0, 0, 0]
    assert [issue.kind for issue in data.issues] == ["picture under two names"]


def test_if_no_caption_names_a_picture_the_first_is_named(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    write(tmp_path / "t.csv", [{"image": "nope.jpg", "caption": "A dog."}, {"image": "no.jpg", "caption": "A cat."}])
    with pytest.raises(UserError, match=r"t.csv, line 2: no picture named 'nope.jpg', nor any other"):
        read(tmp_path / "t.csv")
    data = read(tmp_path, captions_only=True)
    assert (data.image_ids, data.paths) == (("nope.jpg", "no.jpg"), ())


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_missing_column_is_named_with_those_found(tmp_path: Path, suffix: str) -> None:
    add_pictures(tmp_path, "a.jpg")
    write(tmp_path / f"t{suffix}", [{"image": "a.jpg", "comment": "A dog."}])
    columns = r"\(such as caption, captions or text\), found the columns image, comment; rename or add one"
    with pytest.raises(UserError, match=rf"t{suffix}: needs a caption column {columns}"):
        read(tmp_path / f"t{suffix}")
    write(tmp_path / f"t{suffix}", [{"x": "a.jpg", "caption": "A dog."}])
    with pytest.raises(
        UserError, match=r"needs an image column \(such as image, file or filename\), found the columns x, c"
    ):
        read(tmp_path / f"t{suffix}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"image,caption\n", "no usable caption"),
        ("t.csv", b"image,caption\na.jpg,\xe9\n", "t.csv, line 2: byte 0xe9 at offset 20 is not UTF-8"),
        (
            "t.csv",
            b'image,caption\na.jpg,"A dog\na.jpg,A cat\n',
            "t.csv, line 2: unexpected end of data; correct the quo",
        ),
        (
            "t.jsonl",
            b'{"image": "a.jpg", "caption": "A"}\n{"image": }\n',
            r"t.jsonl, line 2: not valid JSON \(Expecting value, column 11\)",
        ),
        ("t.jsonl", b"[1]\n", "t.jsonl: line 1: not a JSON object"),
        (
            "t.jsonl",
            b'{"image": "a.jpg", "caption": {"en": "A"}}\n',
            r"t.jsonl, line 1 \(column 'caption' holds a dict",
        ),
        ("t.parquet", b"not parquet at all", "t.parquet: not a readable Parquet file"),
    ],
)
def test_mistakes_get_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    add_pictures(tmp_path, "a.jpg")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_an_id_that_stands_twice_is_named(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    write(tmp_path / "t.csv", [{"image": "a.jpg", "caption": text, "caption_id": "7"} for text in ("A", "B")])
    with pytest.raises(UserError, match=r"line 3: caption id '7' stands already in .*line 2; make the ids unique"):
        read(tmp_path / "t.csv")
    data = read(tmp_path)
    assert (data.captions, data.caption_ids) == (("A", "B"), ("7", "a.jpg#1"))
    assert [issue.kind for issue in data.issues] == ["repeated caption id"]


def test_ids_of_pictures_without_captions_stay_unique(tmp_path: Path) -> None:
    add_pictures(tmp_path, "x/a.jpg", "x/b.jpg", "y/b.jpg", "b.jpg")
    write(tmp_path / "t.csv", [{"image": "a.jpg", "caption": "A dog."}])
    data = read(tmp_path)
    assert data.image_ids == ("a.jpg", "b.jpg", "x/b.jpg", "y/b.jpg")
    assert [path.relative_to(tmp_path).as_posix() for path in data.paths] == ["x/a.jpg", "b.jpg", "x/b.jpg", "y/b.jpg"]


@pytest.mark.real_data
def test_the_real_coco_captions(real_data: Path) -> None:
    data = read(real_data / "coco5k" / "captions.tsv", captions_only=True)
    assert (len(data), len(data.captions), len(set(data.caption_ids))) == (5000, 25000, 25000)


ARTICLES: list[Row] = [
    {"image": "a.jpg", "caption": "Red sneakers", "price": 59.5, "stock": 3, "tags": "shoes;red", "sold": "true"},
    {"image": "b.png", "caption": "A hat", "price": 20, "stock": None, "tags": "hats", "sold": "false"},
    {"image": "b.png", "caption": "A straw hat", "price": 20, "stock": None, "tags": "hats", "sold": "false"},
]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_further_columns_are_carried_with_their_types(tmp_path: Path, suffix: str) -> None:
    add_pictures(tmp_path, "a.jpg", "b.png", "c.jpg")
    data = read(write(tmp_path / f"articles{suffix}", ARTICLES))
    sold = ("true", "false", None) if suffix == ".jsonl" else (True, False, None)
    assert data.columns == {
        "price": (59.5, 20.0, None),
        "stock": (3, None, None),
        "tags": (("shoes", "red"), ("hats",), None),
        "sold": sold,
    }
    assert data.select([1]).columns["tags"] == (("hats",),)
    assert data.issues == ()


def test_parquet_carries_columns_and_leaves_vectors_and_doubles_alone(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    add_pictures(tmp_path, "a.jpg")
    cells = [["a.jpg"], ["A dog."], [2020], [["x", "y"]], [[0.5, 0.5]], [b"..."], ["1"], ["2"]]
    names = ["image", "caption", "year", "words", "vector", "bytes", "twice", "twice"]
    parquet.write_table(pyarrow.table([pyarrow.array(one) for one in cells], names=names), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").columns == {"year": (2020,), "words": (("x", "y"),)}


def test_values_that_differ_between_rows_of_a_picture_are_said_once(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    rows = [{"image": "a.jpg", "caption": f"{year}", "year": year, "place": "Rome"} for year in (2020, 2021, 2022)]
    data = read(write(tmp_path / "captions.csv", rows))
    assert data.columns == {"year": (2020,), "place": ("Rome",)}
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("differing values", "column 'year' and in 1 more rows; the first of each picture is kept")
    ]


def test_reserved_names_get_an_underscore(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    row = {"image": "a.jpg", "caption": "A dog.", "id": 7, "path": "x", "box": {"left": 1}, "half": "\ud83d"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    data = read(tmp_path / "a.jsonl")
    assert data.columns == {"id_": (7,), "path_": ("x",), "box.left": (1,)}
    assert [issue.kind for issue in data.issues] == ["malformed text", "column renamed", "column renamed"]


def test_titles_are_captions_where_nothing_else_is_and_a_column_as_well(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    row = {"image": "a.jpg", "title": "Red hat", "price": 20}
    data = read(write(tmp_path / "products.csv", [row]))
    assert (data.captions, data.columns) == (("Red hat",), {"title": ("Red hat",), "price": (20,)})
    data = read(write(tmp_path / "products.csv", [row | {"description": "A hat of felt."}]))
    assert (data.captions, data.columns["title"]) == (("A hat of felt.",), ("Red hat",))


@pytest.mark.parametrize(
    "text",
    [
        'image;caption;price\na.jpg;"A dog; a pet, at 3,5";7\n',
        'sep=;\r\nimage;caption;price\r\na.jpg;"A dog; a pet, at 3,5";7\r\n',
        '"image";"caption";"price"\n"a.jpg";"A dog; a pet, at 3,5";"7"\n',
        'image\tcaption\tprice\na.jpg\t"A dog; a pet, at 3,5"\t7\n',
    ],
)
@pytest.mark.parametrize("name", ["captions.csv", "captions.txt"])
def test_tables_as_spreadsheets_of_many_countries_write_them(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / name).write_bytes(codecs.BOM_UTF8 + text.encode())
    for place in (tmp_path, tmp_path / name):
        data = read(place)
        assert (data.image_ids, data.captions) == (("a.jpg",), ("A dog; a pet, at 3,5",))
        assert dict(data.columns) == {"price": (7,)}


def test_a_header_that_only_one_sign_divides_rightly_decides(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "captions.csv").write_text("image,caption,a;b;c;d;e\na.jpg,A dog.,1\n")
    assert read(tmp_path).captions == ("A dog.",)
    (tmp_path / "captions.csv").write_text('image;caption\na.jpg;A dog; and a cat\na.jpg;"x;y"\n')
    data = read(tmp_path)
    assert data.captions == ("x;y",)
    why = "3 columns but the header has 2; put texts that hold a semicolon in quotes"
    assert data.issues[0].detail == f"{why}; left out: 'a.jpg;A dog; and a cat'"


NESTED: dict[str, Any] = {
    "image": "1.jpg",
    "caption": "A shirt.",
    "attrs": {"articleType": "Shirt", "season": {"name": "Fall", "years": ["2011", "2012"], "of": None}},
    "attrs.articleType": "mine",
    "price": 20,
}


@pytest.mark.parametrize("form", ["lines", "list", "by picture", "parquet"])
def test_entries_of_objects_become_columns(form: str, tmp_path: Path) -> None:
    add_pictures(tmp_path, "1.jpg", "2.jpg")
    more = {"image": "2.jpg", "caption": "A coat.", "attrs": {"season": {"name": "Winter"}, "warm": True}}
    if form == "lines":
        (tmp_path / "c.jsonl").write_text(f"{json.dumps(NESTED)}\n{json.dumps(more)}\n")
    elif form == "list":
        (tmp_path / "c.json").write_text(json.dumps([NESTED, more]))
    elif form == "by picture":
        by_name = {one["image"]: {name: one[name] for name in one if name != "image"} for one in (NESTED, more)}
        (tmp_path / "c.json").write_text(json.dumps(by_name))
    else:
        write(tmp_path / "c.parquet", [NESTED, more])
    data = read(tmp_path)
    assert data.captions == ("A shirt.", "A coat.")
    assert data.columns == {
        "attrs.articleType": ("mine", None),
        "price": (20, None),
        "attrs.season.name": ("Fall", "Winter"),
        "attrs.season.years": (("2011", "2012"), None),
        "attrs.warm": (None, True),
    }
    (issue,) = data.issues
    assert issue.kind == "column left out"
    assert issue.detail.startswith(
        "'attrs.articleType' stands inside an object, and the table has a column of that name"
    )


def test_depth_and_number_of_columns_are_limited(tmp_path: Path) -> None:
    add_pictures(tmp_path, "1.jpg")
    deep: dict[str, Any] = {"end": 1}
    for _ in range(200):
        deep = {"in": deep}
    row = {"image": "1.jpg", "caption": "A dog.", "deep": deep, "wide": {str(number): number for number in range(300)}}
    (tmp_path / "c.jsonl").write_text(json.dumps(row))
    data = read(tmp_path)
    assert len(data.columns) == 200
    details = {issue.kind: issue.detail for issue in data.issues}
    assert "more objects inside one another than RUNGWISE_MAX_COLUMN_DEPTH allows" in details["column left out"]
    assert details["columns left out"] == (
        "100 beyond the first 200, from 'wide.200' on; to keep them set RUNGWISE_MAX_TABLE_COLUMNS=300"
    )
    with limited(table_columns=300, column_depth=300):
        data = read(tmp_path)
    assert (len(data.columns), [issue.kind for issue in data.issues]) == (300, ["columns left out"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_list_in_json_within_a_cell_is_several_captions(tmp_path: Path, suffix: str) -> None:
    cells = {
        "1.jpg": '["Two men.", "They \\"talk\\"."]', "2.jpg": "[Two men]", "3.jpg": "[1, 2]", "4.jpg": ' ["One."] ',
    }  # fmt: skip
    frame = {"raw": list(cells.values()), "sentids": ["[0, 1]", "[2]", "[3]", "[4]"], "filename": list(cells)}
    for name in cells:
        (tmp_path / name).write_bytes(b"")
    path = tmp_path / f"flickr_annotations_30k.{suffix}"
    if suffix == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table(frame), path)
    else:
        rows = [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]
        with path.open("w", newline="") as file:
            if suffix == "csv":
                writer = csv.DictWriter(file, list(frame))
                writer.writeheader()
                writer.writerows(rows)
            else:
                file.writelines(f"{json.dumps(row)}\n" for row in rows)
    data = read(tmp_path)
    assert data.captions == ("Two men.", 'They "talk".', "[Two men]", "[1, 2]", "One.")
    assert data.image_of_caption.tolist() == [0, 0, 1, 2, 3]


FLICKR30K = """image_name| comment_number| comment
101.jpg| 0| Two men , one tall , talk .
101.jpg| 1| "They talk .
102.jpg| 0| A dog " runs .
102.jpg|4   A dog sits .
102.jpg| 1|"A dog
101.jpg| 2| They sing" .
"""


@pytest.mark.parametrize("blank", [" ", ""])
@pytest.mark.parametrize("name", ["results.csv", "results.txt"])
def test_flickr30k_with_pipes(blank: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FLICKR30K.replace("| ", f"|{blank}"))
    add_pictures(tmp_path, "flickr30k_images/101.jpg", "flickr30k_images/102.jpg")
    for data in (read(tmp_path), read(tmp_path / name), read(tmp_path / name, captions_only=True)):
        texts = {data.image_ids[image]: [] for image in (0, 1)}
        for text, image in zip(data.captions, data.image_of_caption, strict=True):
            texts[data.image_ids[image]].append(text)
        assert texts == {
            "101.jpg": ["Two men , one tall , talk .", '"They talk .', 'They sing" .'],
            "102.jpg": ['A dog " runs .', '"A dog'],
        }
        assert dict(data.columns) == {}
        (issue,) = data.issues
        assert issue.kind == "malformed row"
        assert issue.detail == "2 columns but the header has 3; left out: '102.jpg|4   A dog sits .'"


def test_pipes_with_quoted_cells(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "t.csv").write_text('image|caption\na.jpg|"A ""big"" dog | a pet"\nb.jpg|"Two\nlines"\n')
    assert read(tmp_path).captions == ('A "big" dog | a pet', "Two\nlines")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("text", ["word " * 30000, 'a "b", c\n' * 20000])
def test_long_cells_are_read_up_to_the_limit_of_a_line(suffix: str, text: str, tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    rows = [{"image": f"{name}.jpg", "caption": f"A {name}.", "ocr": text} for name in "ab"]
    data = read(write(tmp_path / f"c{suffix}", rows))
    assert (data.captions, data.columns["ocr"]) == (("A a.", "A b."), (text.strip(), text.strip()))
    with limited(line_bytes=100_000):
        with pytest.raises(UserError, match=r"line 2, a cell: .*; if it is meant, set RUNGWISE_MAX_LINE_BYTES=1\d+$"):
            read(tmp_path / f"c{suffix}")
        assert [issue.kind for issue in read(tmp_path).issues] == ["table left out"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_cell_without_a_caption_is_the_same_in_all_tables(suffix: str, tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    rows = [{"image": "a.jpg", "caption": "A dog."}, {"image": "b.jpg", "caption": None}]
    data = read(write(tmp_path / f"c{suffix}", rows))
    assert (data.image_ids, data.captions) == (("a.jpg", "b.jpg"), ("A dog.",))
    assert [issue.kind for issue in data.issues] == ["empty caption"]
    if suffix in (".jsonl", ".parquet"):
        empty = [[], None, [None]] + ([float("nan")] if suffix == ".jsonl" else [])
        add_pictures(tmp_path, *(f"{number}.jpg" for number in range(len(empty))))
        rows = [{"image": f"{number}.jpg", "captions": cell} for number, cell in enumerate([*empty, ["A cat."]])]
        add_pictures(tmp_path, f"{len(empty)}.jpg")
        data = read(write(tmp_path / f"c{suffix}", rows))
        assert data.captions == ("A cat.",)
        assert [issue.kind for issue in data.issues] == ["empty caption"] * len(empty)


def of_pictures(data: ImageCaptions) -> dict[str, tuple[str, list[str]]]:
    """Split and captions of each picture by its id; that the file is the one of this id is checked."""
    root = Path(os.path.commonpath([path.parent for path in data.paths if isinstance(path, Path)]))
    for image_id, path in zip(data.image_ids, data.paths, strict=True):
        assert isinstance(path, Path)
        assert path == root / image_id
    texts = [[data.captions[at] for at in captions] for captions in data.captions_of_image]
    return dict(zip(data.image_ids, zip(data.splits, texts, strict=True), strict=True))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_imagefolder_with_metadata_in_the_folder_of_each_split(suffix: str, tmp_path: Path) -> None:
    add_pictures(tmp_path, "train/1.png", "train/2.png", "validation/1.png", "test/1.png", "test/3.png", "0.png")
    for split, numbers in (("train", "12"), ("validation", "14"), ("test", "2")):
        rows = [{"file_name": f"{number}.png", "text": f"{split} {number}", "year": 2020} for number in numbers]
        write(tmp_path / split / f"metadata{suffix}", rows)
    data = read(tmp_path)
    assert of_pictures(data) == {
        "train/1.png": ("train", ["train 1"]),
        "train/2.png": ("train", ["train 2"]),
        "validation/1.png": ("val", ["validation 1"]),
        "test/1.png": ("none", []),
        "test/3.png": ("none", []),
        "0.png": ("none", []),
    }
    assert [(issue.kind, issue.detail.partition("; left out: ")[2]) for issue in data.issues] == [
        ("missing picture", "'validation 4'"),
        ("table left out", ""),  # that of the test pictures names none that is there
    ]
    assert read(tmp_path, captions_only=True).image_ids[:2] == ("train/1.png", "train/2.png")


def test_imagefolder_with_folders_of_classes(tmp_path: Path) -> None:
    add_pictures(tmp_path, "train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "test/1.png", "train/dog/2.png")
    write(tmp_path / "train" / "metadata.jsonl", [
        {"file_name": "cat/1.png", "caption": "A cat."},
        {"file_name": "dog/1.png", "caption": "A dog.", "split": "validation"},
        {"file_name": "2.png", "caption": "No path of a picture."},
    ])  # fmt: skip
    write(tmp_path / "test" / "cat" / "metadata.csv", [{"file_name": "1.png", "caption": "A test cat."}])
    data = read(tmp_path)
    assert of_pictures(data) == {
        "train/cat/1.png": ("train", ["A cat."]),
        "train/dog/1.png": ("val", ["A dog."]),
        "test/cat/1.png": ("test", ["A test cat."]),
        "test/1.png": ("none", []),
        "train/dog/2.png": ("none", []),
    }
    assert [issue.kind for issue in data.issues] == ["missing picture"]


def test_without_pictures_equal_names_of_two_folders_stay_apart(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / split / "captions.csv", [{"image": "1.png", "caption": f"A {split} picture."}])
    data = read(tmp_path, captions_only=True)
    assert dict(zip(data.image_ids, data.captions, strict=True)) == {
        "test/1.png": "A test picture.", "train/1.png": "A train picture.",
    }  # fmt: skip
    assert data.splits == ("test", "train")


def test_a_table_of_one_split_takes_no_picture_of_another(tmp_path: Path) -> None:
    add_pictures(tmp_path, "test/1.png", "other/2.png")
    for name, column in (("metadata.jsonl", "file_name"), ("captions.csv", "image")):
        table = write(tmp_path / "train" / name, [{column: "1.png", "caption": "Of the training picture."}])
        data = read(tmp_path)
        assert (data.captions, [issue.kind for issue in data.issues]) == ((), ["table left out"])
        table.unlink()
    table = write(tmp_path / "train" / "captions.csv", [{"image": "2.png", "caption": "It lies elsewhere."}])
    assert read(tmp_path).captions == ("It lies elsewhere.",)


def test_paths_that_lead_out_of_the_folder_of_a_table_lead_where_they_say(tmp_path: Path) -> None:
    add_pictures(tmp_path, "train/1.png", "train/2.png", "test/2.png", "images/4.png")
    rows = [{"file_name": name, "caption": name} for name in ("1.png", "../test/2.png", "../test/1.png")]
    rows += [{"file_name": str(tmp_path / "images" / "4.png"), "caption": "whole"}]
    rows += [{"file_name": "/elsewhere/train/2.png", "caption": "of another machine"}]
    write(tmp_path / "train" / "captions.jsonl", rows)
    data = read(tmp_path)
    assert {name: texts for name, (_, texts) in of_pictures(data).items() if texts} == {
        "train/1.png": ["1.png"],
        "test/2.png": ["../test/2.png"],
        "images/4.png": ["whole"],
    }
    assert [issue.kind for issue in data.issues] == ["missing picture", "ambiguous picture"]
    write(tmp_path / "train" / "captions.jsonl", rows[-1:])
    assert read(tmp_path).captions == ("of another machine",)  # where no other name is a whole path


NAMES = st.sampled_from(["1.png", "2.png", "cat/1.png", "a b.png", "é.png", "1.jpg", "x.1.png"])
FOLDERS = st.sampled_from([".", "train", "test", "train/cat", "more"])


@given(
    st.sets(st.tuples(FOLDERS, NAMES), min_size=1),
    st.dictionaries(FOLDERS, st.lists(NAMES, min_size=1, unique=True), min_size=1, max_size=4),
    st.sampled_from(["metadata.jsonl", "metadata.csv"]),
)
def test_no_caption_of_an_imagefolder_stands_with_another_picture(
    tmp_path_factory: pytest.TempPathFactory, there: set[tuple[str, str]], named: dict[str, list[str]], name: str
) -> None:
    """Each caption says the path of its picture; what is not read is listed."""
    root = tmp_path_factory.mktemp("split")
    add_pictures(root, "other/other.png", *(f"{folder}/{picture}" for folder, picture in there))
    for folder, pictures in named.items():
        rows = [{"file_name": one, "text": os.path.normpath(f"{folder}/{one}")} for one in pictures]
        (root / folder).mkdir(parents=True, exist_ok=True)
        write(root / folder / name, rows)
    data = read(root)
    nested = {os.path.normpath(f"{folder}/{one}") for folder, many in named.items() if folder != "." for one in many}
    said: set[str] = set()
    for text, image in zip(data.captions, data.image_of_caption, strict=True):
        path = data.paths[image]
        assert isinstance(path, Path)
        if text in nested:
            assert path.relative_to(root).as_posix() == text
        said.add(text)
    tables = {issue.where for issue in data.issues if issue.kind == "table left out"}
    listed = " ".join(issue.detail for issue in data.issues)
    for folder, pictures in named.items():
        if os.path.normpath(f"{folder}/{name}") not in tables:
            assert all(one in said or one in listed for one in (os.path.normpath(f"{folder}/{x}") for x in pictures))


def test_another_table_changes_no_ids(tmp_path: Path) -> None:
    add_pictures(tmp_path, "images/a.jpg", "images/x.jpg", "images/rome/b.jpg", "images/rome/a.jpg")
    write(
        tmp_path / "captions.csv", [{"image": "a.jpg", "caption": "No single one."}, {"image": "x.jpg", "caption": "x"}]
    )
    before = read(tmp_path).image_ids
    write(
        tmp_path / "images" / "rome" / "two.csv",
        [{"image": f"{name}.jpg", "caption": f"Roman {name}"} for name in "ab"],
    )
    data = read(tmp_path)
    assert set(data.image_ids) == set(before) | {"rome/a.jpg", "rome/b.jpg"}
    said = {data.captions[at]: data.paths[image] for at, image in enumerate(data.image_of_caption)}
    assert said == {
        "x": tmp_path / "images" / "x.jpg",
        "Roman a": tmp_path / "images" / "rome" / "a.jpg",
        "Roman b": tmp_path / "images" / "rome" / "b.jpg",
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_large_table_is_not_read_for_nothing(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pictures(tmp_path, "a.jpg")
    monkeypatch.setattr(_tables, "_LARGE", 1000)
    write(tmp_path / f"long{suffix}", [{"image": "a.jpg", "caption": f"A dog {number}."} for number in range(100)])
    rows = [{"year": number, "sum": "a sum"} for number in range(5000)]
    write(tmp_path / f"taxes{suffix}", [*rows, {"year": 0, "sum": "x" * 100}])
    data = read(tmp_path)
    assert len(data.captions) == 100
    assert left_out(data)[0][1].startswith("needs an image column")
    with limited(text_bytes=1200):
        assert {where for where, _ in left_out(read(tmp_path))} == {f"long{suffix}", f"taxes{suffix}"}


def test_tables_of_splits_beside_a_folder_for_each_split(tmp_path: Path) -> None:
    add_pictures(tmp_path, "train/1.png", "train/2.png", "test/1.png", "test/3.png")
    write(tmp_path / "train.csv", [{"image": f"{number}.png", "caption": f"train {number}"} for number in (1, 2, 3)])
    write(tmp_path / "test.csv", [{"image": f"{number}.png", "caption": f"test {number}"} for number in (1, 2)])
    data = read(tmp_path)
    assert of_pictures(data) == {
        "train/1.png": ("train", ["train 1"]),
        "train/2.png": ("train", ["train 2"]),
        "test/1.png": ("test", ["test 1"]),
        "test/3.png": ("none", []),
    }
    assert [(issue.kind, issue.detail.partition("; left out: ")[2]) for issue in data.issues] == [
        ("missing picture", "'test 2'"),
        ("missing picture", "'train 3'"),
    ]


def test_pictures_of_a_split_without_a_folder_lie_in_that_of_another(tmp_path: Path) -> None:
    add_pictures(tmp_path, "train/1.png", "train/2.png")
    for split, number in (("train", 1), ("val", 2)):
        write(tmp_path / f"{split}.csv", [{"image": f"{number}.png", "caption": f"{split} {number}"}])
    data = read(tmp_path)
    assert dict(zip(data.image_ids, data.splits, strict=True)) == {"1.png": "train", "2.png": "val"}
    assert read(tmp_path / "val.csv").captions == ("val 2",)


def test_one_broken_line_of_json_lines_ends_nothing(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg", "b.jpg")
    lines = ['{"image": "a.jpg", "caption": "A dog."}', '{"image": "b.jpg", "cap', '["b.jpg"]', "7"]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    data = read(tmp_path)
    assert data.captions == ("A dog.",)
    assert [issue.kind for issue in data.issues] == ["malformed row"] * 3
    assert data.issues[0].detail == (
        f"not valid JSON (Unterminated string starting at, column 20); left out: {lines[1]!r}"
    )
    with pytest.raises(UserError, match="line 2: not valid JSON"):
        read(tmp_path / "c.jsonl")
