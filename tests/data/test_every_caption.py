"""Every reader of pictures and captions: no caption stands with a picture that it was not given with.

What is given is a small truth: pictures of odd names, some missing, with captions, some without. Each layout is written
from it, and read.

Also tests rungwise.data.layouts._rivals.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.data.layouts import Key
from tests.odd_files import on_posix

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = on_posix  # where a name may hold any character but "/"


@dataclass(frozen=True)
class Shot:
    """A picture as it was given: its number is its content.

    Attributes:
        number: Number of the picture.
        name: Path below the folder.
        captions: Texts, each of which stands once in the truth and names the picture's number.
        there: Whether there is a file of it.
    """

    number: int
    name: str
    captions: tuple[str, ...]
    there: bool = True

    @property
    def content(self) -> bytes:
        return b"picture %d" % self.number


STEMS = [
    "1", "x", "X", "x.y", "x.y z", "x.z", " x", "x ", "x#0", 'x"y', "x'y", "a\\x", "x,y", "x;y", "x\ty", "x\x1b[31m",
    "Zo\u00eb", "Zoe\u0308", "stra\u00dfe", "strasse", "x" * 200, "\u5317", ".x", "-", "__x__",
]  # fmt: skip
FOLDERS = ["", "", "a/", "b/", "a/b/", "A/", "a.1/", "train/", "test/"]
ENDINGS = [".jpg", ".jpg", ".png", ".JPG", ".png.jpg"]


@st.composite
def truths(draw: st.DrawFn) -> list[Shot]:
    names = draw(
        st.lists(
            st.tuples(st.sampled_from(FOLDERS), st.sampled_from(STEMS), st.sampled_from(ENDINGS)),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    shots = []
    for number, parts in enumerate(names):
        count = draw(st.integers(0, 3))
        there = draw(st.booleans()) or not number
        # A picture without captions may be what another name means, since nothing else is called by it.
        count = max(count, 1) if there else count
        captions = tuple(f"caption {number}.{at} of it" for at in range(count))
        shots.append(Shot(number, "".join(parts), captions, there))
    again = draw(st.lists(st.sampled_from(shots), max_size=2, unique=True))  # given once more, with another caption
    return shots + [replace(one, captions=(f"caption {one.number}.9 of it",)) for one in again]


def put_pictures(root: Path, shots: Sequence[Shot]) -> None:
    for shot in shots:
        if shot.there:
            (root / shot.name).parent.mkdir(parents=True, exist_ok=True)
            (root / shot.name).write_bytes(shot.content)


def rows_of(shots: Sequence[Shot]) -> list[dict[str, str]]:
    """A row for each caption, those of one picture apart from each other."""
    rows = [(at, {"image": shot.name, "caption": text}) for shot in shots for at, text in enumerate(shot.captions)]
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


def write_csv(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    with (root / "captions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["image", "caption"])
        writer.writeheader()
        writer.writerows(rows_of(shots))
    return root / "captions.csv"


def write_two_tables(root: Path, shots: Sequence[Shot]) -> Path:
    """Of which one may have to be left out, since it names pictures that the other one names too."""
    write_csv(root, shots[::2])
    write_json_lines(root, shots[1::2])
    return root


def write_json_lines(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    rows = [{"image": shot.name, "captions": [*shot.captions, None][: len(shot.captions) + 1]} for shot in shots]
    (root / "captions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return root / "captions.jsonl"


def write_table(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    pq.write_table(pa.Table.from_pylist(rows_of(shots)), root / "captions.parquet")
    return root / "captions.parquet"


def write_json(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    (root / "captions.json").write_text(json.dumps(rows_of(shots)))
    return root / "captions.json"


def write_json_by_picture(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    members = [f"{json.dumps(shot.name)}: {json.dumps(shot.captions)}" for shot in shots]
    (root / "captions.json").write_text(f"{{{', '.join(members)}}}")
    return root / "captions.json"


def write_token_file(root: Path, shots: Sequence[Shot]) -> Path:
    assume(not any("\t" in shot.name for shot in shots))
    put_pictures(root, shots)
    numbers = Counter[str]()
    lines = []
    for shot in shots:
        for text in shot.captions:
            lines.append(f"{shot.name}#{numbers[shot.name]}\t{text}\n")
            numbers[shot.name] += 1
    (root / "Flickr8k.token.txt").write_text("".join(lines), encoding="utf-8")
    there = [f"{shot.name}\n" for shot in shots if shot.there]
    (root / "Flickr_8k.trainImages.txt").write_text("".join(there), encoding="utf-8")
    return root / "Flickr8k.token.txt"


def write_karpathy(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    images: list[dict[str, Any]] = []
    for shot in shots:
        folder, _, last = shot.name.rpartition("/")
        sentences = [{"raw": text} for text in shot.captions]
        images.append(
            {"filename": last, "sentences": sentences, "split": "train"} | ({"filepath": folder} if folder else {})
        )
    (root / "dataset_own.json").write_text(json.dumps({"images": images}))
    return root / "dataset_own.json"


def write_coco(root: Path, shots: Sequence[Shot]) -> Path:
    put_pictures(root, shots)
    images = [{"id": shot.number, "file_name": shot.name} for shot in shots]
    texts = [{"image_id": shot.number, "caption": text} for shot in shots for text in shot.captions]
    (root / "captions_own.json").write_text(json.dumps({"images": images, "annotations": texts}))
    return root / "captions_own.json"


def write_coco_of_two_splits(root: Path, shots: Sequence[Shot]) -> Path:
    """Two files, each of which counts its pictures from 0."""
    put_pictures(root, shots)
    for split, part in (("train", shots[::2]), ("val", shots[1::2])):
        number_of = {one.name: number for number, one in enumerate(part)}
        images = [{"id": number, "file_name": name} for name, number in number_of.items()]
        texts = [{"image_id": number_of[one.name], "caption": text} for one in part for text in one.captions]
        (root / f"captions_{split}.json").write_text(json.dumps({"images": images, "annotations": texts}))
    return root


def write_metadata(root: Path, shots: Sequence[Shot]) -> Path:
    """A table in each folder, which names the pictures of that folder, as Hugging Face's imagefolder has it."""
    put_pictures(root, shots)
    rows: dict[PurePosixPath, list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(shots):
        path = PurePosixPath(row["image"])
        rows[path.parent].append({"file_name": path.name, "text": row["caption"]})
    for folder, own in rows.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "metadata.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in own))
    return root


def write_pipes(root: Path, shots: Sequence[Shot]) -> Path:
    """As Flickr30k's table is published, in which no blank around a name counts and no mark quotes."""
    assume(not any(shot.name != shot.name.strip() or '"' in shot.name for shot in shots))
    put_pictures(root, shots)
    lines = [f"{row['image']}| {number}| {row['caption']}\n" for number, row in enumerate(rows_of(shots))]
    (root / "results.csv").write_text("".join(["image_name| comment_number| comment\n", *lines]), encoding="utf-8")
    return root / "results.csv"


def write_text_files(root: Path, shots: Sequence[Shot]) -> Path:
    """A text beside each picture, and beside each that is missing."""
    # A text is of the picture that has its name, with or without an ending, whatever was meant.
    stems = {shot.number: PurePosixPath(shot.name).with_suffix("") for shot in shots}
    assume(len({*stems.values(), *(PurePosixPath(shot.name) for shot in shots)}) == 2 * len(stems))
    assume(not any(part.startswith(".") for stem in stems.values() for part in stem.parts))  # hidden, which is counted
    put_pictures(root, shots)
    for shot in shots:
        path = root / f"{stems[shot.number]}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(f"{text}\n" for text in shot.captions)
    return root


def write_shards(root: Path, shots: Sequence[Shot]) -> Path:
    """Two shards, with the text after its picture, before it, or in JSON."""
    # Members of one stem belong together, whatever was meant.
    stems = {shot.number: PurePosixPath(shot.name).with_suffix("") for shot in shots}
    assume(len(set(stems.values())) == len(stems))
    for shard in (0, 1):
        with tarfile.open(root / f"{shard}.tar", "w") as archive:
            for shot in shots[shard::2]:
                stem = str(PurePosixPath(shot.name).with_suffix(""))
                members = [(shot.name, shot.content)] if shot.there else []
                if shot.number % 3 == 2:
                    members.insert(0, (f"{stem}.json", json.dumps({"caption": shot.captions}).encode()))
                elif shot.captions:
                    members.insert(shot.number % 2, (f"{stem}.txt", "\n".join(shot.captions).encode()))
                for name, content in members:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return root


def write_packed(root: Path, shots: Sequence[Shot]) -> Path:
    """Two files, with names in the cells of the pictures."""
    for part, split in ((shots[::2], "train"), (shots[1::2], "test")):
        rows = [(shot, text) for shot in part for text in shot.captions or (None,)]
        cells = [{"bytes": shot.content if shot.there else None, "path": shot.name} for shot, _ in rows]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        columns = {"image": pa.array(cells, kind), "caption": pa.array([text for _, text in rows], pa.string())}
        pq.write_table(pa.table(columns), root / f"{split}-00000-of-00001.parquet", row_group_size=3)
    return root


def write_packed_with_ids(root: Path, shots: Sequence[Shot]) -> Path:
    """As that, with a column of ids in which pictures of different splits have the same number."""
    write_packed(root, shots)
    for path in root.glob("*.parquet"):
        table = pq.read_table(path)
        numbers = [int(PurePosixPath(cell["path"]).name.encode()[0]) % 3 for cell in table["image"].to_pylist()]
        pq.write_table(table.append_column("image_id", pa.array(numbers, pa.int64())), path)
    return root


LAYOUTS: dict[str, Callable[[Path, Sequence[Shot]], Path]] = {
    function.__name__.removeprefix("write_"): function
    for function in (
        write_csv, write_two_tables, write_json_lines, write_table, write_json, write_json_by_picture, write_token_file,
        write_karpathy, write_coco, write_coco_of_two_splits, write_metadata, write_pipes, write_text_files,
        write_shards, write_packed, write_packed_with_ids,
    )
}  # fmt: skip


def check(data: ImageCaptions, shots: Sequence[Shot], root: Path) -> None:
    """Each caption stands with its own picture, or in one issue, or in a file that is listed as left out."""
    found: Counter[str] = Counter()
    there = {shot.number: shot.there for shot in shots}
    pictures = data.paths or (None,) * len(data)
    for picture, own in zip(pictures, data.captions_of_image, strict=True):
        texts = [data.captions[at] for at in own]
        content = picture.read_bytes() if isinstance(picture, Path) else _bytes_of(picture)
        for text in texts:
            number = int(re.fullmatch(r"caption (\d+)\.\d+ of it", text)[1])  # type: ignore[index]
            assert content in (b"picture %d" % number, None), f"{text!r} stands with {content!r}"
            assert content is not None or not data.paths or not there[number]
        found.update(texts)
    for issue in data.issues:
        said, place = issue.detail, root / issue.where
        if "caption " not in said and place.suffix == ".parquet":
            said = " ".join(pq.read_table(place)["caption"].to_pylist())
        elif "caption " not in said and place.suffix in (".csv", ".json", ".jsonl", ".txt") and place.is_file():
            said = place.read_text(encoding="utf-8")
        found.update(re.findall(r"caption \d+\.\d+ of it", said))
    assert found == Counter(text for shot in shots for text in shot.captions)


def _bytes_of(picture: Any) -> bytes | None:
    """The content of a packed picture; None for an empty cell, or where a collection has no pictures."""
    if picture is None:
        return None
    try:
        return bytes(picture.read())
    except UserError:
        return None


def shot(number: int, name: str, count: int = 1, there: bool = True) -> Shot:
    return Shot(number, name, tuple(f"caption {number}.{at} of it" for at in range(count)), there)


def read_and_check(layout: str, key: Key, shots: list[Shot]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        asked = LAYOUTS[layout](root, shots)
        for path in {asked, root}:  # the file of captions as it is named, and as it is found
            refused = ""
            try:
                data = read(path, key=key)
            except UserError as error:  # of which nothing can be read
                refused = str(error)
            else:
                check(data, shots, root)
            refusals = "^$|nor any other that is named there|no usable caption|the file is empty"
            assert re.search(refusals, refused)


every_layout = pytest.mark.parametrize(
    ("layout", "key"), [*((layout, "dot") for layout in LAYOUTS), ("shards", "stem")]
)


@every_layout
@settings(max_examples=20)
@given(truths())
@example([shot(0, "a/1.jpg"), shot(1, "b/1.jpg", there=False), shot(2, "1.jpg", there=False)])
@example([shot(0, "1.jpg"), shot(1, "a/1.jpg", there=False), shot(2, "b/1.jpg", there=False)])
@example([shot(0, " x.jpg", 2), shot(1, "x.jpg", there=False), shot(2, "X.jpg", there=False)])
@example([shot(0, "x.jpg"), shot(1, "x.png.jpg"), shot(2, "x.y.jpg"), shot(3, "x.jpg.png", there=False)])
@example([shot(0, "Zo\u00eb.jpg"), shot(1, "Zoe\u0308.jpg", there=False)])
@example([shot(0, "train/1.jpg"), shot(1, "test/1.jpg", there=False)])
@example([shot(0, "train/1.jpg"), shot(1, "1.png", there=False), shot(2, "1.jpg", there=False)])
@example([shot(0, "x.JPG", there=False), shot(1, "x.jpg"), shot(2, "1.jpg"), shot(3, "X.jpg", there=False)])
@example([shot(0, "x.JPG", there=False), shot(1, "x.jpg"), shot(2, "1.jpg"), shot(2, "1.jpg"), shot(4, "2.jpg")])
def test_no_caption_stands_with_a_picture_that_it_was_not_given_with(layout: str, key: Key, shots: list[Shot]) -> None:
    read_and_check(layout, key, shots)


@pytest.mark.slow
@every_layout
@settings(max_examples=500)
@given(truths())
def test_nor_does_any_in_many_more_examples(layout: str, key: Key, shots: list[Shot]) -> None:
    read_and_check(layout, key, shots)


@settings(max_examples=30)
@given(truths(), st.randoms(use_true_random=False))
@example([shot(0, " x.jpg"), shot(1, "x.jpg", there=False)], Random(0))
def test_rows_of_features_keep_their_captions(shots: list[Shot], order: Random) -> None:
    """Where rows take the place of pictures: beside a table, as VSE++ publishes them, and with labels."""
    rows = list({one.name: one.number for one in shots if one.there}.items())
    order.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_csv(root, [replace(one, there=False) for one in shots])
        np.save(root / "features.npy", np.array([[number] for _, number in rows], np.float32))
        (root / "ids.txt").write_text("".join(f"{name}\n" for name, _ in rows))
        data = read(root)
        assert data.features is not None
        number_of = dict(rows)
        found = Counter(data.captions)
        for text, image in zip(data.captions, data.image_of_caption.tolist(), strict=True):
            assert text.startswith(f"caption {int(data.features[image][0])}.")
            assert data.features[image][0] == number_of[data.image_ids[image]]
        for issue in data.issues:
            found.update(re.findall(r"caption \d+\.\d+ of it", issue.detail))
        assert found == Counter(text for one in shots for text in one.captions)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.booleans(), st.sets(st.integers(0, 17)))
def test_precomputed_rows_keep_their_captions(counts: list[int], is_repeated: bool, empty: set[int]) -> None:
    owners = [image for image, count in enumerate(counts) for _ in range(count)]
    rows = owners if is_repeated else list(range(len(counts)))
    lines = ["" if at in empty else f"caption {owner}.{at} of it" for at, owner in enumerate(owners)]
    assume(any(lines))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        np.save(root / "dev_ims.npy", np.array([[row, 1] for row in rows], np.float32))
        (root / "dev_caps.txt").write_text("".join(f"{line}\n" for line in lines))
        (root / "dev_ids.txt").write_text("".join(f"id {owner}\n" for owner in owners))
        data = read(root)
        assert data.features is not None
        assert list(data.captions) == [line for line in lines if line]
        for text, image in zip(data.captions, data.image_of_caption.tolist(), strict=True):
            assert text.startswith(f"caption {int(data.features[image][0])}.")
        assert [issue.kind for issue in data.issues] == ["empty caption"] * lines.count("")
        labelled = root / "labelled"
        labelled.mkdir()
        for side in ("images", "texts"):
            np.save(labelled / f"test_{side}.npy", np.array([[row, 1] for row in range(len(counts))], np.float32))
        pairs = read(labelled)
        assert pairs.features is not None
        assert pairs.text_features is not None
        texts = [pairs.text_features[at][0] for at in range(len(counts))]
        assert texts == [pairs.features[image][0] for image in pairs.image_of_caption.tolist()]
