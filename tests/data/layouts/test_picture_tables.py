import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError, limited
from rungwise.data import ImageCaptions, inspect, read
from rungwise.data.files import ParquetCell

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def jpeg(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def cells(*seeds: int) -> list[dict[str, Any]]:
    return [{"bytes": jpeg(seed), "path": f"{seed}.jpg"} for seed in seeds]


def write(path: Path, columns: dict[str, Any], *, group: int | None = None, features: object = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, path, row_group_size=group)
    return path


def test_shards_of_several_splits_as_datasets_saves_them(tmp_path: Path) -> None:
    root = tmp_path / "flickr8k"
    shards = ("train", 0, (1, 2, 3)), ("train", 1, (4,)), ("validation", 0, (5,)), ("test", 0, (6,))
    for split, shard, seeds in shards:
        columns: dict[str, Any] = {f"caption_{n}": [f"Caption {n} of {seed}." for seed in seeds] for n in (1, 0, 10, 2)}
        file = f"{split}-{shard:05d}-of-{2 if split == 'train' else 1:05d}-2f8f6bfa852eac4b.parquet"
        write(root / "data" / file, {"image": cells(*seeds)} | columns, group=2)
    data = read(root)
    assert (data.layout, data.name, data.issues) == ("parquet", "flickr8k", ())
    assert sorted(data.image_ids) == [f"{seed}.jpg" for seed in range(1, 7)]
    assert dict(zip(data.image_ids, data.splits, strict=True)) == {
        **dict.fromkeys(("1.jpg", "2.jpg", "3.jpg", "4.jpg"), "train"), "5.jpg": "val", "6.jpg": "test",
    }  # fmt: skip
    first = data.image_ids.index("3.jpg")
    assert [data.captions[at] for at in data.captions_of_image[first]] == [f"Caption {n} of 3." for n in (0, 1, 2, 10)]
    assert isinstance(data.paths[first], ParquetCell)
    assert data.paths[first].place == {"row_group": 1, "row": 0, "column": "image"}
    for image_id, picture in zip(data.image_ids, data.paths, strict=True):
        assert isinstance(picture, ParquetCell)
        assert picture.read() == jpeg(int(image_id.removesuffix(".jpg")))
    assert read(root, captions_only=True).paths == ()


@pytest.mark.parametrize(
    ("column", "values", "captions"),
    [
        ("caption", ["A dog.", "A cat."], (["A dog."], ["A cat."])),
        ("Captions ", [["A dog.", "A pup."], []], (["A dog.", "A pup."], [])),
        ("raw", ['["A dog.", "A pup."]', "[A cat]"], (["A dog.", "A pup."], ["[A cat]"])),
        ("sentences_raw", [["A dog."], ["A cat."]], (["A dog."], ["A cat."])),
        ("sentences", [{"raw": "A dog.", "sentid": 4}, {"raw": "A cat.", "sentid": 5}], (["A dog."], ["A cat."])),
        ("sentences", [[{"raw": "A dog."}, {"raw": "A pup."}], None], (["A dog.", "A pup."], [])),
        ("text", pa.array(["A dog.", None]).dictionary_encode(), (["A dog."], [])),
        ("text", pa.array(["A dog.", "A cat."], pa.large_string()), (["A dog."], ["A cat."])),
    ],
)
def test_captions_of_every_form(tmp_path: Path, column: str, values: object, captions: tuple[list[str], ...]) -> None:
    write(tmp_path / "a.parquet", {"image": cells(1, 2), column: values})
    for path in (tmp_path, tmp_path / "a.parquet"):
        data = read(path)
        found = [[data.captions[at] for at in positions] for positions in data.captions_of_image]
        assert (tuple(found), data.layout) == (captions, "parquet")


def test_rows_of_one_id_are_one_picture(tmp_path: Path) -> None:
    columns = {
        "image": cells(1, 1, 2), "image_id": [10, 10, 11], "caption": ["A dog.", "A pup.", "A cat."],
        "caption_id": ["x", "y", "z"], "split": ["train", "train", "restval"], "label": [0, 0, 1],
    }  # fmt: skip
    write(tmp_path / "a.parquet", columns, features={"label": {"names": ["dogs", "cats"], "_type": "ClassLabel"}})
    data = read(tmp_path)
    assert (data.image_ids, data.caption_ids, data.issues) == (("10", "11"), ("x", "y", "z"), ())
    assert data.image_of_caption.tolist() == [0, 0, 1]
    assert (data.splits, data.labels) == (("train", "restval"), (("dogs",), ("cats",)))
    assert read(tmp_path, join_restval=True).split_names == ("train",)


def seeds(data: ImageCaptions) -> dict[str, tuple[int, list[str]]]:
    """Number of the picture that each id stands for, and its captions."""
    number = {jpeg(seed): seed for seed in range(1, 9)}
    return {
        image_id: (number[picture.read()], [data.captions[at] for at in own])
        for image_id, picture, own in zip(data.image_ids, data.paths, data.captions_of_image, strict=True)
        if isinstance(picture, ParquetCell)
    }


def test_one_id_of_several_pictures_loses_none_and_moves_no_caption(tmp_path: Path) -> None:
    columns = {"image": cells(1, 2, 1, 3), "image_id": [5, 5, 5, 6], "caption": ["one", "two", "one again", "three"]}
    write(tmp_path / "a.parquet", columns, group=2)
    data = read(tmp_path)
    assert seeds(data) == {"a/0": (1, ["one", "one again"]), "a/1": (2, ["two"]), "6": (3, ["three"])}
    assert [(issue.kind, issue.where.rpartition("/")[2], issue.detail) for issue in data.issues] == [
        ("id of several pictures", "a.parquet, row 1", "'5' stands for 2 different pictures, which are called a/0, a/1")
    ]
    assert read(tmp_path, captions_only=True).image_ids == data.image_ids


def test_every_split_may_count_from_one(tmp_path: Path) -> None:
    for split, numbers in (("train", (1, 2, 4)), ("test", (3, 5, 4))):
        columns = {"image": cells(*numbers), "image_id": [1, 2, 3], "caption": [f"of {n}" for n in numbers]}
        write(tmp_path / f"{split}-00000-of-00001.parquet", columns | {"caption_id": [1, 2, 3]})
    data = read(tmp_path)
    assert seeds(data) == {
        "train/1": (1, ["of 1"]), "train/2": (2, ["of 2"]), "test/1": (3, ["of 3"]), "test/2": (5, ["of 5"]),
        "3": (4, ["of 4", "of 4"]),
    }  # fmt: skip
    assert [issue.kind for issue in data.issues if issue.kind != "conflicting splits"] == [
        *["id of several pictures"] * 2, "caption ids come again",
    ]  # fmt: skip


def test_ids_that_are_called_as_rows_are_stay_apart(tmp_path: Path) -> None:
    columns = {"image": cells(1, 2, 3, 4), "id": ["x", "x", "a/0", "a/1"], "caption": ["one", "two", "three", "four"]}
    write(tmp_path / "a.parquet", columns)
    assert seeds(read(tmp_path)) == {
        "a/0 of x": (1, ["one"]), "a/1 of x": (2, ["two"]), "a/0": (3, ["three"]), "a/1": (4, ["four"]),
    }  # fmt: skip
    write(tmp_path / "b.parquet", {"image": [{"bytes": jpeg(5), "path": "a/0"}], "caption": ["five"]})
    assert sorted(one for one, _ in seeds(read(tmp_path)).values()) == [1, 2, 3, 4, 5]


def test_a_row_without_a_picture_gives_no_other_picture_its_caption(tmp_path: Path) -> None:
    some = [None, *cells(1), {"bytes": b"", "path": "1.jpg"}, None]
    write(tmp_path / "a.parquet", {"image": some, "id": [5, 5, 5, 6], "caption": ["of none", "one", "of none", "six"]})
    data = read(tmp_path)
    assert (data.image_ids, data.captions, data.image_of_caption.tolist()) == (("5", "6"), ("one", "six"), [0, 1])
    assert isinstance(data.paths[0], ParquetCell)
    assert data.paths[0].read() == jpeg(1)
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("missing picture", "the cell is empty, and '5' has one; left out: 'of none'")
    ] * 2


