"""What readers say of good files, in a form that can be compared: any change that matters changes the answer."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError
from tests.hostile import world

Answer = dict[str, Any]


def digest(*arrays: Any) -> str:
    """Of shapes, types and values."""
    found = hashlib.sha256()
    for one in arrays:
        values = np.asarray(one)
        found.update(f"{values.shape} {values.dtype} ".encode() + values.tobytes())
    return found.hexdigest()


def of_collection(root: Path) -> Answer:
    """The collection, and what inspecting it finds."""
    from rungwise.data import inspect, read

    data = read(root)
    rows = [None if one is None else digest(one[:]) for one in (data.features, data.text_features)]
    main = [data.image_ids, data.captions, data.image_of_caption.tolist(), data.splits, rows, len(data.paths)]
    issues = [*data.issues, *inspect(data).odd]
    return {"main": main, "issues": len(issues)}


def of_model(folder: Path) -> Answer:
    model = world.model_in(folder)
    vectors = model.encode_text(["a red picture"])
    return {"main": [model.fingerprint, digest(vectors)]}


def of_published(source: str) -> Answer:
    """A model of others, on both sides."""
    from rungwise.models import load_dual_encoder

    model = load_dual_encoder(source, "cpu")
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    images = model.encode_image([_png(noise)]).vectors
    return {"main": [model.fingerprint, digest(model.encode_text(["a red picture"]), images)]}


def _png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def of_imported(root: Path, checkpoint: str, vocabulary: str) -> Answer:
    """A model of the VSE++ program."""
    from rungwise.models import import_vsepp

    model = import_vsepp(root / checkpoint, root / vocabulary)
    return {"main": [model.fingerprint, digest(model.encode_text(["a dog's dog runs."]))]}


def of_index(folder: Path) -> Answer:
    from rungwise.index import Index

    index = Index.open(folder)
    items = list(index.items())
    found = index.similar(items[0].id, k=3) if items else []
    rows = index.picture_store.get([one.id for one in index.items()])
    texts = index.caption_store.get(captions := list(index.captions()))
    main = [
        [(one.id, one.captions, str(one.path)) for one in index.items()],
        [hit.id for hit in found],
        digest(*(rows[one.id].vector for one in index.items())),
        digest(*(texts[one].vector for one in captions if one in texts)),
        [str(one) for one in index.issues],
        index.manifest.model_fingerprint,
    ]
    return {"main": _relative(main, folder)}


def _relative(value: Any, folder: Path) -> Any:
    """Without the place of the copy, which differs from case to case."""
    if isinstance(value, str):
        return value.replace(str(folder.parent), "")
    return [_relative(one, folder) for one in value] if isinstance(value, (list, tuple)) else value


def of_degrees(folder: Path) -> Answer:
    from rungwise.relevance import load

    found = load(folder)
    owners = None if found.image_of_caption is None else np.asarray(found.image_of_caption).tolist()
    return {"main": [digest(found.dense()), found.title(), owners]}


def of_checkpoint(root: Path) -> Answer:
    from rungwise.training.engine import load_checkpoint

    state, tensors = load_checkpoint(root / "checkpoint.safetensors")
    return {"main": [repr(state), digest(*(tensors[name].numpy() for name in sorted(tensors)))]}


def of_scored_pairs(path: Path) -> Answer:
    from rungwise.data import read_scored_pairs

    found = read_scored_pairs(path)
    rows = list(zip(found.first, found.second, found.scores.tolist(), found.splits, strict=True))
    return {"main": rows, "issues": len(found.issues)}


def of_pairs(root: Path) -> Answer:
    """Scores that are known; one that is not known any more is an issue, since it is computed again."""
    from rungwise.relevance.storage.pair_cache import Keys, PairCache

    keys = Keys(world.CAPTIONS, "model", symmetric=True).of(np.zeros(7, np.int64), np.arange(1, 8))
    scores, known = PairCache(root / "pairs").look_up(keys)
    whole = np.linspace(0, 1, 7, dtype=np.float32)
    return {"main": bool((scores == whole)[known].all()), "issues": int((~known).sum())}


def of_facts(root: Path) -> Answer:
    """What is known of a model; where it is not known any more, the model is opened."""
    from rungwise.models import ModelFacts, read_facts

    found = read_facts(root / "model.json")
    return {"main": found in (None, ModelFacts(*world.FACTS)), "issues": int(found is None)}


def of_kept(root: Path) -> Answer:
    """What a source computed and another run reads."""
    from rungwise.relevance.precomputed import CachedConsensus
    from rungwise.relevance.storage import KeptFolder

    kept = KeptFolder(root).find("cider-d", world.KEPT)
    if kept is None:
        raise UserError("nothing is kept here; it is made anew")
    found = CachedConsensus(kept, world.CAPTIONS, np.arange(len(world.CAPTIONS)))
    return {"main": [digest(found.dense()), found.title()]}


def of_rows(root: Path) -> Answer:
    """Rows that are known, as :func:`of_pairs`."""
    from rungwise.encoders.row_cache import RowStore

    store = RowStore(root / "rows-2", (3,), np.float32)
    found = store.find(world.row_keys(8))
    whole, rows = np.arange(24, dtype=np.float32).reshape(8, 3), store.rows()
    known = found >= 0
    known[known] = store.sound(found[known])
    return {"main": bool((rows[found[known]] == whole[known]).all()), "issues": int((~known).sum())}


def of_word_vectors(path: Path) -> Answer:
    from rungwise.language import load_word_vectors

    found = load_word_vectors(path)
    return {"main": [list(found.row), digest(found.table)]}


def of_result(root: Path) -> Answer:
    from rungwise.evaluation import Result, compare

    first = Result.from_json(root / "first.json")
    second = Result.from_json(root / "second.json")
    found = compare([first, second], draws=50)
    return {"main": [dict(first.numbers), first.per_query("i2t/R@1").tolist(), repr(found.differences)]}


def of_benchmark(root: Path) -> Answer:
    from rungwise.evaluation.benchmarks import read_benchmark

    found = read_benchmark(root)
    return {"main": [found.layout, found.content_hash(), sorted(found.left_out.items())], "issues": len(found.issues)}


def of_benchmark_result(root: Path) -> Answer:
    from rungwise.evaluation.benchmarks import BenchmarkResult

    found = BenchmarkResult.from_json(root / "result.json")
    return {"main": [dict(found.numbers), {name: list(own) for name, own in found.per_question.items()}]}


def of_calibration(path: Path) -> Answer:
    from rungwise.calibration import Calibration

    found = Calibration.load(path)
    scores = np.random.default_rng(1).normal(size=50)
    return {"main": [str(found), found.degrees(scores).tolist(), found.cut(scores), found.belief(scores)]}


def of_fit(path: Path) -> Answer:
    from rungwise.relevance.combine import read_fit

    found = read_fit(path)
    return {"main": [str(found), found.apply(np.random.default_rng(1).normal(size=(50, 2))).tolist()]}


def of_scenes(folder: Path) -> Answer:
    from rungwise.data import read
    from rungwise.scenes import SceneRelevance

    data = read(folder)
    return {"main": [data.captions, data.splits, digest(SceneRelevance.load(folder, data).dense())],
            "issues": len(data.issues)}  # fmt: skip
