"""Collections from memory, and back.

Also tests rungwise.data.files._memory_pictures, rungwise.data.files._collection_rows.
"""

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from rungwise.core import UserError
from rungwise.data import ImageCaptions, from_dataset, from_frame, from_lists, read
from rungwise.data.files import EncodedOnce, MemoryPicture
from rungwise.data.pictures import load_array, picture_bytes
from rungwise.index import Index
from tests.colour_model import ColourModel

datasets = pytest.importorskip("datasets")
pd = pytest.importorskip("pandas")


def picture(shade: int, mode: str = "RGB", size: tuple[int, int] = (3, 2)) -> Image.Image:
    return Image.new("L", size, shade).convert(mode)


def file_of(shade: int, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    picture(shade).save(file, form)
    return file.getvalue()


def same(first: ImageCaptions, second: ImageCaptions, *, ids: bool = True) -> None:
    if ids:
        assert first.image_ids == second.image_ids
        assert first.caption_ids == second.caption_ids
        assert first.content_hash() == second.content_hash()
    assert first.captions == second.captions
    assert first.image_of_caption.tolist() == second.image_of_caption.tolist()
    for one, other in zip(first.paths, second.paths, strict=True):
        assert np.array_equal(load_array(one), load_array(other))


FRAME = pd.DataFrame({"image": [picture(1)], "caption": ["a"]})

words = st.text(st.characters(categories=("L", "Nd")), min_size=1, max_size=6)
COLLECTIONS = st.lists(
    st.tuples(st.integers(0, 255), st.lists(words, max_size=3), st.sampled_from(["train", "val", "test"])),
    min_size=1,
    max_size=6,
)
MANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def collection(rows: list) -> ImageCaptions:
    return from_lists(
        [picture(shade) for shade, _, _ in rows],
        [texts for _, texts, _ in rows],
        ids=[f"id {number}" for number in range(len(rows))],
        splits=[split for _, _, split in rows],
    )


@given(rows=COLLECTIONS)
@MANY
def test_a_frame_holds_all_of_a_collection(rows: list) -> None:
    data = collection(rows)
    back = read(data.to_frame())
    same(back, data)
    assert back.splits == data.splits


@given(rows=COLLECTIONS)
@MANY
def test_lists_hold_pictures_and_captions(rows: list) -> None:
    data = collection(rows)
    pictures, captions = data.to_lists()
    same(read(pictures, captions=captions), data, ids=False)


@given(rows=COLLECTIONS)
@MANY
def test_a_dataset_holds_all_of_a_collection(rows: list) -> None:
    data = collection(rows)
    made = data.to_dataset()
    assert set(made) == set(data.splits)
    back = read(made)
    order = [data.image_ids.index(one) for one in back.image_ids]
    same(back, data.select(order))
    assert back.splits == data.select(order).splits


@given(rows=COLLECTIONS)
@settings(MANY, max_examples=10)
def test_a_saved_folder_holds_all_of_a_collection(rows: list, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = collection(rows)
    back = read(data.save(tmp_path_factory.mktemp("saved") / "data"))
    same(back, data)
    assert back.splits == data.splits
    for one, other in zip(data.paths, back.paths, strict=True):
        assert picture_bytes(one) == picture_bytes(other)


def test_columns_and_labels_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "image": [picture(1), picture(2)],
            "caption": ["one", "two"],
            "label": ["cat", "dog"],
            "year": [2020, None],
            "tags": [["a", "b"], None],
            "price": [1.5, 2.5],
            "sold": [True, False],
            "filename": ["x.jpg", "y.jpg"],
        }
    )
    data = read(frame)
    assert data.image_ids == ("x.jpg", "y.jpg")
    assert data.labels == (("cat",), ("dog",))
    wanted = {"year": (2020.0, None), "tags": (("a", "b"), None), "price": (1.5, 2.5), "sold": (True, False)}
    assert dict(data.columns) == wanted
    for back in (read(data.to_frame()), read(data.to_dataset()), read(data.save(tmp_path / "saved"))):
        assert {name: back.columns[name] for name in wanted} == wanted
        assert back.labels == data.labels
        assert back.image_ids == data.image_ids


