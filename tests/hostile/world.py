"""One small good example of every kind of file that rungwise reads, each in a folder of its own."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, features
from pillow_heif import register_heif_opener

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 230), "white": (250, 250, 250)}
NAMES = tuple(f"{number}-{name}.png" for number, name in enumerate([*COLOURS, *COLOURS]))
SPLITS = ("train",) * 4 + ("val",) * 2 + ("test",) * 2
KEPT = "ab" * 32
"""The key of what is kept of a source of relevance."""
FACTS = ("9a3f" * 16, 8, "")
"""Fingerprint, dimension, and what it stands for, of a model that was opened before."""
CAPTIONS = tuple(f"a {name.split('-')[1][:-4]} picture, number {at}" for at, name in enumerate(NAMES))
WORDS = ("a", "red", "green", "blue", "white", "picture", "number")

PICTURES = {
    "a.png": "PNG",
    "a.jpg": "JPEG",
    "a.gif": "GIF",
    "a.bmp": "BMP",
    "a.tiff": "TIFF",
    "a.webp": "WEBP",
    "a.ppm": "PPM",
    "a.avif": "AVIF",
    "a.jp2": "JPEG2000",
    "a.heic": "HEIF",
}


def picture_formats() -> dict[str, str]:
    """Names and formats of pictures that this Pillow writes."""
    known = features.check("avif")
    return {name: form for name, form in PICTURES.items() if form != "AVIF" or known}


def make(root: Path) -> None:
    """All of them."""
    from tests.hostile import world_layouts, world_models

    make_data(root)
    world_layouts.make(root)
    make_own(root)
    world_models.make(root)


def make_data(root: Path) -> None:
    """Collections in every layout, and what auditors bring."""
    for kind in (
        "csv",
        "semicolons",
        "tsv",
        "jsonl",
        "json",
        "by_picture",
        "parquet",
        "karpathy",
        "flickr8k",
        "folder",
    ):
        draw_pictures(root / kind)
    rows = [
        {"image": name, "caption": text, "split": split, "label": text.split()[1]}
        for name, text, split in zip(NAMES, CAPTIONS, SPLITS, strict=True)
    ]
    for file, comma in (("csv/captions.csv", ","), ("semicolons/captions.csv", ";"), ("tsv/captions.tsv", "\t")):
        lines = [comma.join(rows[0]), *(comma.join(f'"{cell}"' for cell in row.values()) for row in rows)]
        (root / file).write_text("\n".join(lines) + "\n")
    (root / "json/captions.json").write_text(json.dumps({"images": rows}))
    (root / "by_picture/captions.json").write_text(json.dumps({row["image"]: [row["caption"]] for row in rows}))
    (root / "jsonl/captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _write_parquet(root / "parquet/captions.parquet", {name: [row[name] for row in rows] for name in rows[0]})
    images = [
        {"filename": row["image"], "split": row["split"], "sentences": [{"raw": row["caption"], "sentid": at}]}
        for at, row in enumerate(rows)
    ]
    (root / "karpathy/dataset_colours.json").write_text(json.dumps({"images": images, "dataset": "colours"}))
    lines = [f"{row['image']}#0\t{row['caption']}" for row in rows]
    (root / "flickr8k/Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    (root / "flickr8k/Flickr_8k.trainImages.txt").write_text("\n".join(NAMES[:4]) + "\n")
    _make_rows(root)
    _make_evaluation(root / "evaluation")
    _make_scored(root / "scored")
    _make_words(root / "words")
    _make_pictures(root / "pictures")


def draw_pictures(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in NAMES:
        colour = COLOURS[name.split("-")[1].removesuffix(".png")]
        Image.new("RGB", (24, 24), colour).save(folder / name)


def _make_rows(root: Path) -> None:
    draw = np.random.default_rng(0)
    folder = root / "precomputed"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        np.save(folder / f"{split}_ims.npy", draw.normal(size=(6, 5)).astype(np.float32))
        (folder / f"{split}_caps.txt").write_text("".join(f"caption {at} of {split}\n" for at in range(12)))
        (folder / f"{split}_ids.txt").write_text("".join(f"{split}{at}\n" for at in range(6)))
    folder = root / "features"
    folder.mkdir()
    np.save(folder / "features.npy", draw.normal(size=(8, 5)).astype(np.float32))
    lines = [f"{name},{text}" for name, text in zip(NAMES, (one.replace(",", "") for one in CAPTIONS), strict=True)]
    (folder / "captions.csv").write_text("image,caption\n" + "\n".join(lines) + "\n")


def _make_evaluation(folder: Path) -> None:
    from safetensors.numpy import save_file

    folder.mkdir()
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(8, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(folder / "vectors.npy", vectors)
    np.savez(folder / "vectors.npz", vectors=vectors)
    np.savez_compressed(folder / "packed.npz", vectors=vectors)
    np.savez(folder / "seen.npz", images=vectors, image_ids=np.array(NAMES), model=np.array("model"))
    save_file({"vectors": vectors}, folder / "vectors.safetensors")
    _write_parquet(folder / "vectors.parquet", {"id": list(NAMES), "embedding": vectors.tolist()})
    matrix = (vectors @ vectors.T).astype(np.float32)
    np.save(folder / "similarity.npy", matrix)
    (folder / "similarity.json").write_text(json.dumps(matrix.tolist()))
    (folder / "similarity.jsonl").write_text("".join(json.dumps(row) + "\n" for row in matrix.tolist()))
    (folder / "owners.txt").write_text("".join(f"{at}\n" for at in range(8)))
    (folder / "owners.json").write_text(json.dumps(list(range(8))))
    np.save(folder / "owners.npy", np.arange(8))
    names = caption_ids()
    (folder / "run.json").write_text(json.dumps({one: list(names[:5]) for one in NAMES}))
    lines = [f"{one} Q0 {names[at]} {at + 1} {1 - at / 10} mine" for one in NAMES for at in range(5)]
    (folder / "run.trec").write_text("\n".join(lines) + "\n")
    pairs = [(one, name, (place + 1) / 8) for one in NAMES for place, name in enumerate(names[:5])]
    table = ["image\tcaption\tdegree", *(f"{one}\t{name}\t{degree}" for one, name, degree in pairs)]
    (folder / "degrees.tsv").write_text("\n".join(table) + "\n")
    (folder / "graded.qrels").write_text("".join(f"{one} 0 {name} {degree}\n" for one, name, degree in pairs))
    pairs = [(image, caption, at % 5) for at, (image, caption) in enumerate(zip(NAMES, names, strict=True))]
    (folder / "grades.csv").write_text("image,caption,grade\n" + "".join(f"{a},{b},{c}\n" for a, b, c in pairs))
    (folder / "asked.txt").write_text("red\n\na blue picture\n")
    asked = '{"query": "red", "relevant": ["' + NAMES[0] + '"]}\n{"query": "a green one"}\nblue\n'
    (folder / "asked.jsonl").write_text(asked)
    (folder / "expert.txt").write_text("".join(f"{a}\t{b}\t1\t2\t3\n" for a, b, _ in pairs))
    (folder / "crowd.txt").write_text("".join(f"{a}\t{b}\t0.5\t1\t1\n" for a, b, _ in pairs))
    _make_judgements(folder)
    _make_people(folder)
    (folder / "eccv_i2t.json").write_text(json.dumps({one: list(names[:3]) for one in NAMES}))
    (folder / "eccv_t2i.json").write_text(json.dumps({one: list(NAMES[:3]) for one in names}))


def _make_people(folder: Path) -> None:
    """A judgement file as the grading page writes it, and grades of searches as an index keeps them."""
    from rungwise.core.disk.sealed_lines import hash_of_text, sealed
    from rungwise.relevance.human import Judgement

    when, judged = "2024-05-01T12:00:00Z", list(zip(NAMES, caption_ids(), CAPTIONS, strict=True))
    lines = [
        Judgement(image, caption, 1 + at % 4, who, when, hash_of_text(text)).line()
        for at, (image, caption, text) in enumerate(judged)
        for who in ("Ada", "Bo")
    ]
    searches = [sealed({"query": text, "id": image, "grade": "right", "when": when}) for image, _, text in judged]
    (folder / "people.jsonl").write_bytes(b"".join(lines))
    (folder / "searches.jsonl").write_bytes(b"".join(searches))


def _make_scored(folder: Path) -> None:
    """Pairs of texts with scores, as a table and in STS-Benchmark's layout."""
    folder.mkdir()
    rows = [(one, other, f"{at % 6}.000") for at, (one, other) in enumerate(pairwise(CAPTIONS))]
    rows += [(f"text {at}", f"another {at}", f"{at % 5}") for at in range(23)]
    lines = [f'"{one}","{other}",{score}' for one, other, score in rows]
    (folder / "pairs.csv").write_text("\n".join(["caption1,caption2,score", *lines, ""]))
    for split, some in (("train", rows[:20]), ("dev", rows[20:25]), ("test", rows[25:])):
        lines = [f"main\tmade\t2012\t{at:04}\t{score}\t{one}\t{two}" for at, (one, two, score) in enumerate(some)]
        (folder / f"sts-{split}.csv").write_text("\n".join([*lines, ""]))


