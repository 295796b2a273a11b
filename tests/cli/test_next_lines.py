"""Every next step that a command prints works, for every kind of collection.

Tests no module: the lines come from several commands.
"""

import io
import json
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.cli import main
from rungwise.serving import ServerSettings
from tests.cli.train.test_command import TINY
from tests.published import Published

COUNT = 60
NAMES = [f"{number}.png" for number in range(COUNT)]
CAPTIONS = [f"{('red', 'green', 'blue')[number % 3]} square number {number}" for number in range(COUNT)]
SPLITS = ["train"] * 30 + ["val"] * 20 + ["test"] * 10
SMALL = {
    "image": [*TINY[4:6], *TINY[:4]],
    "text": ["--model.text.kind", "bag_of_words", "--model.text.min-count", "1", "--model.text-head", "linear"],
    "run": ["--model.dimension", "16", "--batch-size", "8", "--epochs", "1"],
}


def picture(number: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (32, 32), (250 * (number % 3 == 0), 4 * number, 250 * (number % 3 == 2))).save(file, "PNG")
    return file.getvalue()


def bare(folder: Path) -> None:
    for number, name in enumerate(NAMES):
        (folder / name).write_bytes(picture(number))


def table(folder: Path, splits: list[str]) -> None:
    bare(folder)
    rows = "".join(f"{name},{text},{split}\n" for name, text, split in zip(NAMES, CAPTIONS, splits, strict=True))
    (folder / "captions.csv").write_text(f"image,caption,split\n{rows}")


def karpathy(folder: Path) -> None:
    bare(folder)
    images = [
        {"filename": name, "split": split, "sentences": [{"raw": text}]}
        for name, text, split in zip(NAMES, CAPTIONS, SPLITS, strict=True)
    ]
    (folder / "dataset_squares.json").write_text(json.dumps({"images": images}))


def coco(folder: Path) -> None:
    bare(folder)
    for split in ("train", "val"):
        mine = [number for number in range(COUNT) if (SPLITS[number] == "train") == (split == "train")]
        said = {
            "images": [{"id": number, "file_name": NAMES[number]} for number in mine],
            "annotations": [{"id": number, "image_id": number, "caption": CAPTIONS[number]} for number in mine],
        }
        (folder / f"captions_{split}2017.json").write_text(json.dumps(said))


def flickr(folder: Path) -> None:
    bare(folder)
    pairs = zip(NAMES, CAPTIONS, strict=True)
    (folder / "squares.token.txt").write_text("".join(f"{name}#0\t{text}\n" for name, text in pairs))


def webdataset(folder: Path, before: str = "") -> None:
    with tarfile.open(folder / "squares-train-000000.tar", "w") as archive:
        for number, text in enumerate(CAPTIONS):
            for ending, data in (("png", picture(number)), ("txt", text.encode())):
                member = f"{before}{number}.{ending}"
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    images = [{"bytes": picture(number), "path": name} for number, name in enumerate(NAMES)]
    pq.write_table(pa.table({"image": images, "caption": CAPTIONS, "split": SPLITS}), folder / "squares.parquet")


def features(folder: Path) -> None:
    np.save(folder / "features.npy", np.random.default_rng(0).normal(size=(COUNT, 8)).astype("float32"))
    rows = "".join(f"{name},{text}\n" for name, text in zip(NAMES, CAPTIONS, strict=True))
    (folder / "captions.csv").write_text(f"image,caption\n{rows}")


def precomputed(folder: Path) -> None:
    for split in ("train", "dev", "test"):
        rows = np.random.default_rng(len(split)).normal(size=(COUNT, 8)).astype("float32")
        np.save(folder / f"{split}_ims.npy", rows)
        (folder / f"{split}_caps.txt").write_text("\n".join(CAPTIONS))


KINDS: dict[str, Callable[[Path], None]] = {
    "folder": bare,
    "table": lambda folder: table(folder, SPLITS),
    "table without splits": lambda folder: table(folder, [""] * COUNT),
    "table of a test alone": lambda folder: table(folder, ["test"] * COUNT),
    "table of a validation alone": lambda folder: table(folder, ["val"] * COUNT),
    "karpathy": karpathy,
    "coco": coco,
    "flickr8k": flickr,
    "webdataset": webdataset,
    "webdataset of names with dots": lambda folder: webdataset(folder, "plan 1."),
    "parquet": parquet,
    "features": features,
    "precomputed": precomputed,
}


def next_lines(said: str) -> list[str]:
    """Commands in what was printed: lines of their own, and those behind "next:", which "or" parts."""
    found = []
    for line in said.splitlines():
        behind = line.partition("next: ")[2] or (line if line.startswith("  rungwise ") else "")
        found += [one.strip() for one in behind.split("   or   ") if "rungwise " in one]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_next_line_works(
    kind: str,
    published: Published,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "my squares"
    folder.mkdir()
    KINDS[kind](folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rungwise.jobs.index._build.DEFAULT", f"hf:{published.siglip2}")
    served: list[ServerSettings] = []
    monkeypatch.setattr("rungwise.serving._server.serve", lambda *_, settings, **__: served.append(settings))
    by_key = ["--key", "stem"] if "dots" in kind else []
    assert main(["inspect", str(folder), *by_key]) == 0
    waiting, done = next_lines(capsys.readouterr().out), []
    assert waiting or kind == "table of a validation alone"
    while waiting:
        line = waiting.pop(0)
        words = shlex.split(line)[1:]
        if line in done or "INDEX" in words or "MODEL" in words:
            continue
        if words[0] == "train":  # as printed, but for a network that is trained in seconds
            small = SMALL["text"] + SMALL["run"] + ([] if kind in ("features", "precomputed") else SMALL["image"])
            words += small
        assert main(words) == 0, (line, capsys.readouterr().err)
        done.append(line)
        waiting += next_lines(capsys.readouterr().out)
    verbs = {shlex.split(line)[1] for line in done}
    if kind not in ("folder", "table of a validation alone"):
        assert verbs >= {"train", "evaluate"}
    if kind in ("table", "karpathy", "coco", "parquet", "precomputed"):  # 20 captions to learn an end from
        assert "calibrate" in verbs
    assert verbs >= {"index", "search"}
