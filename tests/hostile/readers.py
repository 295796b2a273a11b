"""Every reader of files, with the good files that attacks start from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tests.hostile import world
from tests.hostile.answers import (
    of_benchmark,
    of_benchmark_result,
    of_calibration,
    of_checkpoint,
    of_collection,
    of_degrees,
    of_facts,
    of_fit,
    of_imported,
    of_index,
    of_kept,
    of_model,
    of_pairs,
    of_published,
    of_result,
    of_rows,
    of_scenes,
    of_scored_pairs,
    of_word_vectors,
)

Read = Callable[[Path], Any]
"""From the copied folder to an answer that can be compared; counts what was skipped under ``"issues"``."""

Cover = Literal["seal", "structure", "nothing"]


@dataclass(frozen=True)
class Subject:
    """A reader and the files that it reads.

    Attributes:
        name: For the table.
        folder: Of the world; copied for each case.
        files: That are attacked, relative to the folder.
        read: The reader.
        cover: What would show a change: a checksum (``"seal"``), the format's own counts and sizes (``"structure"``),
            or nothing, as in a text that anybody may have written so.
        whole: The folder itself is replaced by other things as well.
    """

    name: str
    folder: str
    files: tuple[str, ...]
    read: Read
    cover: Cover = "nothing"
    whole: bool = False


def subjects() -> list[Subject]:
    return [*collections(), *benchmarks(), *_brought(), *_models_of_others(), *_own()]


def collections() -> list[Subject]:
    """One of each layout that is read as a collection."""

    def collection(name: str, *files: str, cover: Cover = "nothing") -> Subject:
        return Subject(f"collection, {name}", name, files, of_collection, cover, whole=True)

    return [
        collection("csv", "captions.csv", world.NAMES[0]),
        collection("tsv", "captions.tsv"),
        collection("semicolons", "captions.csv"),
        collection("jsonl", "captions.jsonl"),
        collection("json", "captions.json", cover="structure"),
        collection("by_picture", "captions.json", cover="structure"),
        collection("parquet", "captions.parquet", cover="structure"),
        collection("karpathy", "dataset_colours.json", cover="structure"),
        collection("flickr8k", "Flickr8k.token.txt", "Flickr_8k.trainImages.txt"),
        collection("folder", world.NAMES[0]),
        collection("precomputed", "train_ims.npy", "train_caps.txt", "train_ids.txt", cover="structure"),
        collection("features", "features.npy", "captions.csv", cover="structure"),
        collection("coco", "annotations/captions_train2017.json", cover="structure"),
        collection("wikipedia", "raw_features.mat", "trainset_txt_img_cat.list", "categories.list", cover="structure"),
        collection("labelled", "train_images.mat", "test_images.npy", "train_texts.csv", "train_labels.csv",
                   "train_ids.txt", "classes.txt"),
        collection("datasets", "data/train-00000-of-00001.parquet", cover="structure"),
        collection("webdataset", "colours-train-000000.tar"),
        collection("text_files", "0-red.txt", "0-red.xmp", f"{world.NAMES[1]}.json", f"{world.NAMES[2][:-4]}.json",
                   ".rungwiseignore"),
    ]  # fmt: skip


def benchmarks() -> list[Subject]:
    """One of each layout that is read as a benchmark."""

    def benchmark(folder: str, *files: str, cover: Cover = "nothing") -> Subject:
        return Subject(f"benchmark, {folder}", folder, files, of_benchmark, cover, whole=True)

    info = "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"
    return [
        benchmark("winoground", "examples.jsonl"),
        benchmark("winoground_parquet", "data/test-00000-of-00001.parquet", cover="structure"),
        benchmark("sugarcrepe", "add_att.json"),
        benchmark("circo", "annotations/val.json", info),
        benchmark("mmeb", "Colours.jsonl", "Changed/test-00000-of-00001.parquet"),
    ]


def _brought() -> list[Subject]:
    from rungwise.data.pictures import load_picture, thumbnail
    from rungwise.data.pictures._picture_files import picture_digest
    from rungwise.evaluation.inputs import (
        read_embeddings,
        read_owners,
        read_ranked_lists,
        read_relevance,
        read_similarity,
    )
    from rungwise.relevance.embedding import read_picture_vectors
    from rungwise.training.config import load_config

    def file(name: str, path: str, read: Callable[[Path], Any], cover: Cover = "nothing") -> Subject:
        folder, _, inside = path.partition("/")
        return Subject(name, folder, (inside,), lambda root: read(root / inside), cover)

    def array(values: Any) -> Any:
        found = np.asarray(values)
        return {"main": [list(found.shape), hashlib.sha256(found.tobytes()).hexdigest()]}

    def lines(path: Path) -> Any:
        return array(read_relevance(path, (8, len(world.caption_ids())), ids=(world.NAMES, world.caption_ids())))

    def lists(path: Path) -> Any:
        found = read_ranked_lists([path], world.NAMES, world.caption_ids())
        return {"main": [rows.tolist() for _, rows in found.rows(4)]}

    def picture(path: Path) -> Any:
        return {"main": [array(load_picture(path)), len(thumbnail(path, 16)), picture_digest(path)]}

    evaluated: list[tuple[str, str, Callable[[Path], Any], Cover]] = [
        *((f"embeddings, {kind}", f"vectors.{kind}", lambda p: array(read_embeddings(p).vectors), "structure")
          for kind in ("npy", "npz", "safetensors", "parquet")),
        ("embeddings, packed npz", "packed.npz", lambda p: array(read_embeddings(p).vectors), "structure"),
        ("similarity, npy", "similarity.npy", lambda p: array(read_similarity(p)), "structure"),
        ("similarity, json", "similarity.json", lambda p: array(read_similarity(p)), "structure"),
        ("similarity, jsonl", "similarity.jsonl", lambda p: array(read_similarity(p)), "nothing"),
        *((f"picture vectors, {name}", name, lambda p: array(read_picture_vectors(p).vectors), "structure")
          for name in ("vectors.npy", "seen.npz")),
        ("degrees, npy", "similarity.npy", lambda p: array(read_relevance(p, (8, 8))), "structure"),
        ("degrees, table", "degrees.tsv", lines, "nothing"),
        ("degrees, qrels", "graded.qrels", lines, "nothing"),
        *((f"owners, {kind}", f"owners.{kind}", lambda p: array(read_owners(p)), "nothing")
          for kind in ("txt", "json", "npy")),
        ("ranked lists, json", "run.json", lists, "structure"),
        ("ranked lists, TREC", "run.trec", lists, "nothing"),
        *((f"judgements, {name}", name, _judged, "nothing") for name in ("grades.csv", "expert.txt", "crowd.txt")),
        *((f"judgements, {name}", name, _judged, "nothing") for name in ("people.jsonl", "searches.jsonl")),
        ("pairs to be graded", "grades.csv", _asked, "nothing"),
        *((f"queries of a person, {name}", name, _queries, "nothing") for name in ("asked.txt", "asked.jsonl")),
        ("judgements, ECCV", "eccv_i2t.json", _judged_eccv, "structure"),
        *((f"judgements, {name}", name, _judged_any, "nothing")
          for name in ("sts.csv", "sis_raw.csv", "rated.jsonl", "preferred.csv", "votes.mat", "pairs.mat")),
    ]  # fmt: skip
    found = [file(name, f"evaluation/{inside}", read, cover) for name, inside, read, cover in evaluated]
    found += [
        file(f"scored pairs, {name}", f"scored/{path}", of_scored_pairs)
        for name, path in (("table", "pairs.csv"), ("STS-Benchmark", "sts-train.csv"))
    ]
    found += [file(f"picture, {form}", f"pictures/{name}", picture) for name, form in world.picture_formats().items()]
    found += [
        file(f"word vectors, {name}", f"words/{name}", of_word_vectors)
        for name in ("glove.txt", "glove.txt.gz", "word2vec.txt", "word2vec.bin")
    ]
    found += [
        Subject(f"WordNet, {kind}", "wordnet", (f"index.{kind}",), _synonyms, whole=kind == "noun")
        for kind in ("noun", "verb", "adj", "adv")
    ]
    config = file("configuration of a run", "run/config.yaml", lambda path: {"main": repr(load_config(str(path)))})
    return [*found, config]


def _models_of_others() -> list[Subject]:
    def imported(name: str, checkpoint: str, vocabulary: str, file: str) -> Subject:
        return Subject(f"VSE++, {name}", "vsepp", (file,), lambda root: of_imported(root, checkpoint, vocabulary))

    def published(prefix: str, name: str, *files: str) -> Subject:
        return Subject(f"published, {name}", name, files, lambda root: of_published(f"{prefix}:{root}"))

    def saved(folder: str, *files: str) -> Subject:
        return Subject(f"model, {folder}", folder, (*files, "SHA256SUMS"), of_model, "seal")

    towers = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    graphs = ("image.onnx", "text.onnx")
    return [
        imported("checkpoint", "model_best.pth.tar", "vocab.pkl", "model_best.pth.tar"),
        imported("early checkpoint", "early.pth.tar", "vocab.pkl", "early.pth.tar"),
        imported("vocabulary", "model_best.pth.tar", "vocab.pkl", "vocab.pkl"),
        imported("vocabulary in JSON", "model_best.pth.tar", "vocab.json", "vocab.json"),
        published("hf", "clip", *towers, "preprocessor_config.json"),
        published("hf", "siglip2", *towers, "processor_config.json"),
        published("open_clip", "open_clip", "open_clip_config.json", "open_clip_model.safetensors"),
        published("st", "sentence", "modules.json", "sentence_bert_config.json", *towers),
        saved("saved_clip", "config.json", "image_encoder.json", "text_encoder.json", "tokenizer.json"),
        saved("saved_words", "config.json", "tokenizer.json", "model.safetensors"),
        saved("saved_transformer", "config.json", "text_encoder.json", "tokenizer.json"),
        saved("exported", "config.json", "tokenizer.json", *graphs),
    ]


def _own() -> list[Subject]:
    from rungwise.relevance.lexical import DocumentFrequencies

    index = ("index.json", "issues.jsonl", *(f"{side}/{name}" for side in ("pictures", "captions")
             for name in ("store.json", "vectors-0.npy", "rows-0.jsonl")))  # fmt: skip
    model = ("config.json", "model.safetensors", "tokenizer.json", "preprocessing.json")
    seal = "SHA256SUMS"

    def inside(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{folder}/{name}" for name in (*names, seal))

    def frequencies(root: Path) -> Any:
        return {"main": DocumentFrequencies.load(root / "frequencies.npz").content_hash()}

    return [
        Subject("model", "run", inside("model", model), lambda root: of_model(root / "model"), "seal"),
        Subject("checkpoint", "run", ("checkpoint.safetensors",), of_checkpoint, "seal"),
        Subject("index", "index", inside("index", index), lambda root: of_index(root / "index"), "seal"),
        Subject("saved degrees, dense", "degrees",
                inside("dense", ("relevance.json", "values.npy", "image_of_caption.npy")),
                lambda root: of_degrees(root / "dense"), "seal"),
        Subject("saved degrees, best", "degrees", inside("best", ("relevance.json", "values.npy", "indices.npy")),
                lambda root: of_degrees(root / "best"), "seal"),
        Subject("pair cache", "caches", ("pairs",), of_pairs, "seal"),
        Subject("facts of a model", "caches", ("model.json",), of_facts, "seal"),
        Subject("kept relevance", "caches",
                inside(f"cider-d-{world.KEPT[:16]}", ("kept.json", "starts.npy", "columns.npy", "answers.npy")),
                of_kept, "seal"),
        Subject("feature cache", "caches", ("rows-2/rows.bin", "rows-2/keys.bin"), of_rows, "seal"),
        Subject("document frequencies", "words", ("frequencies.npz",), frequencies, "structure"),
        Subject("result", "evaluation", ("first.json",), of_result, "structure"),
        Subject("benchmark's result", "benchmark_result", ("result.json",), of_benchmark_result, "seal"),
        Subject("calibration", "calibrations", ("calibration.json",),
                lambda root: of_calibration(root / "calibration.json"), "structure"),
        Subject("fitted combination", "calibrations", ("fit.json",), lambda root: of_fit(root / "fit.json"), "seal"),
        Subject("scenes", "scenes", ("scenes/scenes.json", "scenes/captions.jsonl"),
                lambda root: of_scenes(root / "scenes"), "structure"),
    ]  # fmt: skip


def _synonyms(folder: Path) -> Any:
    from rungwise.language.scene_graphs import Synonyms

    found = Synonyms.wordnet(folder)
    return {"main": [found.fingerprint, sorted((word, sorted(sets)) for word, sets in found.sets.items())]}


def _judged(path: Path) -> Any:
    from rungwise.relevance.human import HumanJudgements

    found = HumanJudgements.read(path, _collection())
    return {"main": [found.pairs.tolist(), found.grades.tolist()], "issues": len(found.issues)}


def _judged_any(path: Path) -> Any:
    from rungwise.relevance.human import read_judged

    pascal = [path.with_name(name) for name in ("votes.mat", "pairs.mat")]
    found = read_judged(pascal if path in pascal else [path])
    return {
        "main": {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(found).items()
            if name not in ("places", "name")
        }
    }


def _asked(path: Path) -> Any:
    from rungwise.grading import read_questions

    found = read_questions(path, _collection())
    return {"main": [[one.image, one.caption] for one in found.asked], "issues": len(found.issues)}


def _queries(path: Path) -> Any:
    from rungwise.quality.typed_queries import read_queries

    return {"main": [[one.text, one.relevant] for one in read_queries(path)]}


def _judged_eccv(path: Path) -> Any:
    from rungwise.relevance.human import HumanJudgements

    found = HumanJudgements.eccv(path, path.with_name("eccv_t2i.json"), _collection())
    return {"main": [found.pairs.tolist(), found.grades.tolist()], "issues": len(found.issues)}


def _collection() -> Any:
    from rungwise.data import ImageCaptions

    return ImageCaptions(world.NAMES, world.CAPTIONS, np.arange(len(world.NAMES)), world.caption_ids(), name="colours")
