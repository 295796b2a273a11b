from typing import ClassVar

import numpy as np
import pytest
from pandas import DataFrame

import rungwise
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import Issue, from_lists, read, with_splits
from rungwise.evaluation import Result, evaluate
from rungwise.evaluation.inputs import read_embeddings
from rungwise.jobs.evaluation import _inputs as inputs
from rungwise.metrics import _sources as sources
from rungwise.models import DualEncoder, EncodedImages, PairScorer
from rungwise.similarity import Order


def run(world, *arguments):
    folder, _ = world
    return main(["evaluate", *(str(one).replace("DIR", str(folder)) for one in arguments)])


MODEL = ("model", "DIR/scenes", "--split", "all")
VECTORS = ("--image-embeddings", "DIR/image.npy", "--text-embeddings", "DIR/text.npy")


class TextLengths(PairScorer):
    """Longer texts fit wider files; no vectors."""

    fingerprint = "text lengths"
    provenance: ClassVar[dict[str, int]] = {"seed": 7}

    def block(self, images, captions):
        sizes = np.array([image.stat().st_size for image in images], dtype=np.float32)
        return -np.abs(sizes[:, None] / 10 - [len(text) for text in captions]).astype(np.float32)


class FileLengths(DualEncoder):
    """A vector of the first bytes of a file and of a text, compared by order; the first picture cannot be read."""

    fingerprint, dimension, similarity = "file lengths", 8, Order()
    provenance: ClassVar[dict[str, int]] = {}

    def encode_image(self, pictures, *, progress=None, cache=None):
        kept = np.arange(1, len(pictures))
        vectors = np.array([list(path.read_bytes()[40:48]) for path in pictures[1:]], dtype=np.float32)
        return EncodedImages(vectors, kept, (Issue("picture cannot be read", str(pictures[0]), ""),))

    def encode_text(self, texts):
        return np.array([list(text.encode()[:8]) for text in texts], dtype=np.float32)


class Unreadable(FileLengths):
    """Reads no picture."""

    def encode_image(self, pictures, *, progress=None, cache=None):
        issues = tuple(Issue("picture cannot be read", str(one), "is no picture") for one in pictures)
        return EncodedImages(np.empty((0, 8), np.float32), np.empty(0, np.int64), issues)


def test_any_pair_scorer_is_evaluated(world, tmp_path, monkeypatch, capsys):
    _, data = world
    monkeypatch.setattr("rungwise.models._loading.load", lambda name, device, **_: TextLengths())
    outputs = ("--out", tmp_path / "r.json", "--report", tmp_path / "r.html")
    assert run(world, *MODEL, *outputs) == 0, capsys.readouterr().err
    found = Result.from_json(tmp_path / "r.json")
    scores = TextLengths().block(data.paths, data.captions)
    assert found.numbers == evaluate(similarity=scores, image_of_caption=data.image_of_caption).numbers
    assert (found.model_hash, found.seed) == ("text lengths", 7)


def test_a_dual_encoder_s_similarity_is_what_is_ranked_by(world, tmp_path, monkeypatch, capsys):
    _, data = world
    monkeypatch.setattr("rungwise.models._loading.load", lambda name, device, **_: FileLengths())
    assert run(world, *MODEL, "--out", tmp_path / "r.json") == 0
    assert "1 of 30 pictures could not be read and are left out" in capsys.readouterr().out
    found, read = Result.from_json(tmp_path / "r.json"), data.select(np.arange(1, 30))
    images, texts = FileLengths().encode_image(data.paths).vectors, FileLengths().encode_text(read.captions)
    scores = -(np.maximum(0, texts[None] - images[:, None]) ** 2).sum(axis=2)
    assert found.numbers == evaluate(similarity=scores, image_of_caption=read.image_of_caption).numbers
    assert found.data_hash == read.content_hash()


def test_the_device_that_is_asked_for_is_taken(world, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        "rungwise.models._loading.load", lambda name, device, **_: asked.append(device) or TextLengths()
    )
    given = (*MODEL, "--measures", "R@1")
    assert run(world, *given, "--device", "cpu") == 0
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert run(world, *given) == 0
    assert asked == ["cpu", "cuda"]
    assert "computing on cuda" in capsys.readouterr().out
    assert run(world, *given, "--device", "abacus") == 2
    assert run(world, *VECTORS, "DIR/scenes", "--split", "all", "--device", "cpu") == 2
    assert "--device changes nothing without a model" in capsys.readouterr().err


