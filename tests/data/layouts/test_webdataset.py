import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from rungwise.core import UserError, limited
from rungwise.data import ImageCaptions, inspect, read
from rungwise.data.files import TarMember
from rungwise.data.layouts import Key
from rungwise.data.layouts import _webdataset as webdataset
from tests.odd_files import on_posix


def jpeg(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (side, 0, 0)).save(file, "JPEG")
    return file.getvalue()


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    return info, data


def write(path: Path, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def sample(key: str, side: int, *captions: str) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [member(f"{key}.jpg", jpeg(side)), member(f"{key}.txt", "\n".join(captions).encode())]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_shards_of_several_splits(tmp_path: Path, form: int) -> None:
    long = "folder/" * 12 + "a-name-that-is-longer-than-its-field-in-a-header-of-the-first-kind"
    if form == tarfile.USTAR_FORMAT:
        long = "short"
    write(
        tmp_path / "pets-train-000000.tar",
        *sample("dog", 10, "A dog.", "", "A pup."),
        member("cat.PNG", jpeg(11)),
        member("cat.cls", b"7\n"),
        member("cat.json", json.dumps({"caption": "A cat.", "captions": ["Ein Kätzchen."], "width": 3}).encode()),
        form=form,
    )
    write(tmp_path / "pets-train-000001.tar", *sample(long, 12), member("__meta__.json", b"{}"), form=form)
    write(tmp_path / "val" / "00000.tar", *sample("cow", 13, "A cow."), form=form)
    data = read(tmp_path)
    assert (data.layout, [issue.kind for issue in data.issues]) == ("webdataset", ["empty caption"])
    assert data.image_ids == ("dog", "cat", long, "cow")
    assert data.captions == ("A dog.", "A pup.", "A cat.", "Ein Kätzchen.", "A cow.")
    assert data.image_of_caption.tolist() == [0, 0, 1, 1, 3]
    assert (data.splits, data.labels) == (("train", "train", "train", "val"), ((), ("7",), (), ()))
    for picture, side in zip(data.paths, (10, 11, 12, 13), strict=True):
        assert isinstance(picture, TarMember)
        assert picture.read() == jpeg(side)
    assert read(tmp_path, captions_only=True).paths == ()
    assert read(tmp_path / "val" / "00000.tar").image_ids == ("cow",)


def test_a_caption_that_stands_in_both_files_counts_once(tmp_path: Path) -> None:
    said = json.dumps({"caption": "A dog. ", "captions": ["Another."], "url": "...", "similarity": 0.3}).encode()
    write(tmp_path / "00000.tar", member("0.jpg", jpeg(4)), member("0.json", said), member("0.txt", b"A dog.\n"))
    assert read(tmp_path).captions == ("A dog.", "Another.")


def test_one_name_in_two_shards(tmp_path: Path) -> None:
    for shard in ("00000", "00001"):
        write(tmp_path / f"{shard}.tar", *sample("dog", 10, f"Of {shard}."), *sample(shard, 11))
    data = read(tmp_path)
    assert data.image_ids == ("00000/dog", "00000", "00001/dog", "00001")
    assert data.captions == ("Of 00000.", "Of 00001.")


def test_what_is_odd_is_counted(tmp_path: Path) -> None:
    link = member("link.jpg", kind=tarfile.SYMTYPE)
    link[0].linkname = "/etc/passwd"
    write(
        tmp_path / "00000.tar",
        *sample("dog", 10, "A dog."),
        member("alone.txt", b"No picture."),
        link,
        member("hard.jpg", kind=tarfile.LNKTYPE),
        member("device.jpg", kind=tarfile.CHRTYPE),
        member("pipe.jpg", kind=tarfile.FIFOTYPE),
        member("folder", kind=tarfile.DIRTYPE),
        member("bad.json", b"{"),
        member("bad.jpg", jpeg(12)[:100]),
        member("torn.txt", b"\xff\xfe"),
        member("torn.jpg", jpeg(13)),
        member("._dog.jpg", b"of a Mac"),
        member("README", b"no suffix"),
        member("weights.pth", b"something else"),
    )
    data = read(tmp_path)
    assert data.image_ids == ("dog", "bad", "torn")
    assert [issue.kind for issue in data.issues] == [
        *["not a regular file"] * 4, "malformed text", "malformed text", "missing picture", "files of other kinds",
    ]  # fmt: skip
    assert data.issues[-2].detail == "no picture named 'alone'; left out: 'No picture.'"
    assert data.issues[-1].detail == "1 .pth, 1 without an ending; a sample is a picture with .txt, .json or .cls"
    assert inspect(data).kinds["unreadable picture"] == 1


def test_names_are_names_and_nothing_is_written(tmp_path: Path) -> None:
    names = ["../../escape", "/absolute", "a\nb\x1b[31m", "deep/../er/x"]
    write(tmp_path / "data" / "00000.tar", *(one for name in names for one in sample(name, 10, "A dog.")))
    before = sorted(tmp_path.rglob("*"))
    data = read(tmp_path / "data")
    assert data.image_ids == ("../../escape", "/absolute", r"a\nb\x1b[31m", "deep/../er/x")
    assert sorted(tmp_path.rglob("*")) == before
    assert all(picture.read() == jpeg(10) for picture in data.paths if isinstance(picture, TarMember))


def test_other_archives_in_a_folder_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(jpeg(10))
    write(tmp_path / "backup.tar", member("notes.txt", b"x"))
    (tmp_path / "broken.tar").write_bytes(b"no archive" * 200)
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("folder", ("a.jpg",))
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("unreadable file", "broken.tar"),
        ("not read", "1 other file (.tar), such as backup.tar"),
    ]