@pytest.mark.parametrize("captions", [["A dog.", None, ""], [["A dog."], None, [None]]])
def test_no_caption_is_an_empty_one_as_in_a_table(tmp_path: Path, captions: list[Any]) -> None:
    write(tmp_path / "packed" / "a.parquet", {"image": cells(1, 2, 3), "caption": captions})
    names = ["1.jpg", "2.jpg", "3.jpg"]
    write(tmp_path / "named" / "a.parquet", {"image": names, "caption": captions})
    for name, seed in zip(names, (1, 2, 3), strict=True):
        (tmp_path / "named" / name).write_bytes(jpeg(seed))
    packed, named = read(tmp_path / "packed"), read(tmp_path / "named")
    assert packed.captions == named.captions == ("A dog.",)
    for data in (packed, named):
        assert [(issue.kind, issue.where[-5:]) for issue in data.issues] == [
            ("empty caption", "row 2"), ("empty caption", "row 3"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("data/restval-00000-of-00001.parquet", "restval"),
        ("flickr30k-test-00000-of-00009.parquet", "test"),
        ("train_sft-00000-of-00001.parquet", "train_sft"),
        ("TEST/test/0000.parquet", "test"),
        ("default/partial-train/0000.parquet", "train"),
        ("validation.parquet", "val"),
        ("all.parquet", "none"),
    ],
)
def test_the_split_that_a_name_says(tmp_path: Path, file: str, split: str) -> None:
    write(tmp_path / "set" / file, {"image": cells(1)})
    assert read(tmp_path / "set").splits == (split,)