def test_embeddings_are_read_and_looked_through_once(world, tmp_path, monkeypatch):
    read, looked_at = [], []
    monkeypatch.setattr(
        inputs, "read_embeddings", lambda *given, **how: read.append(given) or read_embeddings(*given, **how)
    )
    monkeypatch.setattr(sources, "_norms", lambda *given: looked_at.append(given))
    outputs = ("--report", tmp_path / "r.html", "--false-negatives", tmp_path / "f.csv", "--intervals")
    assert run(world, *VECTORS, "DIR/scenes", "--split", "all", *outputs) == 0
    assert run(world, *VECTORS, "--captions-per-image", 3) == 0
    assert [path.name for path, _ in read] == 2 * ["image.npy", "text.npy"]
    assert not looked_at


@pytest.fixture
def vectors(world):
    """Vectors of both sides, and an order of the pictures that is not theirs."""
    folder, data = world
    images, texts = (np.load(folder / f"{name}.npy") for name in ("image", "text"))
    return images, texts, np.random.default_rng(0).permutation(len(data))


def test_ids_of_one_side_count_whatever_the_other_side_is(world, vectors, tmp_path):
    folder, data = world
    images, texts, order = vectors
    whole = {"data": data, "split": "all", "measures": ["rsum"], "quiet": True}
    right = rungwise.evaluate(**whole, image_embeddings=images, text_embeddings=texts)
    by_column = DataFrame({"id": data.image_ids, "vector": list(images)}).iloc[order]
    by_column.to_parquet(tmp_path / "images.parquet")
    by_index = DataFrame(images, index=data.image_ids).iloc[order]
    for shuffled in (tmp_path / "images.parquet", by_column, by_index):
        for other in (folder / "text.npy", texts):
            found = rungwise.evaluate(**whole, image_embeddings=shuffled, text_embeddings=other)
            assert found.numbers == right.numbers
    scores = DataFrame(images @ texts.T, index=data.image_ids, columns=data.caption_ids).iloc[order]
    assert rungwise.evaluate(**whole, similarity=scores).numbers == right.numbers
    with pytest.raises(UserError, match=r"image_embeddings \(by the ids in its index.* no vector for 30 of 30 images"):
        rungwise.evaluate(**whole, image_embeddings=DataFrame(images).iloc[order], text_embeddings=texts)
    with pytest.raises(UserError, match=r"similarity \(by the ids of its columns.* no column for 90 of 90 captions"):
        rungwise.evaluate(**whole, similarity=scores.rename(columns=str.upper))


def test_a_function_of_similarity_counts_for_files(world, vectors):
    folder, data = world
    images, texts, _ = vectors
    whole = {"data": data, "split": "all", "quiet": True, "similarity_function": lambda some, others: -some @ others.T}
    files = {"image_embeddings": folder / "image.npy", "text_embeddings": folder / "text.npy"}
    found = rungwise.evaluate(**whole, **files)
    assert found.numbers == rungwise.evaluate(**whole, image_embeddings=images, text_embeddings=texts).numbers


def test_arrays_of_other_counts_are_refused_as_files_are(world, vectors):
    _, data = world
    images, texts, _ = vectors
    line = f"image_embeddings: 30 vectors for {len(data.split('test'))} images of split 'test' (split= all takes every"
    with pytest.raises(UserError) as refused:
        rungwise.evaluate(data=data, image_embeddings=images, text_embeddings=texts)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"similarity": np.zeros(4), "captions_per_image": 2},
            "must have two axes, (images, captions), got shape (4,)",
        ),
        ({"similarity": [[1, 2], [3]], "captions_per_image": 1}, "similarity: rows of different lengths"),
        (
            {"similarity": np.eye(2), "captions_per_image": 1, "image_of_caption": [0, 1]},
            "captions_per_image= and image_of_caption= both say whose a caption is; give one of them",
        ),
    ],
)
def test_scores_without_data_are_refused_in_one_line(given, line):
    with pytest.raises(UserError) as refused:
        rungwise.evaluate(**given)
    assert line in str(refused.value)


def test_a_collection_of_which_no_picture_can_be_read_is_refused(tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_text("hello")
    data = read([tmp_path / "a.png", tmp_path / "b.png"], captions=["a", "b"])
    with pytest.raises(UserError, match=r"memory: none of 2 pictures could be read; the first: .*a\.png: "):
        rungwise.evaluate(Unreadable(), data, split="all")


def test_a_split_that_was_not_drawn_is_refused_with_the_remedy(world):
    _, data = world
    # A split is drawn by the id, which is else the path of the picture: another one in every run of the tests.
    alone = from_lists([data.paths[0]], captions=["a"], ids=["a picture"])
    assert with_splits(alone).splits != ("test",)
    with pytest.raises(UserError, match=r"memory: has no splits.* of its 1 pictures none is 'test'; split= all takes"):
        rungwise.evaluate(FileLengths(), alone)
