from typing import ClassVar

import numpy as np

from rungwise.cli import main
from rungwise.data import Issue
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
