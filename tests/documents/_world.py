"""The folder in which the blocks of the documents run, with the places that they name, made by rungwise itself."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import numpy as np

PICTURES = 100
LABELS = ("circle", "square", "triangle", "star", "heart", "cross")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLIP_COMMIT = "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"
"""The commit of CLIP that mteb names."""

LOSSES = {
    "RUNS/one": "max_of_hinges",
    "RUNS/two": "sum_of_hinges",
    "runs/vsepp": "max_of_hinges",
    "runs/ladder": "sum_of_hinges",
    "runs/sam": "contrastive_sum",
    "runs/soft": "sigmoid",
}
"""The loss of each run that is made; names are those that the pages give."""


def make(slot: Path) -> None:
    """Make ``work``, the folder itself, and beside it the cache; :func:`publish` has to be called before.

    The caches must be those of this process: see :func:`environment`.
    """
    work = slot / "work"
    work.mkdir(parents=True)
    os.chdir(work)
    _draw_collections(work)
    _train_and_judge()


def environment(slot: Path) -> dict[str, str]:
    """Variables under which the blocks run: caches of their own, no network, a terminal of 100 columns."""
    return {
        "HF_HOME": str(slot.parent / "hf"),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "RUNGWISE_CACHE": str(slot / "cache"),
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
    }


def publish(home: Path) -> None:
    """Put tiny models, and a backbone's weights, where the hub's client keeps the real ones of these names."""
    home.mkdir(parents=True, exist_ok=True)
    import timm
    from safetensors.torch import save_file

    from rungwise.jobs._models import DEFAULT
    from tests.published import Published

    published = Published(home / "published")
    put(published.siglip2, DEFAULT.place, home)
    put(published.sentence, "sentence-transformers/clip-ViT-B-32", home)
    put(published.clip, "openai/clip-vit-base-patch32", home, CLIP_COMMIT)
    backbone = home / "backbone"
    backbone.mkdir()
    save_file(timm.create_model("mobilenetv2_100", pretrained=False).state_dict(), backbone / "model.safetensors")
    put(backbone, "timm/mobilenetv2_100.ra_in1k", home)


def put(model: Path, name: str, home: Path, commit: str = COMMIT) -> None:
    """Keep a model's files as if they had been fetched under a name, as of a commit."""
    place = home / "hf" / "hub" / f"models--{name.replace('/', '--')}"
    shutil.copytree(model, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)


def _draw_collections(work: Path) -> None:
    """DATA with three splits and five captions a picture, and PICTURES, which holds the same."""
    from rungwise.scenes import SceneConfig, generate

    drawn = generate(work.parent / "scenes", SceneConfig(pictures=PICTURES, side=96, val_share=0.12, test_share=0.25))
    for name in ("DATA", "PICTURES"):
        (work / name).mkdir()
        rows = []
        for number, image in enumerate(drawn.image_ids):
            file = Path(image).name
            shutil.copy(work.parent / "scenes" / image, work / name / file)
            own = [text for text, at in zip(drawn.captions, drawn.image_of_caption, strict=True) if at == number]
            label = next((one for one in LABELS if one in " ".join(own)), LABELS[0])
            split = drawn.splits[number]
            facts = {"split": split, "year": 2018 + number % 8, "price": 5 + number % 40, "label": label}
            rows += [{"image": file, "caption": text, **facts} for text in own]
        with (work / name / "captions.csv").open("w", newline="", encoding="utf-8") as file_of_rows:
            table = csv.DictWriter(file_of_rows, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    shutil.copytree(work.parent / "scenes", work / "scenes")
    shutil.copytree(work / "DATA", work / "notes" / "pictures", ignore=shutil.ignore_patterns("*.csv"))
    rows = [
        (Path(drawn.image_ids[at]).name, text) for text, at in zip(drawn.captions, drawn.image_of_caption, strict=True)
    ]
    (work / "notes" / "list.txt").write_text("".join(f"{name}|{text}\n" for name, text in rows), encoding="utf-8")
    for name in ("dog.jpg", "query.jpg"):
        _as_jpeg(work.parent / "scenes" / drawn.image_ids[0], work / name)


def _as_jpeg(picture: Path, target: Path) -> None:
    from PIL import Image

    Image.open(picture).convert("RGB").save(target)


def _train_and_judge() -> None:
    """RUN, RUNS, MODEL, INDEX, DEGREES, embeddings, results and judgements."""
    import rungwise
    from rungwise.core.disk.sealed_lines import hash_of_text
    from rungwise.data import read
    from rungwise.relevance.human import Judgement

    how = {"epochs": 2, "learning_rates": 4e-3, "quiet": True}
    tiny = {
        "model": {"image": {"kind": "convolutions"}, "text": {"word_dimension": 16, "min_count": 1}, "dimension": 32}
    }
    for name, loss in LOSSES.items():
        rungwise.train("vsepp", "DATA", out=name, warm_up_epochs=0, seed=len(name), loss={"kind": loss}, **tiny, **how)
        rungwise.evaluate(name, "DATA", quiet=True)
    shutil.copytree("RUNS/one", "RUN")
    shutil.copytree("RUN/model", "MODEL")
    for name in ("photos", "flickr8k"):
        shutil.copytree("DATA", name)
    rungwise.build_index("PICTURES", model="MODEL", out="INDEX", quiet=True)
    rungwise.build_index("PICTURES", quiet=True)
    rungwise.build_index("photos", model="MODEL", quiet=True)
    rungwise.degrees("tfidf", "DATA", split="test", out="DEGREES", quiet=True)
    data = read("DATA").split("test")
    model = rungwise.load("MODEL")
    owners = np.asarray(data.image_of_caption)
    images, texts = model.encode_image(data.pictures).vectors, model.encode_text(data.captions)
    np.save("images.npy", images)
    np.save("captions.npy", texts)
    np.save("owners.npy", owners)
    for name, seed in (("one", 0), ("other", 1)):
        noise = np.random.default_rng(seed).normal(0, 0.05, texts.shape).astype(texts.dtype)
        rungwise.evaluate(
            image_embeddings=images,
            text_embeddings=texts + noise,
            image_of_caption=owners,
            out=f"{name}.json",
            quiet=True,
        )
    lines = []
    for at, (caption_id, text) in enumerate(zip(data.caption_ids, data.captions, strict=True)):
        picture = data.image_ids[(int(owners[at]) + at % 2) % len(data.image_ids)]
        for who in ("Ada", "Bo"):
            when = "2026-05-01T12:00:00Z"
            lines.append(Judgement(picture, caption_id, 4 - 2 * (at % 2), who, when, hash_of_text(text)).line())
    Path("judgements.jsonl").write_bytes(b"".join(lines))
    Path("JUDGEMENTS").write_bytes(b"".join(lines))
    Path("queries.txt").write_text("a red circle\na blue square\n", encoding="utf-8")
