"""An evaluation in shards, here or by workers, finds what one in one piece finds, to the bit."""

import json
import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.core.formats import NpyRows
from rungwise.evaluation import EvaluationSettings, RankedLists, Shards, evaluate
from rungwise.evaluation import _sharding as sharding
from rungwise.evaluation.inputs import read_embeddings
from rungwise.metrics import _sources as sources
from rungwise.relevance import TfIdf, load
from rungwise.relevance.precomputed import SavedDegrees

MEASURES = ("R@1", "R@5", "R@10", "MedR", "MeanR", "rsum", "MAP", "CS@100", "NCS@10", "nDCG@10", "Spearman")


def world(folder: Path, images: int = 60, captions: int = 150) -> dict[str, object]:
    """Embeddings with ties in files, captions in no order, none of some images, and degrees in a file."""
    draw = np.random.default_rng(0)
    image, text = (draw.integers(-1, 2, (count, 5)).astype(np.float16) for count in (images, captions))
    image[:, 0] = text[:, 0] = 1
    np.save(folder / "i.npy", image)
    np.save(folder / "t.npy", text)
    np.save(folder / "r.npy", np.round(draw.random((images, captions)), 1).astype(np.float32))
    owners = draw.integers(0, images - 3, captions)
    (folder / "owners.json").write_text(json.dumps(owners.tolist()))
    return {
        "image_embeddings": np.load(folder / "i.npy", mmap_mode="r"),
        "text_embeddings": np.load(folder / "t.npy", mmap_mode="r"),
        "image_of_caption": owners,
        "relevance": np.load(folder / "r.npy", mmap_mode="r"),
        "measures": MEASURES,
    }