def test_names_that_come_again_give_way_to_rows(tmp_path: Path) -> None:
    for split, seeds in (("train", (1, 2)), ("test", (3,))):
        columns = {"image": [one | {"path": "image.jpg"} for one in cells(*seeds)]}
        write(tmp_path / split / "0000.parquet", columns)
    data = read(tmp_path)
    assert data.image_ids == ("test/0000/0", "train/0000/0", "train/0000/1")
    assert data.splits == ("test", "train", "train")
    assert [issue.kind for issue in data.issues] == ["names come again"]


def test_plain_bytes_and_pictures_without_captions(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"image": [jpeg(1), jpeg(2)], "noise": [b"x", b"y"]})
    data = read(tmp_path)
    assert (data.image_ids, data.captions) == (("a/0", "a/1"), ())
    assert data.has_pictures


def test_a_card_says_which_file_belongs_to_which_split(tmp_path: Path) -> None:
    for seed, name in ((1, "a"), (2, "b"), (3, "c")):
        write(tmp_path / "files" / f"{name}.parquet", {"image": cells(seed), "caption": [name]})
    card = tmp_path / "README.md"
    card.write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: files/a*\n"
        "  - split: dev\n    path: ['**/b.parquet']\n---\n# Pets\n"
    )
    data = read(tmp_path)
    assert (data.image_ids, data.splits) == (("1.jpg", "2.jpg"), ("train", "val"))
    assert [(issue.kind, Path(issue.where).name) for issue in data.issues] == [("file left out", "c.parquet")]
    card.write_text("---\nconfigs:\n- config_name: en\n- config_name: de\n---\n")
    with pytest.raises(UserError, match=r"README.md: 2 configurations \(en, de\); put the files of one into a folder"):
        read(tmp_path)
    for text in ("---\nconfigs: [\n---\n", "---\n\xff: !!python/object:os.system x\n---\n"):
        card.write_bytes(text.encode("latin-1"))
        data = read(tmp_path)
        assert len(data) == 3
        assert [issue.kind for issue in data.issues] == ["malformed README"]
    for matter in ("[]", "configs: 3", "configs: [{data_files: {a: 1}}]", "configs: [{data_files: [3, {split: 1}]}]"):
        card.write_text(f"---\n{matter}\n---\n")
        assert read(tmp_path).issues == ()


KINDS = "columns hold texts, numbers, truth values, dates or lists of texts"


def test_a_second_column_of_pictures_is_said(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"other": cells(1), "image": cells(2), "caption": ["x"]})
    data = read(tmp_path)
    assert data.image_ids == ("2.jpg",)
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("columns left out", f"other; the pictures are those of image, {KINDS}")
    ]


def test_further_columns_are_carried(tmp_path: Path) -> None:
    columns = {
        "image": cells(1, 2), "caption": ["x", "y"], "mask": cells(3, 4), "vector": [[0.1, 0.2]] * 2,
        "conversations": [[{"from": "human", "value": "What?"}]] * 2, "price": [3, 4], "sold": [True, None],
        "day": pa.array([date(2024, 5, 1), None]), "tags": [["a", "b"], []], "kind": [1, 0], "title": ["Rex", None],
        "attrs": [{"season": {"name": "Fall"}, "boxes": [{"x": 1}]}, {"season": None, "boxes": []}],
        "noise": [b"x", b"y"], "brand": pa.array(["b", "c"]).dictionary_encode(), "label": [0, 1],
    }  # fmt: skip
    names = {"names": ["dogs", "cats"], "_type": "ClassLabel"}
    write(tmp_path / "a.parquet", columns, features={"label": names, "kind": names}, group=1)
    data = read(tmp_path)
    assert data.captions == ("x", "y")
    assert data.labels == (("dogs",), ("cats",))
    assert data.columns == {
        "price": (3, 4), "sold": (True, None), "day": ("2024-05-01", None), "tags": (("a", "b"), None),
        "kind": ("cats", "dogs"), "title": ("Rex", None), "attrs.season.name": ("Fall", None), "brand": ("b", "c"),
        "label": ("dogs", "cats"),
    }  # fmt: skip
    [issue] = data.issues
    assert issue.kind == "columns left out"
    assert issue.detail.startswith("mask, vector, conversations, attrs.boxes, noise; the pictures are those of image")
    assert read(tmp_path, captions_only=True).columns == data.columns