def cut(data: bytes) -> bytes:
    return data[: data.rindex(b"last.jpg") + 600]


def without_end(data: bytes) -> bytes:
    return data[: data.rindex(b"last.jpg") + 100]


def of_another_checksum(data: bytes) -> bytes:
    return data.replace(b"last.jpg", b"l\xffst.jpg")


def with_a_size(size: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        at = data.rindex(b"last.jpg")
        block = bytearray(data[at : at + 512])
        block[124:136] = size
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        return data[:at] + bytes(block) + data[at + 512 :]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut, "last.jpg: the archive ends within it; copy the archive again"),
        (without_end, "not a readable tar archive"),
        (of_another_checksum, r"not a readable tar archive \(what stands at \d+ is no header of a member\)"),
        (with_a_size(b"77777777777\0"), "last.jpg: the archive ends within it"),
        (with_a_size(b"\xff" * 10 + b"\xf0\0"), "claims a size below nothing|ends within it|not a readable"),
        (with_a_size(b"\x80" + b"\x7f" * 11), "ends within it|not a readable"),
        (with_a_size(b"what is this"), "not a readable tar archive"),
        (lambda data: b"\x1f\x8b" + data, "not a readable tar archive"),
        (lambda data: b"", "not a readable tar archive"),
    ],
)
def test_damaged_archives_are_one_line(tmp_path: Path, change: Callable[[bytes], bytes], said: str) -> None:
    file = write(tmp_path / "00000.tar", *sample("dog", 10, "A dog."), member("last.jpg", jpeg(60)))
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(UserError, match=said) as caught:
        read(file)
    assert "\n" not in str(caught.value)


