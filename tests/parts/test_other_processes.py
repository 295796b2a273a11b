"""Parts of one's own where other processes do the work: workers of Ray, torchrun, a watch of a folder, and a server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.data import read
from rungwise.evaluation import Result
from rungwise.index import Index
from rungwise.models import load
from rungwise.parts import naming
from rungwise.relevance import load as load_degrees
from rungwise.scenes import SceneConfig, generate
from rungwise.serving import Client
from tests.index.update.test_workers import rows_of
from tests.parts.test_named_modules import EXAMPLES
from tests.training.distributed.test_processes import finished, torchrun

pytestmark = pytest.mark.slow

WORDS = """
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from rungwise.relevance import TfIdf
from rungwise.relevance.config import SourceConfig


@dataclass(frozen=True)
class FarWordsConfig(SourceConfig):
    IN_SHARDS: ClassVar[bool] = True
    kind: Literal["far_words"] = field(default="far_words", init=False)

    def make(self, data, building):
        return TfIdf(data.captions, data.image_of_caption, images=len(data))
"""
PICTURES = 24


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts of the page under names of their own, a collection that only one of them reads, and a model."""
    folder = tmp_path_factory.mktemp("apart")
    for name, text in EXAMPLES.items():
        far = re.sub(r'"(softest_hinge|colour_grid|listed|rounded|RootRank)"', r'"Far_\1"', text)
        far = re.sub(r"\bColourGrid\(", "FarColourGrid(", re.sub(r"class (?!ColourGrid\()", "class Far", far))
        (folder / f"far_{name}.py").write_text(far, encoding="utf-8")
    (folder / "far_words.py").write_text(WORDS, encoding="utf-8")
    generate(folder / "scenes", SceneConfig(pictures=PICTURES, captions_per_picture=2, side=32, seed=1))
    data = read(folder / "scenes")
    (folder / "notes").mkdir()
    (folder / "scenes" / "pictures").rename(folder / "notes" / "pictures")
    names = [Path(one).name for one in data.image_ids]
    rows = [f"{names[image]}|{text}" for image, text in zip(data.image_of_caption, data.captions, strict=True)]
    (folder / "notes" / "list.txt").write_text("\n".join(rows), encoding="utf-8")
    words = ["train", "vsepp", str(folder / "notes"), "--data.layout", "Far_listed", "--out", str(folder / "run")]
    assert main([*words, *ENCODER, *SHORT, *named(folder, "listed", "colour_grid")]) == 0
    return folder


ENCODER = ("--model.image.kind", "Far_colour_grid", "--model.image.cells", "2", "--model.dimension", "8")
SHORT = ("--epochs", "1", "--learning-rates", "1e-3", "--schedule", "phases", "--device", "cpu")


def named(place: Path, *names: str) -> list[str]:
    return [word for name in names for word in ("--module", str(place / f"far_{name}.py"))]


def test_workers_of_ray_encode_by_an_encoder_of_ones_own(place: Path, tmp_path: Path, two_workers: None) -> None:
    words = ["index", str(place / "notes"), "--layout", "Far_listed", "--model", str(place / "run" / "model")]
    words += named(place, "listed", "colour_grid")
    assert main([*words, "--out", str(tmp_path / "one")]) == 0
    assert main([*words, "--out", str(tmp_path / "shared"), "--ray", "--workers", "2", "--device", "cpu"]) == 0
    one, shared = (Index.open(tmp_path / name) for name in ("one", "shared"))
    assert len(shared) == PICTURES
    assert rows_of(shared) == rows_of(one)