def assert_same(one, other):
    assert one.plain() == other.plain()
    for name in one.numbers:
        if "/" in name:
            np.testing.assert_array_equal(one.per_query(name), other.per_query(name), strict=True)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_find_what_one_piece_finds(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TILE", (8, 16))
    told: list[tuple[int, int]] = []
    given = world(tmp_path)
    shards = Shards(count, progress=lambda done, total: told.append((done, total)))
    assert_same(evaluate(**given, settings=EvaluationSettings(shards=shards)), evaluate(**given))
    assert told == [(done, 2 * count) for done in range(1, 2 * count + 1)]


def test_folds_and_positives_and_a_matrix_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TILE", (64, 512))
    draw = np.random.default_rng(0)
    image, text = draw.standard_normal((5000, 3)), draw.standard_normal((25_000, 3))
    folds = {"image_embeddings": image, "text_embeddings": text, "image_of_caption": np.repeat(np.arange(5000), 5)}
    assert_same(
        evaluate(**folds, protocol="coco-1k-5fold", settings=EvaluationSettings(shards=Shards(3))),
        evaluate(**folds, protocol="coco-1k-5fold"),
    )
    given = world(tmp_path)
    matrix = np.asarray(given["image_embeddings"], np.float32) @ np.asarray(given["text_embeddings"], np.float32).T
    np.save(tmp_path / "s.npy", matrix)
    scores = {"similarity": np.load(tmp_path / "s.npy", mmap_mode="r"), "image_of_caption": given["image_of_caption"]}
    assert_same(evaluate(**scores, settings=EvaluationSettings(shards=Shards(7))), evaluate(**scores))


@pytest.mark.slow
def test_workers_of_ray_find_the_same(tmp_path: Path, two_workers: None) -> None:
    given = world(tmp_path, images=2100, captions=9000)
    assert_same(evaluate(**given, settings=EvaluationSettings(shards=Shards(2, "local"))), evaluate(**given))


@pytest.fixture
def stored(tmp_path: Path) -> SavedDegrees:
    texts = [f"{first} {second}" for first in ("a", "b", "c") for second in ("dog", "cat")] * 4
    TfIdf(texts, np.repeat(np.arange(8), 3)).save(tmp_path / "degrees")
    return load(tmp_path / "degrees")


def test_saved_degrees_are_sent_as_files(tmp_path: Path, stored: SavedDegrees) -> None:
    sent = pickle.dumps(stored)
    assert tmp_path.name.encode() in sent
    assert stored._values.tobytes() not in sent
    np.testing.assert_array_equal(pickle.loads(sent).dense(), stored.dense())


@pytest.mark.slow
def test_workers_read_saved_degrees(stored: SavedDegrees, two_workers: None) -> None:
    draw = np.random.default_rng(0)
    given = {
        "image_embeddings": draw.random((8, 4)),
        "text_embeddings": draw.random((24, 4)),
        "image_of_caption": np.repeat(np.arange(8), 3),
        "relevance": stored,
        "measures": ("R@1", "nDCG@3"),
    }
    assert_same(evaluate(**given, settings=EvaluationSettings(shards=Shards(2, "local"))), evaluate(**given))


class Deadly:
    """Degrees whose first reader is killed while it reads."""

    def __init__(self, place: Path, degrees: np.ndarray, parent: int) -> None:
        self.place, self.degrees, self.parent, self.shape = place, degrees, parent, degrees.shape

    def block(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        if os.getpid() != self.parent and not self.place.exists():
            self.place.touch()
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()
        return self.degrees[images][:, captions]


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path, two_workers: None) -> None:
    given = world(tmp_path)
    given["relevance"] = Deadly(tmp_path / "killed", np.array(given["relevance"]), os.getpid())
    found = evaluate(**given, settings=EvaluationSettings(shards=Shards(2, "local")))
    assert (tmp_path / "killed").exists()
    assert_same(found, evaluate(**given))


@pytest.mark.slow
def test_what_a_worker_refuses_is_one_line(tmp_path: Path, two_workers: None) -> None:
    given = world(tmp_path)
    degrees = np.array(given["relevance"])
    degrees[3, 4] = np.nan
    with pytest.raises(UserError, match="^relevance, row 3: a value is nan; every value must be a finite number$"):
        evaluate(**given | {"relevance": degrees}, settings=EvaluationSettings(shards=Shards(2, "local")))


def test_files_are_read_in_parts_and_sent_as_paths(tmp_path: Path) -> None:
    given = world(tmp_path)
    found = read_embeddings(tmp_path / "i.npy", stays_in_file=True)
    assert isinstance(found.vectors, NpyRows)
    assert len(pickle.dumps(found.vectors)) < 500
    np.testing.assert_array_equal(found.vectors[5:9], given["image_embeddings"][5:9])
    assert found.norms == read_embeddings(tmp_path / "i.npy").norms
    np.save(tmp_path / "i.npy", np.ones((3, 5), np.float16))
    with pytest.raises(UserError, match=r"i.npy: another file stands there by now; leave it as it is, and run again"):
        found.vectors[:2]
    (tmp_path / "i.npy").unlink()
    with pytest.raises(UserError, match=r"i.npy: cannot be read any more \(.*\); run again"):
        found.vectors[:2]


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(UserError, match="shards must be at least 1, got 0"):
        Shards(0)
    lists = RankedLists({"i2t": [[0, 1]]}, (1, 2))
    for scores in (lists, lambda images, captions: np.zeros((len(images), len(captions)))):
        with pytest.raises(UserError, match="shards are cut from embeddings or from a similarity matrix"):
            evaluate(similarity=scores, image_of_caption=[0, 0], settings=EvaluationSettings(shards=Shards(2)))


def prints_and_writes_the_same(more: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world(folder)
    command = ["evaluate", "--image-embeddings", str(folder / "i.npy"), "--text-embeddings", str(folder / "t.npy")]
    command += ["--image-of-caption", str(folder / "owners.json"), "--relevance", str(folder / "r.npy")]
    command += ["--measures", *MEASURES, "--format", "csv", "--out"]
    said = []
    for name, way in (("whole", []), ("parts", more)):
        assert main([*command, str(folder / name), *way]) == 0
        said.append(capsys.readouterr().out)
    assert said[0]
    assert said[0] == said[1]
    assert (folder / "whole").read_bytes() == (folder / "parts").read_bytes()


def test_the_command_prints_and_writes_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prints_and_writes_the_same(["--shards", "3"], tmp_path, capsys)


@pytest.mark.slow
def test_the_command_does_so_by_workers(two_workers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prints_and_writes_the_same(["--ray"], tmp_path, capsys)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--report", "r.html"), "--report and --shards: a report looks at all scores in one piece; leave one of them"),
        (("--rerank", "model"), "--rerank and --shards: two models rank in one piece; leave one of them out"),
    ],
)
def test_what_is_done_in_one_piece_is_refused(
    more: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "model", "photos", "--shards", "2", *more]) == 2
    assert why in capsys.readouterr().err


def test_products_of_a_shard_take_as_many_threads_as_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharding, "measure_shard", lambda *_: sharding.threads_of_products())
    before = sharding.threads_of_products()
    assert [sharding.measured_with((None, None, threads), None) for threads in (1, 2)] == [1, 2]
    assert sharding.threads_of_products() == before
