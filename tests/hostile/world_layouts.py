"""One small good example of each layout of others: COCO, Wikipedia, labels, datasets, WordNet, questions."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np

from tests import benchmark_folders, odd_folder
from tests.hostile import world


def make(root: Path) -> None:
    """All of them; the pictures of the world must be drawn already."""
    _make_coco(root / "coco")
    _make_wikipedia(root / "wikipedia")
    _make_labelled(root / "labelled")
    pictures = [(root / "csv" / name).read_bytes() for name in world.NAMES]
    _make_datasets(root / "datasets", pictures)
    _make_webdataset(root / "webdataset", pictures)
    _make_text_files(root / "text_files")
    _make_wordnet(root / "wordnet")
    _make_benchmarks(root)


def _make_benchmarks(root: Path) -> None:
    """A folder of each layout, and a result."""
    from rungwise.evaluation.benchmarks import evaluate_benchmark, read_benchmark

    for layout, make in benchmark_folders.FOLDERS.items():
        make(root / layout)
    benchmark_folders.winoground(root / "winoground_parquet", parquet=True)
    found = evaluate_benchmark(read_benchmark(root / "mmeb"), lambda question: np.arange(len(question.candidates)))
    (root / "benchmark_result").mkdir()
    found.to_json(root / "benchmark_result/result.json")


def _make_coco(folder: Path) -> None:
    world.draw_pictures(folder / "train2017")
    (folder / "annotations").mkdir()
    images = [{"id": at, "file_name": name, "width": 24, "height": 24} for at, name in enumerate(world.NAMES)]
    texts = [{"id": 100 + at, "image_id": at, "caption": text} for at, text in enumerate(world.CAPTIONS)]
    said = {"info": {"year": 2017}, "licenses": [], "images": images, "annotations": texts}
    (folder / "annotations/captions_train2017.json").write_text(json.dumps(said))


def _make_wikipedia(folder: Path) -> None:
    from scipy.io import savemat

    folder.mkdir()
    draw = np.random.default_rng(4)
    widths = {"I": 6, "T": 3}
    counts = {"tr": 5, "te": 3}
    arrays = {f"{side}_{end}": draw.random((counts[end], widths[side])) for end in counts for side in widths}
    savemat(folder / "raw_features.mat", arrays, do_compression=True)
    for part, end in (("trainset", "tr"), ("testset", "te")):
        lines = [f"text{end}{at}-1\timage{end}{at}\t{at % 2 + 1}" for at in range(counts[end])]
        (folder / f"{part}_txt_img_cat.list").write_text("\n".join(lines) + "\n")
    (folder / "categories.list").write_text("art\nbiology\n")


def _make_labelled(folder: Path) -> None:
    """A file of each ending, and labels as an indicator with names."""
    from scipy.io import savemat

    folder.mkdir()
    draw = np.random.default_rng(5)
    savemat(folder / "train_images.mat", {"train_images": draw.normal(size=(8, 6))})
    np.save(folder / "test_images.npy", draw.normal(size=(4, 6)))
    for split, rows in (("train", 8), ("test", 4)):
        counts = draw.integers(0, 9, (rows, 3)).tolist()
        (folder / f"{split}_texts.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in counts))
        classes = np.eye(3, dtype=int)[np.arange(rows) % 3].tolist()
        (folder / f"{split}_labels.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in classes))
        (folder / f"{split}_ids.txt").write_text("".join(f"{split}-{row}\n" for row in range(rows)))
    (folder / "classes.txt").write_text("red\ngreen\nblue\n")


def _make_datasets(folder: Path, pictures: list[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "data").mkdir(parents=True)
    cells = [{"bytes": data, "path": name} for data, name in zip(pictures, world.NAMES, strict=True)]
    table = pa.table({"image": cells, "caption": [[text] for text in world.CAPTIONS]})
    pq.write_table(table, folder / "data/train-00000-of-00001.parquet")


def _make_webdataset(folder: Path, pictures: list[bytes]) -> None:
    folder.mkdir()
    with tarfile.open(folder / "colours-train-000000.tar", "w") as archive:
        for at, (data, text) in enumerate(zip(pictures, world.CAPTIONS, strict=True)):
            for suffix, content in (("png", data), ("txt", text.encode()), ("json", json.dumps({"at": at}).encode())):
                member = tarfile.TarInfo(f"{at:04d}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def _make_text_files(folder: Path) -> None:
    """Captions, XMP and Google Takeout's JSON beside the pictures, and patterns of what is left out."""
    world.draw_pictures(folder)
    stems = [Path(name).stem for name in world.NAMES]
    for stem, text in zip(stems, world.CAPTIONS, strict=True):
        (folder / f"{stem}.txt").write_text(f"{text}\n")
    (folder / f"{stems[0]}.xmp").write_bytes(
        odd_folder.xmp(odd_folder.in_languages("title", x_default="Red"), xmp_Rating="4")
    )
    said = odd_folder.takeout(world.NAMES[1], description="Seen at noon.", people=[{"name": "Ada"}])
    (folder / f"{world.NAMES[1]}.json").write_text(said)
    (folder / f"{stems[2]}.json").write_text(json.dumps({"caption": "A third.", "attrs": {"colour": "blue"}}))
    (folder / ".rungwiseignore").write_text("*.tmp\ndrafts/\n")


def _make_wordnet(folder: Path) -> None:
    """Index files of WordNet's dictionary."""
    folder.mkdir()
    entries = {
        "noun": (
            "cat n 1 1 @ 1 1 02121808",
            "dog n 2 2 @ ~ 2 1 02084071 10114209",
            "domestic_dog n 1 1 @ 1 0 02084071",
        ),
        "verb": ("race v 1 1 @ 1 0 02082690", "sprint v 1 1 @ 1 0 02082690"),
        "adj": ("crimson a 1 1 & 1 0 00381097", "red a 1 1 & 1 1 00381097"),
        "adv": ("quickly r 1 1 ! 1 1 00085811",),
    }
    for kind, lines in entries.items():
        text = "".join(f"{line}  \n" for line in ("  1 This software and database is being provided to you.", *lines))
        (folder / f"index.{kind}").write_text(text)
