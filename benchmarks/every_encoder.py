"""Every image and text encoder trained for one epoch on a tenth of Flickr8K, saved, loaded, and compared with itself.

python benchmarks/every_encoder.py
python benchmarks/every_encoder.py --only transformer --share 0.05

Each text encoder is trained with the cached features of a MobileNetV2, each image encoder with the GRU of VSE++.
"equal" says that the loaded model has the validation rsum that training printed, and that, saved and loaded once more,
it has the same fingerprint and gives the same vectors to the bit.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rungwise import evaluate
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig, LinearHead, TextFeatureConfig
from rungwise.encoders.images import ImageConfig, feature_rows
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig, TransformerConfig, text_rows
from rungwise.models import JointEmbedding, VSEConfig
from rungwise.training.batches import ByLength
from rungwise.training.config import DataConfig, TrainConfig
from rungwise.training.engine import train

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
GLOVE = "weights/glove.6B.50d.caption_words.txt"
VALIDATION_PICTURES = 100


@dataclass(frozen=True)
class Trial:
    """One encoder.

    Attributes:
        name: For the table.
        model: What is trained.
        data: Makes of the collection what the model reads.
        learning_rate: Of its epoch.
        batch_size: Pairs a step.
    """

    name: str
    model: VSEConfig
    data: Callable[[ImageCaptions, Path, Path], ImageCaptions] = lambda data, _shared, _cache: data
    learning_rate: float = 5e-4
    batch_size: int = 128


def mobilenet(shared: Path, **options: Any) -> ImageConfig:
    middle = (0.5, 0.5, 0.5)
    usual = {"options": {"pad_type": "same"}, "mean": middle, "std": middle, "crop": 1.0}
    return ImageConfig("mobilenetv2_100", weights=str(shared / WEIGHTS), **(usual | options))


def features(data: ImageCaptions, shared: Path, cache: Path, *, regions: bool = False) -> ImageCaptions:
    """Rows of a MobileNetV2 in place of pictures; as regions, three noisy copies of each."""
    rows = np.asarray(feature_rows(mobilenet(shared).build(), list(data.paths), cache).take(np.arange(len(data))))
    if regions:
        noise = np.random.default_rng(0).normal(0, 0.1, (len(rows), 3, rows.shape[1])).astype(np.float32)
        rows = rows[:, None] + noise
    return replace(data, paths=(), features=FeatureRows(rows))


def text_features(data: ImageCaptions, _shared: Path, cache: Path) -> ImageCaptions:
    """Vectors of the packaged sentence encoder in place of words."""
    side = TransformerConfig().build([], 0)
    rows = text_rows(side, data.captions, cache).take(np.arange(len(data.captions)))
    return replace(data, text_features=FeatureRows(np.asarray(rows)))


def trials(shared: Path) -> list[Trial]:
    """All of them."""
    glove = str(shared / GLOVE)

    def text(name: str, config: Any, **more: Any) -> Trial:
        head = {} if isinstance(config, GRUConfig) else {"text_head": LinearHead()}
        return Trial(f"text: {name}", VSEConfig(image=mobilenet(shared), text=config, dimension=512, **head), **more)

    def image(name: str, config: Any, **more: Any) -> Trial:
        return Trial(f"image: {name}", VSEConfig(image=config, text=GRUConfig(), dimension=512), **more)

    def random(backbone: str, **options: Any) -> ImageConfig:
        return ImageConfig(backbone, weights="random", **options)

    slow = {"learning_rate": 5e-5, "batch_size": 32}
    return [
        text("gru", GRUConfig()),
        text("gru, mean", GRUConfig(pool="mean")),
        text("gru, max", GRUConfig(pool="max")),
        text("gru, two layers", GRUConfig(layers=2)),
        text("gru, both directions", GRUConfig(directions="both")),
        text("gru, both directions, mean", GRUConfig(directions="both", pool="mean")),
        text("gru, both directions, max", GRUConfig(directions="both", pool="max")),
        text("gru, at most 12 tokens", GRUConfig(context_length=12)),
        text("gru, characters of scripts without spaces", GRUConfig(unspaced="characters")),
        text("gru, word vectors", GRUConfig(word_vectors=glove)),
        text(
            "gru, frozen word vectors of the file", GRUConfig(word_vectors=glove, train_words=False, vocabulary="both")
        ),
        text("transformer, frozen", TransformerConfig()),
        text("transformer, frozen, 3 layers, max", TransformerConfig(keep_layers=3, pool="max")),
        text("transformer, last layer trained", TransformerConfig(frozen=False, train_layers=1), **slow),
        text("transformer, trained", TransformerConfig(frozen=False), **slow),
        text("bag of words", BagOfWordsConfig()),
        text("bag of words, counts", BagOfWordsConfig(weights="counts")),
        text("bag of words, presence, characters", BagOfWordsConfig(weights="presence", unspaced="characters")),
        text("bag of words, word vectors", BagOfWordsConfig(word_vectors=glove)),
        text("bag of words, all word vectors of the file", BagOfWordsConfig(word_vectors=glove, vocabulary="file")),
        text("features", TextFeatureConfig(), data=text_features),
        image("mobilenetv2, frozen", mobilenet(shared)),
        image("mobilenetv2, flattened map", mobilenet(shared, pool="flatten", size=96)),
        image("mobilenetv2, regions", mobilenet(shared, pool="regions", size=96)),
        image("mobilenetv2, ten crops", mobilenet(shared, crops="10C", size=96, crop=0.875)),
        image("mobilenetv2, random crops", mobilenet(shared, crops="RC", size=96, crop=0.875)),
        image("mobilenetv2, trained", mobilenet(shared, frozen=False, size=96), **slow),
        image(
            "mobilenetv2, trained, batch norm as it was",
            mobilenet(shared, frozen=False, size=96, batch_norm="frozen", crops="RC", crop=0.875),
            **slow,
        ),
        image("convnext, random", random("test_convnext", size=96)),
        image("vit, random, trained", random("test_vit", frozen=False), **slow),
        image("features", FeatureConfig(), data=features),
        image("regions", FeatureConfig(), data=lambda data, place, cache: features(data, place, cache, regions=True)),
    ]


def share_of(data: ImageCaptions, share: float) -> ImageCaptions:
    """A share of the training pictures, drawn by a fixed seed, and some validation pictures."""
    draw = np.random.default_rng(0)
    splits = np.array(data.splits)
    train_pictures = np.flatnonzero(splits == "train")
    kept = draw.choice(train_pictures, round(share * len(train_pictures)), replace=False)
    return data.select(np.sort(np.concatenate([kept, np.flatnonzero(splits == "val")[:VALIDATION_PICTURES]])))


def run(trial: Trial, shared: Path, share: float, cache: Path) -> tuple[float, float, bool]:
    """Seconds of the run, validation rsum, and whether the loaded model is the same."""
    data = trial.data(share_of(read(shared / "flickr8k"), share), shared, cache)
    settings = TrainConfig(
        data=DataConfig(path="flickr8k"),
        model=trial.model,
        sampler=ByLength(),
        epochs=(1,),
        learning_rates=(trial.learning_rate,),
        batch_size=trial.batch_size,
    )
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        trained = train(settings, data, Path(folder) / "run", cache=cache)
        seconds = time.perf_counter() - begun
        model = JointEmbedding.from_pretrained(Path(folder) / "run" / "model")
        scores = model.on(data.split("val"), cache=cache)
        found = evaluate(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)
        model.save_pretrained(Path(folder) / "again")
        again = JointEmbedding.from_pretrained(Path(folder) / "again")
        other = again.on(data.split("val"), cache=cache)
    equal = (
        abs(float(found["rsum"]) - trained.best_rsum) < 1e-6
        and again.fingerprint == model.fingerprint
        and np.array_equal(scores.text_vectors, other.text_vectors)
        and np.array_equal(scores.image_vectors, other.image_vectors)
    )
    return seconds, trained.best_rsum, equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="folder of the real data")
    parser.add_argument("--share", type=float, default=0.1, help="of the training pictures")
    parser.add_argument("--only", default="", help="trials whose name holds this")
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    if options.shared is None:
        parser.error("name the folder of the real data: --shared FOLDER or RUNGWISE_DATA")
    table = Table("encoder", "seconds", "val rsum", "equal", title=f"{options.share:.0%} of Flickr8K")
    with tempfile.TemporaryDirectory() as folder:
        for trial in trials(options.shared):
            if options.only not in trial.name:
                continue
            cache = options.cache or Path(folder)
            seconds, rsum, equal = run(trial, options.shared, options.share, cache)
            row = (trial.name, f"{seconds:.1f}", f"{rsum:.1f}", "yes" if equal else "NO")
            print(*row, sep="\t", flush=True)
            table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