def with_a_member(kind: bytes) -> Callable[[bytes], bytes]:
    """A last member of 3 MiB of zeros."""
    info = tarfile.TarInfo("long.jpg")
    info.type, info.size = kind, 3 << 20
    return lambda data: (
        data[: -(-len(data.rstrip(b"\0")) // 512) * 512] + info.tobuf(tarfile.GNU_FORMAT) + bytes(4 << 20)
    )


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_of_any_length_are_not_read(tmp_path: Path, kind: bytes) -> None:
    file = write(tmp_path / "00000.tar", *sample("dog", 10, "A dog."), form=tarfile.GNU_FORMAT)
    file.write_bytes(with_a_member(kind)(file.read_bytes()))
    with pytest.raises(UserError, match="the header of a member claims more than 1.0 MiB; write the archive anew"):
        read(file)


def test_sparse_members_are_left_out(tmp_path: Path) -> None:
    file = write(tmp_path / "00000.tar", *sample("dog", 10, "A dog."), form=tarfile.GNU_FORMAT)
    file.write_bytes(with_a_member(tarfile.GNUTYPE_SPARSE)(file.read_bytes()))
    assert [issue.kind for issue in read(file).issues] == ["not a regular file"]


def test_headers_upon_headers(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 10
    block = info.tobuf(tarfile.GNU_FORMAT) + b"name".ljust(512, b"\0")
    (tmp_path / "00000.tar").write_bytes(block * 3000 + bytes(1024))
    with pytest.raises(UserError, match="not a readable tar archive") as caught:
        read(tmp_path / "00000.tar")
    assert "\n" not in str(caught.value)


def test_limits_of_texts_and_of_pictures(tmp_path: Path) -> None:
    file = write(tmp_path / "00000.tar", *sample("dog", 10, "A dog." * 100), *sample("cat", 10, "A cat." * 100))
    with limited(text_bytes=700), pytest.raises(UserError, match="its texts: .*RUNGWISE_MAX_TEXT_BYTES"):
        read(file)
    with limited(picture_bytes=100):
        assert inspect(read(file)).kinds["unreadable picture"] == 2


def test_no_picture_at_all_and_packed_archives(tmp_path: Path) -> None:
    file = write(tmp_path / "00000.tar", member("a.txt", b"A dog."))
    with pytest.raises(UserError, match="no usable caption, first missing picture"):
        read(file)
    (tmp_path / "a.tar.gz").write_bytes(b"")
    with pytest.raises(UserError, match="a compressed archive, in which no picture can be read by its place"):
        read(tmp_path / "a.tar.gz")


def pairs(data: ImageCaptions) -> dict[str, list[str]]:
    """Name of the member that each picture is, and its captions."""
    names = [picture.name for picture in data.paths if isinstance(picture, TarMember)]
    return {name: [data.captions[at] for at in own] for name, own in zip(names, data.captions_of_image, strict=True)}


def left_out(data: ImageCaptions) -> set[tuple[str, str]]:
    """Kind and member of each issue, with the caption that it shows."""
    return {
        (issue.kind, issue.where.partition(", ")[2] + issue.detail.partition("; left out:")[2]) for issue in data.issues
    }


PLANS = [*sample("Plan 1.5 north", 4, "north side"), *sample("Plan 1.5 south", 5, "south side")]


def test_names_with_further_dots_wait_for_an_order(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tar", *PLANS)
    data = read(file)
    assert pairs(data) == {}
    sides = ("north", "south")
    assert left_out(data) == {
        *(("picture left out", f"Plan 1.5 {side}.jpg") for side in sides),
        *(("caption left out", f"Plan 1.5 {side}.txt '{side} side'") for side in sides),
    }
    assert all('--key stem (of train --data.key stem, in Python key="stem")' in issue.detail for issue in data.issues)
    stem = read(file, key="stem")
    assert pairs(stem) == {f"Plan 1.5 {side}.jpg": [f"{side} side"] for side in sides}
    assert (stem.image_ids, stem.issues) == (("Plan 1.5 north", "Plan 1.5 south"), ())


def test_the_picture_is_the_member_that_the_key_names(tmp_path: Path) -> None:
    more = [member("x.depth.png", jpeg(4)), member("x.en.txt", b"in English"), member("y.seg.png", jpeg(5))]
    data = read(write(tmp_path / "a.tar", *more, *sample("x", 6, "the photo"), member("y.txt", b"of y")))
    assert pairs(data) == {"x.jpg": ["the photo"]}
    assert left_out(data) == {
        ("picture left out", "x.depth.png"),
        ("caption left out", "x.en.txt 'in English'"),
        ("picture left out", "y.seg.png"),
        ("missing picture", "y.txt 'of y'"),
    }
    data = read(write(tmp_path / "b.tar", *PLANS, *sample("Plan 1", 6, "whole")))
    assert pairs(data) == {"Plan 1.jpg": ["whole"]}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([*sample("y", 4, "old"), *sample("y", 5, "new")], {"y.jpg", "y.txt 'old'", "y.txt 'new'"}),
        ([*sample("y", 4, "a text"), member("y.PNG", jpeg(5))], {"y.jpg", "y.PNG", "y.txt 'a text'"}),
        ([*sample("y", 4, "one", "two"), member("y.txt", b"three")], {"y.jpg", "y.txt 'one', 'two'", "y.txt 'three'"}),
        ([*sample("y", 4), member("y.json", b'{"caption": "one"}'), member("y.json", b'{"captions": ["two"]}')],
            {"y.jpg", "y.txt", "y.json 'one'", "y.json 'two'"}),
        ([*sample("y", 4, "a text"), member("y.cls", b"1"), member("y.cls", b"2")], {"y.jpg", "y.txt 'a text'"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["dot", "stem"])
def test_what_may_belong_to_two_pictures_is_left_out(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]], expected: set[str], key: Key
) -> None:
    data = read(write(tmp_path / "a.tar", *members, *sample("z", 9, "of z")), key=key)
    assert pairs(data) == {"z.jpg": ["of z"]}
    assert {place for _, place in left_out(data)} == expected


def test_letters_forms_and_folders_make_other_keys(tmp_path: Path) -> None:
    names = ["x", "X", "Zo\u00eb", "Zoe\u0308", "f/x", "./x", " x", "x ", "a\\x", "f.1/x", "__x"]
    data = read(write(tmp_path / "a.tar", *(one for name in names for one in sample(name, 4, f"of {name}"))))
    assert pairs(data) == {f"{name}.jpg": [f"of {name}".strip()] for name in names}
    assert (data.image_ids, data.issues) == (tuple(names), ())


def test_a_link_is_no_picture_and_no_second_one(tmp_path: Path) -> None:
    links = [member(f"{name}.jpg", kind=tarfile.SYMTYPE) for name in "xy"]
    members = [*links, member("x.png", jpeg(4)), member("x.txt", b"of x"), member("y.txt", b"of y")]
    data = read(write(tmp_path / "a.tar", *members, *sample("z", 5, "of z")))
    assert pairs(data) == {"z.jpg": ["of z"]}
    assert {("caption left out", "x.txt 'of x'"), ("missing picture", "y.txt 'of y'")} <= left_out(data)


def test_a_key_over_two_shards_is_two_samples(tmp_path: Path) -> None:
    write(tmp_path / "0.tar", member("x.jpg", jpeg(4)))
    write(tmp_path / "1.tar", member("x.txt", b"of x"), *sample("y", 5, "of y"))
    data = read(tmp_path)
    assert pairs(data) == {"x.jpg": [], "y.jpg": ["of y"]}
    assert left_out(data) == {("missing picture", "x.txt 'of x'")}


def test_a_folder_in_one_shard_may_be_called_as_another_shard(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", *sample("b/x", 4, "one"))
    write(tmp_path / "b.tar", *sample("x", 5, "two"))
    write(tmp_path / "c.tar", *sample("x", 6, "three"))
    data = read(tmp_path)
    assert data.image_ids == ("a.tar/b/x", "b.tar/x", "c.tar/x")
    assert (data.captions, data.image_of_caption.tolist()) == (("one", "two", "three"), [0, 1, 2])


def test_captions_of_json_are_texts(tmp_path: Path) -> None:
    values = {"a": None, "b": 3, "c": [None, "of c", {"raw": "x"}], "d": "", "e": []}
    members = [member(f"{name}.jpg", jpeg(4)) for name in values]
    members += [member(f"{name}.json", json.dumps({"caption": said}).encode()) for name, said in values.items()]
    data = read(write(tmp_path / "a.tar", *members, member("f.json", b"[3]"), member("f.jpg", jpeg(5))))
    assert {name: texts for name, texts in pairs(data).items() if texts} == {"c.jpg": ["of c"]}
    assert [(issue.kind, issue.where.rpartition("/a.tar, ")[2], issue.detail) for issue in data.issues] == [
        ("malformed text", "b.json, caption", "no text; left out: '3'"),
        ("malformed text", "c.json, caption", """no text; left out: "{'raw': 'x'}\""""),
        ("malformed text", "f.json", "no text; left out: '3'"),
        *(("empty caption", f"{name}.json", "") for name in "acd"),
    ]


@pytest.mark.parametrize(
    ("said", "captions"),
    [
        (["A dog.", "A pup."], ("A dog.", "A pup.")),
        ("A dog.", ("A dog.",)),
        ({"Caption": "A dog.", "text": "words on it"}, ("A dog.",)),
        ({"description": "A dog.", "title": "Rex"}, ("A dog.",)),
        ({"text": {"language": "en"}, "txt": ["A dog.", "A pup."]}, ("A dog.", "A pup.")),
        ({"title": "A dog."}, ("A dog.",)),
        ({"text": 3}, ()),
    ],
)
def test_captions_of_json_of_every_form(tmp_path: Path, said: object, captions: tuple[str, ...]) -> None:
    write(tmp_path / "a.tar", member("0.jpg", jpeg(4)), member("0.json", json.dumps(said).encode()))
    data = read(tmp_path)
    assert (data.captions, data.issues) == (captions, ())


def test_further_fields_of_json_are_columns(tmp_path: Path) -> None:
    notes = {"key": "0", "status": "success", "sha256": "e3b0", "md5": "d41d", "exif": "{}", "error_message": None}
    fields = {"url": "x.org/0.jpg", "width": 20, "similarity": 0.3, "nsfw": False, "tags": ["dogs"], "title": "Rex"}
    more = {"attrs": {"season": {"name": "Fall"}}, "boxes": [{"x": 3}]}
    others = {"key": "1", "caption": "A cat.", "width": 30, "description": "It sleeps."}
    members = [member(f"{name}.jpg", jpeg(4)) for name in "01"]
    members += [
        member("0.json", json.dumps({"caption": "A dog.", **notes, **fields, **more}).encode()),
        member("0.txt", b"A dog."), member("1.json", json.dumps(others).encode()),
    ]  # fmt: skip
    data = read(write(tmp_path / "a.tar", *members))
    assert data.captions == ("A dog.", "A cat.")
    assert data.columns == {
        "url": ("x.org/0.jpg", None), "width": (20, 30), "similarity": (0.3, None), "nsfw": (False, None),
        "tags": (("dogs",), None), "title": ("Rex", None), "attrs.season.name": ("Fall", None), "key": (None, "1"),
        "description": (None, "It sleeps."),
    }  # fmt: skip
    [issue] = data.issues
    assert issue.kind == "column left out"
    assert "'boxes'" in issue.detail


def test_an_archive_of_such_names_does_not_displace_pictures(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", *PLANS)
    assert read(tmp_path).layout == "webdataset"
    (tmp_path / "a.jpg").write_bytes(jpeg(10))
    assert read(tmp_path).layout == "folder"
    assert len(read(tmp_path, key="stem")) == 2


@on_posix
def test_members_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    clear = webdataset._members

    def counted(archive: tarfile.TarFile, file: object) -> object:
        for one in clear(archive, file):  # type: ignore[arg-type]
            yield one
            kept.append(len(archive.members))  # type: ignore[attr-defined]

    monkeypatch.setattr(webdataset, "_members", counted)
    read(write(tmp_path / "00000.tar", *(one for n in range(50) for one in sample(f"{n}", 4, "A dog."))))
    assert max(kept) == 1