def _make_judgements(folder: Path) -> None:
    """Those that are not of image-caption pairs."""
    from scipy.io import savemat

    texts, names = CAPTIONS, caption_ids()
    (folder / "sts.csv").write_text(
        "caption1,caption2,agg_score,sampling_method\n"
        + "".join(f"{a},{b},{at % 5}.5,c2c_isim\n" for at, (a, b) in enumerate(pairwise(names)))
    )
    (folder / "sis_raw.csv").write_text(
        "image1,image2,score,sampling_method\n"
        + "".join(f"{NAMES[0]},{one},{at % 5},i2i_csim\n" for at, one in enumerate(NAMES))
    )
    rated = [
        {"video": name, "candidate": text, "references": [texts[0], text], "scores": [at % 5, 3, 4]}
        for at, (name, text) in enumerate(zip(NAMES, texts, strict=True))
    ]
    (folder / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated))
    (folder / "preferred.csv").write_text(
        "image,first,second,votes_first,votes_second,category,reference_1\n"
        + "".join(
            f'{name},"{text}","{texts[0]}",{at},{9 - at},HI,"{texts[1]}"\n'
            for at, (name, text) in enumerate(zip(NAMES, texts, strict=True))
        )
    )
    votes = np.zeros((1, 16), dtype=[(name, object) for name in ("A", "B", "C", "winner")])
    pairs = np.zeros((1, 8), dtype=[(name, object) for name in ("image", "first", "second")])
    for at, (name, text) in enumerate(zip(NAMES, texts, strict=True)):
        pairs[0, at] = name, text, texts[at - 1]
        for each in (0, 1):
            votes[0, 2 * at + each] = texts[each], text, texts[at - 1], (-1.0) ** (at + each)
    savemat(folder / "votes.mat", {"triplets": votes})
    savemat(folder / "pairs.mat", {"new_input": pairs, "category": np.arange(8)[None] % 4 + 1}, do_compression=True)