def test_rows_of_one_picture_are_one_picture() -> None:
    one, two = picture(1), picture(2)
    data = read(pd.DataFrame({"image": [one, two, one], "caption": ["a", "b", "c"]}))
    assert (data.image_ids, data.captions, data.image_of_caption.tolist()) == (("0", "1"), ("a", "b", "c"), [0, 1, 0])
    by_id = read(pd.DataFrame({"image": [picture(1), picture(2), picture(1)], "caption": list("abc"), "id": [7, 8, 7]}))
    assert (by_id.image_ids, by_id.image_of_caption.tolist()) == (("7", "8"), [0, 1, 0])
    numbered = read(pd.DataFrame({"image": [one, two], "caption_1": ["a", "b"], "caption_2": ["c", "d"]}))
    assert numbered.captions == ("a", "c", "b", "d")


def test_paths_are_read_where_they_are(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(3).save(tmp_path / name)
    data = from_frame(pd.DataFrame({"path": ["a.png", "b.png", "c.png"], "text": ["x", "y", "z"]}), folder=tmp_path)
    assert data.paths == (tmp_path / "a.png", tmp_path / "b.png")
    assert data.image_ids == ("a.png", "b.png")
    assert [(one.kind, one.where) for one in data.issues] == [("missing picture", "memory, row 2")]
    assert "no such file; left out: 'z'" in data.issues[0].detail
    full = [str(tmp_path / "a.png"), str(tmp_path / "b.png")]
    assert read(full, captions=["x", None]).captions == ("x",)
    assert read(full, captions=["x", ["y", "z"]]).to_lists() == (full, [["x"], ["y", "z"]])
    assert data.to_dataset().cast_column("image", datasets.Image(decode=False))[0]["image"]["bytes"] is None
    same(read(data.to_dataset()), data)


def test_relative_paths_are_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(3).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    data = read(["a.png"], captions=["x"])
    assert (data.image_ids, data.paths) == (("a.png",), (tmp_path / "a.png",))


def test_a_list_of_picture_files_is_pictures_without_captions(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        picture(3).save(tmp_path / name)
    paths = sorted(tmp_path.glob("*.png"))
    texts = [str(one) for one in paths]
    for given_as in (paths, texts, pd.Series(texts), np.array(texts), iter(paths)):
        data = read(given_as)
        assert (data.paths, data.captions) == (tuple(paths), ())


def test_arrays_in_a_frame_are_captions_or_numbers_before_they_are_pictures(tmp_path: Path) -> None:
    picture(3).save(tmp_path / "a.png")
    row = {"caption": np.array(["x", "y"], object), "vec": np.zeros(4), "thumbnail": file_of(1)}
    for column in ("image", "path"):
        frame = pd.DataFrame([{column: str(tmp_path / "a.png")} | row])
        data = read(frame if column == "image" else frame.drop(columns="thumbnail"))
        assert (data.paths, data.captions) == ((tmp_path / "a.png",), ("x", "y"))


def test_a_mapping_of_datasets_gives_the_splits() -> None:
    part = datasets.Dataset.from_dict({"image": [b"..."], "caption": ["a"]})
    assert read({"train": part, "test": part}).splits == ("train", "test")


def test_a_dataset_of_hugging_face_is_not_decoded() -> None:
    made = datasets.Dataset.from_dict(
        {
            "image": [{"bytes": b"no picture", "path": "a.png"}, {"bytes": file_of(9), "path": "b.png"}],
            "sentences": [["one", "two"], ["three"]],
            "label": [1, 0],
        },
        datasets.Features(
            image=datasets.Image(),
            sentences=[datasets.Value("string")],
            label=datasets.ClassLabel(names=["cat", "dog"]),
        ),
    )
    data = read(datasets.DatasetDict(train=made, validation=made.select([1])))
    assert data.splits == ("train", "train", "val")
    assert data.labels == (("dog",), ("cat",), ("cat",))
    assert data.captions == ("one", "two", "three", "three")
    assert data.image_ids == ("a.png", "b.png", "validation/0")
    assert data.paths[1].read() == data.paths[2].read() == file_of(9)
    assert data.paths[0].read() == b"no picture"
    with pytest.raises(UserError, match=r"picture 'a.png' in memory: not a picture"):
        load_array(data.paths[0])


def test_all_that_follows_reads_pictures_in_memory(tmp_path: Path) -> None:
    """An index opens pictures later, so that they have to be saved first."""
    pictures = [picture(shade, size=(8, 8)) for shade in (10, 90, 170, 250)]
    data = read(pictures, captions=["black", "dark", "grey", "white"])
    model = ColourModel()
    assert len(model.encode_image(data.pictures).vectors) == 4
    with pytest.raises(UserError, match=r"memory: its pictures are in memory, .*; save\(FOLDER\) writes them"):
        Index.build(data, model, tmp_path / "index")
    saved = read(data.save(tmp_path / "saved"))
    index = Index.build(saved, model, tmp_path / "index", thumbnails=True)
    assert len(index) == 4
    with pytest.raises(UserError, match="its pictures are in memory"):
        index.update(data, model)


def test_a_stream_is_refused() -> None:
    stream = datasets.Dataset.from_dict({"image": [b"1"], "caption": ["a"]}).to_iterable_dataset()
    with pytest.raises(UserError, match="is a stream without an end"):
        read(stream)


def test_what_a_person_names_is_an_order() -> None:
    shades = {"image": [picture(1), picture(1)], "other": [picture(8), picture(9)]}
    frame = pd.DataFrame({**shades, "caption": ["no", "no"], "said": ["yes", "ja"]})
    data = read(frame, image="other", caption="said")
    assert data.captions == ("yes", "ja")
    assert load_array(data.paths[0]).max() == 8
    assert read(frame, image="other", caption=["said", "caption"]).captions == ("yes", "no", "ja", "no")
    with pytest.raises(
        UserError, match=r"there is no column 'sed' \(caption=\); there are image, other, caption, said"
    ):
        read(frame, caption="sed")
    ids = pd.DataFrame({"image": [picture(1), picture(2)], "caption": ["a", "b"], "id": ["x", "x"]})
    with pytest.raises(UserError, match="'id' as ids: 'x' stands for different pictures"):
        read(ids, id="id")
    guessed = read(ids)
    assert guessed.image_ids == ("0", "1")
    assert [one.kind for one in guessed.issues][:1] == ["id of several pictures"]
    assert "id_" in guessed.columns


def test_a_choice_among_several_columns_is_said() -> None:
    data = read(pd.DataFrame({"image": [picture(1)], "caption": ["a"], "text": ["b"]}))
    assert data.captions == ("a",)
    assert dict(data.columns) == {"text": ("b",)}
    said = "caption is read of 'caption', and not of 'text'; name another by caption="
    assert [(one.kind, one.detail) for one in data.issues] == [("several columns", said)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: read(pd.DataFrame({"x": [1]})), "no column is called image or the like; there are x"),
        (lambda: read(pd.DataFrame({"image": ["no/such.jpg"], "caption": ["a"]})), "row 0: .*no such file, and"),
        (
            lambda: read(pd.DataFrame({"image": [np.zeros(4)], "caption": ["a"]})),
            r"row 0: column 'image' \(image=\): an array of float64 and shape \(4,\) is no picture",
        ),
        (lambda: read([picture(1)], captions=["a", "b"]), "^captions= has 2 entries for 1 picture; give a list"),
        (lambda: read(pd.DataFrame({"image": []}), layout="table"), "layout: is of files; leave it out"),
        (lambda: read(".", image="image"), "image: names a column of a DataFrame or a Dataset; of files leave it out"),
        (lambda: read(7), "path= got int, which is no collection; give a path, a DataFrame"),
        (lambda: read([np.zeros((2, 2, 3))]), "picture 0: an array of float64 and shape .* is no picture"),
        (lambda: read(["https://a.b/c.jpg"], captions=["x"]), "is an address; download the pictures first"),
        (
            lambda: read([picture(1)] * 3, captions="abc"),
            "^captions= is one text for 3 pictures; give a list with one or several texts for each$",
        ),
        (lambda: read([picture(1)], captions="a"), "^captions= is one text for 1 picture; give a list"),
        (lambda: read([picture(1)] * 2, captions=b"ab"), "^captions= got bytes; give a list"),
        (lambda: read([picture(1)], captions={"a": "b"}), "^captions= got dict; give a list"),
        (lambda: read([picture(1)], captions=5), "^captions= got int; give a list"),
        (lambda: read([picture(1)], captions=np.array("a")), "^captions= got ndarray; give a list"),
        (lambda: read([picture(1)], captions=pd.DataFrame({"a": ["b"]})), "^captions= got DataFrame; give a list"),
        (lambda: read([picture(1)], captions=[b"a"]), "picture 0: captions= holds bytes; decode them to text"),
        (lambda: read([picture(1)], captions=[["a", b"b"]]), "picture 0: captions= holds bytes; decode them to text"),
        (lambda: read([picture(1)], captions=[5]), "picture 0: captions= holds int; give text"),
        (
            lambda: read(pd.DataFrame({"image": [picture(1)], "said": [b"a"]}), caption="said"),
            r"row 0: column 'said' \(caption=\) holds bytes; decode them to text",
        ),
        (lambda: read("scenes", captions=3), "^captions= got int; of a folder give the path of the file"),
        (lambda: read("scenes", captions=["a"]), "^captions= got list; of a folder give the path of the file"),
        (lambda: read("scenes", captions=""), "^captions= is empty; give the file"),
        (lambda: read(["a", "b"], captions="x"), "is the file of one folder, and a list of 2 is given; give one"),
        (lambda: read(["nix.png"] * 9, captions=["a"] * 9), "; give pictures, or the whole paths of their files$"),
        (lambda: read([5]), "picture 0: got int, which is no picture, and no other picture is there; give pictures"),
        (lambda: read(None), "^path= got None, which is no collection"),
        (lambda: read(b"scenes"), "^path= got bytes, which is no collection"),
        (lambda: read(np.zeros((1, 2, 2, 3))), "^path= got ndarray, which is no collection"),
        (lambda: from_lists("abc"), "^pictures= got str; give a list of pictures"),
        (lambda: from_lists([picture(1)] * 2, splits="train"), "^splits= is one text for 2 pictures; give a list"),
        (lambda: read(FRAME, caption=5), r"there is no column '5' \(caption=\); there are image, caption"),
        (lambda: read(FRAME, caption=5.5), "^caption= got float; give the name of a column"),
        (lambda: read(FRAME, image=["image"]), "^image= got list; give the name of a column"),
        (lambda: read(FRAME, captions=["a"]), "^captions=: is of folders and lists; name a column .* by caption="),
        (lambda: read([]), "^path= is an empty list; give at least one folder or picture"),
        (lambda: read([], captions=[]), "the list of pictures is empty; give at least one picture"),
        (lambda: read(pd.DataFrame()), "the DataFrame has no rows; give one with a row for each picture"),
        (lambda: read(FRAME[:0]), "the DataFrame has no rows; give one with a row for each picture"),
        (lambda: read(datasets.Dataset.from_dict({"image": []})), "the Dataset has no rows; give one with a row"),
        (lambda: read(datasets.DatasetDict()), "the DatasetDict has no rows; give one with a row"),
        (lambda: read([picture(1), np.zeros((2, 2, 3))]), r"picture 1: .*; give uint8 \(height, width, 3\)"),
        (lambda: read([np.zeros((0, 2, 3), np.uint8)]), r"picture 0: an array of uint8 and shape \(0, 2, 3\) is no"),
        (
            lambda: read([b"garbage", b""]),
            "picture 0: the bytes begin with b'garbage', as no known picture format does, and no other picture",
        ),
        (lambda: read(["a\nb"], captions=["x"]), r"picture 0: 'a\\nb': no such file"),
    ],
)  # fmt: skip
def test_mistakes_have_one_line(arguments: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        arguments()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I", "F", "CMYK"])
def test_a_picture_is_encoded_without_a_loss(mode: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    image = Image.fromarray(pixels)
    image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 200) if mode == "I;16" else image.convert(mode)
    make = EncodedOnce(image)
    back = Image.open(io.BytesIO(make()))
    assert back.mode == image.mode
    assert np.array_equal(np.asarray(back), np.asarray(image))
    assert make() is make()


def test_an_orientation_is_carried_out_as_that_of_a_file_is(tmp_path: Path) -> None:
    turned = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(tmp_path / "a.png", exif=exif)
    data = read([Image.open(tmp_path / "a.png")], captions=["x"])
    assert np.array_equal(load_array(data.paths[0]), load_array(tmp_path / "a.png"))


@pytest.mark.slow
def test_another_process_gives_the_same_bytes_and_hash() -> None:
    code = (
        "import hashlib, numpy as np; from PIL import Image; from rungwise.data import read;"
        "d = read([Image.fromarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3))], captions=['a']);"
        "print(d.content_hash(), hashlib.sha256(d.paths[0].read()).hexdigest())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(found) == 1


def test_a_folder_of_others_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    data = read([picture(1)], captions=["a"])
    with pytest.raises(UserError, match="mine.txt"):
        data.save(tmp_path)
    assert data.save(tmp_path / "data") == data.save(tmp_path / "data") == tmp_path / "data"
    with pytest.raises(UserError, match="has no pictures to save"):
        ImageCaptions(("a",), ("b",), np.array([0])).save(tmp_path / "none")


def test_pictures_in_memory_say_so() -> None:
    (one,) = read([file_of(1)]).paths
    assert isinstance(one, MemoryPicture)
    assert str(one) == "picture '0' in memory"
    assert from_dataset(datasets.Dataset.from_dict({"image": [b"x"]})).captions == ()


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_frame"), ("datasets", "to_dataset")])
def test_what_is_not_installed_is_named(library: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    extra = {"pandas": "frames", "datasets": "datasets"}[library]
    with pytest.raises(UserError, match=rf"needs {library}; run: pip install 'rungwise\[{extra}\]'"):
        getattr(read([picture(1)], captions=["a"]), method)()


def test_copies_bring_the_pictures_along(tmp_path: Path) -> None:
    picture(5).save(tmp_path / "a.png")
    pixels = np.full((2, 3, 3), 7, np.uint8)
    data = read([picture(1), Image.open(tmp_path / "a.png"), pixels, file_of(9, "JPEG")], captions=list("abcd"))
    table = read(datasets.Dataset.from_dict({"image": [file_of(1), file_of(2)], "caption": ["a", "b"]}))
    for one in (data, table):
        for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            same(again, one)
            assert [each.read() for each in again.paths] == [each.read() for each in one.paths]


def test_no_value_is_no_caption() -> None:
    captions = ["a", float("nan"), None, pd.NA, ["b", float("nan"), None, "c"], np.float64("nan")]
    data = read([picture(shade) for shade in range(6)], captions=captions)
    assert (data.captions, data.image_of_caption.tolist()) == (("a", "b", "c"), [0, 4, 4])


def test_captions_are_whatever_can_be_listed() -> None:
    pictures = [picture(1), picture(2)]
    for captions in (("a", "b"), iter(["a", "b"]), pd.Series(["a", "b"]), np.array(["a", "b"])):
        assert read(pictures, captions=captions).captions == ("a", "b")


def test_columns_may_be_called_by_numbers() -> None:
    frame = pd.DataFrame({0: [picture(1)], 1: ["a"], 2: ["b"]})
    assert read(frame, image=0, caption=1).captions == ("a",)
    assert read(frame, image=0, caption=[2, 1]).captions == ("b", "a")
    assert read(frame, image=0, caption=np.array([2, 1])).captions == ("b", "a")


def test_a_collection_is_given_back() -> None:
    data = read([picture(1)], captions=["a"])
    assert read(data) is data
    for options in ({"layout": "table"}, {"captions": ["b"]}, {"split": "train"}, {"exclude": "*.png"}):
        with pytest.raises(UserError, match=f"^{next(iter(options))}=: this collection was read before; leave it out"):
            read(data, **options)


def test_bytes_that_can_be_no_picture_become_an_issue() -> None:
    forms = [file_of(1, form) for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")]
    data = read([*forms, b"%PDF-1.7 and more of it"], captions=["a"] * 9)
    found = [one for one in data.issues if one.kind == "no known picture format"]
    assert [one.where for one in found] == ["memory, picture 8"]
    assert found[0].detail == "the bytes begin with b'%PDF-1.7 and', as no known picture format does"
    assert len(data.paths) == 9