def test_workers_of_ray_rank_by_a_source_of_ones_own(place: Path, tmp_path: Path, two_workers: None) -> None:
    words = ["relevance", "far_words", str(place / "notes"), "--layout", "Far_listed", "--top", "3"]
    words += named(place, "listed", "words")
    assert main([*words, "--out", str(tmp_path / "one")]) == 0
    assert main([*words, "--out", str(tmp_path / "shared"), "--shards", "2", "--ray", "local"]) == 0
    one, shared = (load_degrees(tmp_path / name).topk(3, "i2t") for name in ("one", "shared"))
    for expected, found in zip(one, shared, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_workers_of_ray_measure_by_a_measure_of_ones_own(place: Path, tmp_path: Path, two_workers: None) -> None:
    words = ["evaluate", str(place / "run" / "model"), str(place / "notes"), "--layout", "Far_listed", "--split", "all"]
    words += ["--measures", "R@1", "Far_RootRank", *named(place, "listed", "colour_grid", "root_rank")]
    assert main([*words, "--out", str(tmp_path / "one.json")]) == 0
    assert main([*words, "--out", str(tmp_path / "shared.json"), "--shards", "2", "--ray", "local"]) == 0
    one, shared = (Result.from_json(tmp_path / f"{name}.json") for name in ("one", "shared"))
    assert shared["i2t/Far_RootRank"] == one["i2t/Far_RootRank"] > 0


def test_processes_of_torchrun_train_by_a_loss_and_an_encoder_of_ones_own(place: Path, tmp_path: Path) -> None:
    run, parts = tmp_path / "run", named(place, "listed", "softest_hinge", "colour_grid")
    words = ["vsepp", str(place / "notes"), "--data.layout", "Far_listed", "--loss.kind", "far_softest_hinge", *ENCODER]
    asked = ["train", *words, "--step", "global_negatives", "--out", str(run), *SHORT, *parts]
    status, _, errors = finished(torchrun(*asked))
    assert status == 0, errors
    assert load(run / "model").config.image.kind == "Far_colour_grid"
    again = ["train", str(run / "config.yaml"), "--out", str(run), "--resume", "--epochs", "2", "--device", "cpu"]
    status, _, errors = finished(torchrun(*again))
    assert status != 0
    assert "what a folder names is not imported" in errors
    status, _, errors = finished(torchrun(*again, *parts))
    assert status == 0, errors
    assert len((run / "history.jsonl").read_text().splitlines()) == 2


class Command:
    """A command in a process of its own, of which the lines are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def line(self, words: str) -> str:
        """The next line that has these words; fails if the command ends before."""
        assert self._process.stdout is not None
        before = []
        for line in self._process.stdout:
            before.append(line)
            if words in line:
                return line
        raise AssertionError(f"no line with {words!r} came:\n{''.join(before)}")


@contextmanager
def running(*words: str) -> Iterator[Command]:
    """A command that is ended by Ctrl-C; its errors come among its lines."""
    # Who runs these tests in the background has their Ctrl-C ignored, and programs that they start as well.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}\nfrom rungwise.cli import main\nraise SystemExit(main())"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield Command(process)
            os.kill(process.pid, signal.SIGINT)
            said, _ = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0, said


@pytest.fixture
def notes(place: Path, tmp_path: Path) -> Path:
    """A collection that a test changes."""
    shutil.copytree(place / "notes", tmp_path / "notes")
    return tmp_path / "notes"


def put(notes: Path, text: str) -> None:
    """Write the list whole at once, so that it is never seen half written."""
    (notes.parent / "list.txt").write_text(text, encoding="utf-8")
    (notes.parent / "list.txt").replace(notes / "list.txt")


def test_a_watch_goes_on_with_a_reader_an_encoder_and_a_store_of_ones_own(place: Path, notes: Path) -> None:
    index, listed = notes.parent / "index", (notes / "list.txt").read_text(encoding="utf-8")
    first = listed.partition("|")[0]
    parts = named(place, "listed", "colour_grid", "rounded")
    broken = place / "far_listed.py"
    words = ["index", str(notes), "--layout", "Far_listed", "--model", str(place / "run" / "model"), "--watch"]
    with running(*words, "--store", "Far_rounded", "--out", str(index), *parts) as watch:
        watch.line("watching")
        shutil.copy(notes / "pictures" / first, notes / "pictures" / "new.png")
        put(notes, f"{listed}\nnew.png|A new thing.")
        watch.line("1 added, 0 changed, 0 removed")
        (notes / "list.txt").unlink()
        assert f"({broken}, line " in watch.line("the reader of the layout 'Far_listed': its code fails")
        put(notes, listed)
        watch.line("0 added, 0 changed, 1 removed")
    with running("serve", str(index), "--follow", "--no-browser", "--port", "0", *parts) as server:
        client = Client(server.line("pictures at http").split()[3])
        assert client.about()["pictures"] == PICTURES
        assert client.search("a circle", everything=True)["hits"]
        put(notes, f"{listed}\nnew.png|A new thing.")
        server.line("1 added, 0 changed, 0 removed")
    with naming([str(place / "far_rounded.py")]):
        assert len(Index.open(index)) == PICTURES + 1