def caption_ids() -> tuple[str, ...]:
    return tuple(f"{name}#0" for name in NAMES)


def _make_words(folder: Path) -> None:
    folder.mkdir()
    vectors = np.random.default_rng(2).normal(size=(len(WORDS), 3)).astype(np.float32)
    lines = [f"{word} {' '.join(f'{value:.4f}' for value in row)}" for word, row in zip(WORDS, vectors, strict=True)]
    text = "\n".join(lines) + "\n"
    (folder / "glove.txt").write_text(text)
    (folder / "glove.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "word2vec.txt").write_text(f"{len(WORDS)} 3\n{text}")
    binary = b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(WORDS, vectors, strict=True))
    (folder / "word2vec.bin").write_bytes(f"{len(WORDS)} 3\n".encode() + binary)


def _make_pictures(folder: Path) -> None:
    folder.mkdir()
    register_heif_opener()
    noise = np.random.default_rng(3).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    for name, form in picture_formats().items():
        Image.fromarray(noise).save(folder / name, form)


def _write_parquet(path: Path, columns: dict[str, list[object]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def calibration() -> Any:
    from rungwise.calibration import Calibration

    draw = np.random.default_rng(0)
    degrees = (draw.random((30, 40)) < 0.1).astype(float)
    return Calibration.fit(draw.normal(size=degrees.shape) + 2 * degrees, degrees, 1)


def learned(seed: int) -> Any:
    """Two sources fitted to grades."""
    from rungwise.relevance.combine import fit_table

    table = np.random.default_rng(seed).random((60, 2))
    return fit_table(table, table.sum(axis=1), names=("words", "sentences"))


def make_own(root: Path) -> None:
    """What rungwise itself writes: models, runs, indexes, degrees, caches, results, scenes."""
    from rungwise import evaluate
    from rungwise.core import to_plain
    from rungwise.data import read
    from rungwise.encoders.row_cache import RowStore
    from rungwise.evaluation import Provenance
    from rungwise.index import Index
    from rungwise.index.maintenance import backup_index
    from rungwise.models import ModelFacts
    from rungwise.models._lazy_model import write_facts
    from rungwise.relevance import CIDErD
    from rungwise.relevance.combine import write_fit
    from rungwise.relevance.lexical import DocumentFrequencies
    from rungwise.relevance.precomputed import kept_rows
    from rungwise.relevance.storage import KeptFolder
    from rungwise.relevance.storage.pair_cache import Keys, PairCache
    from rungwise.runs import FinishedRun
    from rungwise.scenes import SceneConfig, generate
    from rungwise.training.engine import train

    data = read(root / "csv")
    train(run_config(), data, root / "run", cache=root / "cache", device="cpu")
    fingerprint = model_in(root / "run/model").fingerprint
    result = evaluate(
        similarity=np.eye(8), image_of_caption=np.arange(8), provenance=Provenance(split="test", model_hash=fingerprint)
    )
    result.to_json(root / "run/results/result.json")
    (root / "study").mkdir()
    settings = {name: value for name, value in to_plain(run_config()).items() if name not in ("preset", "seed")}
    (root / "study/study.yaml").write_text(json.dumps({"base": settings, "seeds": [0]}))
    (root / "kept").mkdir()
    record = {"settings": {**settings, "seed": 0}}
    FinishedRun.of(record, ({"epoch": 1.0, "rsum": 600.0},), {"asked": result}).to_json(root / "kept/seed-0.json")
    index = Index.build(data, model_in(root / "run/model"), root / "index/index", model_location="../run/model")
    assert len(index) == len(NAMES)
    backup_index(root / "index/index", root / "index/backup")
    _make_engine(root / "engine", index)
    source = CIDErD(data.captions, data.image_of_caption)
    (root / "degrees").mkdir()
    source.save(root / "degrees/dense")
    source.save(root / "degrees/best", k=3)
    (root / "caches").mkdir()
    keys = Keys(data.captions, "model", symmetric=True).of(np.zeros(7, np.int64), np.arange(1, 8))
    KeptFolder(root / "caches").keep("cider-d", KEPT, kept_rows(source))
    write_facts(ModelFacts(*FACTS), root / "caches/model.json")
    PairCache(root / "caches/pairs").add(keys, np.linspace(0, 1, 7, dtype=np.float32))
    store = RowStore(root / "caches/rows-2", (3,), np.float32)
    store.append(row_keys(8), np.arange(24, dtype=np.float32).reshape(8, 3))
    DocumentFrequencies.of(data.captions, data.image_of_caption).save(root / "words/frequencies.npz")
    for seed, name in enumerate(("first", "second")):
        scores = np.random.default_rng(seed).normal(size=(8, 8))
        result = evaluate(
            similarity=scores, image_of_caption=np.arange(8), provenance=Provenance(data_name="colours", data_hash="00")
        )
        result.to_json(root / f"evaluation/{name}.json")
    calibration().save(root / "calibrations/calibration.json")
    write_fit(learned(0), root / "calibrations/fit.json")
    (root / "scenes").mkdir()
    generate(root / "scenes/scenes", SceneConfig(pictures=12, side=32))


def _make_engine(folder: Path, index: Any) -> None:
    """An index of faiss with the same vectors, and the ids of its rows."""
    import faiss

    rows = index.picture_store.get(list(index.picture_store.ids()))
    vectors = np.stack([row.vector for row in rows.values()]).astype(np.float32)
    folder.mkdir()
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    faiss.write_index(flat, str(folder / "rows.faiss"))
    (folder / "ids.txt").write_text("\n".join(rows) + "\n")


def run_config():  # type: ignore[no-untyped-def]
    """A run of a few steps."""
    from rungwise.encoders.images import ImageConfig
    from rungwise.encoders.texts import GRUConfig
    from rungwise.models import VSEConfig
    from rungwise.training.config import TrainConfig

    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=24)
    model = VSEConfig(image=image, text=GRUConfig(word_dimension=4, min_count=1), dimension=8)
    return TrainConfig(model=model, epochs=(2,), learning_rates=(1e-2,), batch_size=2, checkpoint_steps=1)


def model_in(folder: Path):  # type: ignore[no-untyped-def]
    from rungwise.models import load_dual_encoder

    return load_dual_encoder(folder, "cpu")


def row_keys(count: int) -> list[bytes]:
    return [bytes([at + 1]) * 32 for at in range(count)]