def test_rows_of_one_picture_keep_the_first_value(tmp_path: Path) -> None:
    columns = {"image": cells(1, 1), "id": [5, 5], "caption": ["x", "y"], "price": [3, 4], "year": [1, 1]}
    data = read(write(tmp_path / "a.parquet", columns))
    assert (data.columns, data.captions) == ({"price": (3,), "year": (1,)}, ("x", "y"))
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("differing values", "column 'price'; the first of each picture is kept")
    ]


def test_columns_that_cannot_be_read_take_no_picture_away(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"image": cells(1, 2), "caption": ["x", "y"], "page": ["word " * 1000] * 2})
    with limited(text_bytes=2000):
        data = read(tmp_path)
    assert (data.captions, data.columns) == (("x", "y"), {})
    [issue] = data.issues
    assert (issue.kind, issue.where.rpartition("/")[2]) == ("columns left out", "a.parquet, row 1")
    assert issue.detail.startswith("page, from this row on: ")
    assert "RUNGWISE_MAX_TEXT_BYTES" in issue.detail


@pytest.mark.parametrize("column", ["jpg", "jpeg", "PNG", "webp", "image_bytes", "img_bytes", "pixel_values"])
def test_usual_names_of_columns_of_pictures(tmp_path: Path, column: str) -> None:
    for name, pictures in (("plain", [jpeg(1), jpeg(2)]), ("structures", cells(1, 2))):
        columns = {column: pictures, "txt": ["A dog.", "A cat."], "__key__": ["s/0", "s/1"]}
        data = read(write(tmp_path / f"{name}.parquet", columns))
        assert (data.image_ids, data.captions, data.issues) == (("s/0", "s/1"), ("A dog.", "A cat."), ())
        assert seeds(data) == {"s/0": (1, ["A dog."]), "s/1": (2, ["A cat."])}


def test_shards_that_were_converted_with_their_json(tmp_path: Path) -> None:
    said = {"caption": "A dog.", "url": "x.org/a", "key": "0", "status": "success", "sha256": "e3b0", "tags": ["a"]}
    columns: dict[str, Any] = {"jpg": cells(1), "json": [said], "__key__": ["0"], "__url__": ["00000.tar"]}
    data = read(write(tmp_path / "a.parquet", columns))
    assert (data.image_ids, data.captions, data.issues) == (("0",), ("A dog.",), ())
    assert data.columns == {"json.url": ("x.org/a",), "json.tags": (("a",),), "__url__": ("00000.tar",)}
    columns["txt"] = ["A pup."]
    data = read(write(tmp_path / "a.parquet", columns))
    assert (data.captions, data.columns["json.caption"]) == (("A pup.",), ("A dog.",))
    for other in (["text"], [3], [["A dog."]], [{"raw": "A dog."}]):
        data = read(write(tmp_path / "a.parquet", {"jpg": cells(1), "json": other}))
        assert data.captions == (("A dog.",) if other == [{"raw": "A dog."}] else ())


def test_what_img2dataset_writes(tmp_path: Path) -> None:
    columns = {
        "url": ["x.org/a", "x.org/b"], "key": ["000", "001"], "status": ["success", "failed_to_download"],
        "error_message": [None, "HTTP Error 404"], "width": [24, None], "exif": ["{}", None], "sha256": ["e3b0", None],
        "caption": ["A dog.", "Gone."], "jpg": [jpeg(1), None],
    }  # fmt: skip
    data = read(write(tmp_path / "00000.parquet", columns))
    assert (data.image_ids, data.captions) == (("000", "001"), ("A dog.", "Gone."))
    assert data.columns == {"url": ("x.org/a", "x.org/b"), "width": (24, None)}
    assert inspect(data).kinds == {"unreadable picture": 1}


def test_texts_of_other_names_are_said(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"image": cells(1), "filename": ["x.jpg"], "prompt": ["a dog"], "n": [3]})
    data = read(tmp_path)
    assert (data.image_ids, data.captions) == (("x.jpg",), ())
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("no captions", "of its columns of texts (prompt) none is called caption or the like; rename one")
    ]


def test_sounds_are_no_pictures(tmp_path: Path) -> None:
    write(
        tmp_path / "a.parquet",
        {"audio": cells(1), "image": cells(2), "caption": ["x"]},
        features={"audio": {"_type": "Audio"}, "image": {"_type": "Image"}},
    )
    data = read(tmp_path)
    assert data.image_ids == ("2.jpg",)
    assert [(issue.kind, issue.detail.partition(";")[0]) for issue in data.issues] == [("columns left out", "audio")]
    write(tmp_path / "a.parquet", {"audio": cells(1), "caption": ["x"]}, features={"audio": {"_type": "Audio"}})
    with pytest.raises(UserError, match="needs an image column"):
        read(tmp_path)


@pytest.mark.parametrize("said", ["{", "[]", '{"info": 3}', '{"info": {"features": {"label": {"names": "x"}}}}'])
def test_notes_of_a_file_may_be_anything(tmp_path: Path, said: str) -> None:
    table = pa.table({"image": cells(1), "label": [0]}).replace_schema_metadata({"huggingface": said})
    pq.write_table(table, tmp_path / "a.parquet")
    if said == "{":
        with pytest.raises(UserError, match="a.parquet: not valid JSON"):
            read(tmp_path / "a.parquet")
    else:
        assert read(tmp_path / "a.parquet").image_ids == ("1.jpg",)


def test_tables_that_name_pictures_are_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_bytes(jpeg(1))
    write(tmp_path / "captions.parquet", {"image": ["1.jpg"], "caption": ["A dog."]})
    assert read(tmp_path).layout == "table"


def test_pictures_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    lacking, cut = {"bytes": None, "path": "gone.jpg"}, {"bytes": jpeg(2)[:300], "path": "cut.jpg"}
    some: list[Any] = [*cells(1, 1), None, lacking, cut]
    write(tmp_path / "a.parquet", {"image": some, "id": list(range(5)), "caption": list("abcde")})
    found = inspect(read(tmp_path))
    assert found.kinds == {"unreadable picture": 3, "identical in one split": 1}
    assert [issue.where for issue in found.odd if issue.kind == "unreadable picture"] == ["2", "3", "4"]
    assert (found.widths, found.heights) == ((24, 24), (16, 16))


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        (
            [cells(1), cells(1), ["x"]],
            ["image", "image", "caption"],
            "column 'image' stands twice",
        ),
        ([cells(1), ["x"], ["y"]], ["image", "caption", "caption"], "column 'caption' stands twice"),
        ([cells(), []], ["image", "caption"], "no usable caption"),
    ],
)
def test_columns_and_rows_that_make_no_collection(tmp_path: Path, columns: Any, names: list[str], said: str) -> None:
    kinds = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    arrays = [
        pa.array(one, kinds if name == "image" else pa.string()) for name, one in zip(names, columns, strict=True)
    ]
    pq.write_table(pa.table(arrays, names=names), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=said) as caught:
        read(tmp_path / "a.parquet")
    assert "\n" not in str(caught.value)


def test_endless_texts_and_torn_names(tmp_path: Path) -> None:
    count = 3000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), ["A" * 5000])
    file = write(tmp_path / "a.parquet", {"image": [{"bytes": b"x", "path": "a"}] * count, "caption": same})
    with limited(text_bytes=1 << 20), pytest.raises(UserError, match="unpacked: goes on beyond 1.0 MiB"):
        read(file)


def test_a_damaged_shard_among_others_is_an_issue_and_alone_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"image": cells(1), "caption": ["x"]})
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    data = read(tmp_path)
    assert [(issue.kind, issue.where) for issue in data.issues] == [("unreadable file", "b.parquet")]
    with pytest.raises(UserError, match="b.parquet: not a readable Parquet file"):
        read(tmp_path / "b.parquet")


def test_names_with_folders_are_ids_and_never_paths(tmp_path: Path) -> None:
    names = ["../../etc/a.jpg", "/etc/b.jpg", "c\\d.jpg", "x/e.jpg", "y/e.jpg"]
    some = [one | {"path": name} for one, name in zip(cells(1, 2, 3, 4, 5), names, strict=True)]
    write(tmp_path / "a.parquet", {"image": some})
    data = read(tmp_path)
    assert data.image_ids == ("a.jpg", "b.jpg", "d.jpg", "x/e.jpg", "y/e.jpg")
    assert {picture.file for picture in data.paths if isinstance(picture, ParquetCell)} == {tmp_path / "a.parquet"}
