"""Names without judgements: how high degrees are on three different worlds, and how often a hit with a name is right.

``python benchmarks/absolute_degrees.py --photos MODEL DATA --scenes MODEL DATA``

Queries are single frequent words and captions of photos (a photo is right that has the word in a caption, or three
fifths of the caption's words in its captions), captions of generated scenes (right where all of it is true), and
vectors made to behave like those of CLIP: both kinds in narrow cones apart from each other, with hubs and known topics.
Their unrelated texts are drawn as the queries are, of topics that have no pictures.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND, UNRELATED, Calibration
from rungwise.data import ImageCaptions, read
from rungwise.models import load_dual_encoder
from rungwise.scenes import SceneRelevance, load_scene_file, read_text
from rungwise.similarity import unit_rows

PICTURES, QUERIES = 1000, 300
Rows = NDArray[np.float32] | NDArray[np.float64]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", nargs=2, metavar=("MODEL", "DATA"), required=True)
    parser.add_argument("--scenes", nargs=2, metavar=("MODEL", "DATA"), required=True)
    given = parser.parse_args()
    print("| queries | first hit best | good | further | nothing | right: best | good | further |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    _photos(*given.photos)
    _scenes(*given.scenes)
    for pictures in (500, 8000):
        _made(pictures)


def _photos(model_folder: str, folder: str) -> None:
    model, data = load_dual_encoder(model_folder, "cpu"), read(Path(folder)).split("test")
    pictures = unit_rows(model.encode_image(data.pictures).vectors)
    unrelated = unit_rows(model.encode_text(UNRELATED)) @ pictures.T
    words = [set().union(*(_words(data.captions[at]) for at in own)) for own in data.captions_of_image]
    counts = Counter(word for some in words for word in some)
    frequent = [word for word, count in counts.most_common() if count >= 10 and len(word) > 3][:QUERIES]
    right = np.array([[word in some for some in words] for word in frequent])
    _row("single words, photos", unit_rows(model.encode_text(tuple(frequent))) @ pictures.T, unrelated, right)
    captions = data.captions[:: len(data.captions) // QUERIES]
    right = np.array([[len(_words(one) & some) >= 0.6 * len(_words(one)) for some in words] for one in captions])
    _row("captions, photos", unit_rows(model.encode_text(captions)) @ pictures.T, unrelated, right)
    _row("unrelated texts, photos", unrelated[1::2], unrelated[::2], np.zeros((len(unrelated[1::2]), len(pictures))))


def _scenes(model_folder: str, folder: str) -> None:
    model, data = load_dual_encoder(model_folder, "cpu"), _some(read(Path(folder)))
    file = load_scene_file(Path(folder))
    pictures = unit_rows(model.encode_image(data.pictures).vectors)
    captions = data.captions[:: len(data.captions) // QUERIES]
    statements = [read_text(one).statement for one in captions]
    kept = [(one, said) for one, said in zip(captions, statements, strict=True) if said is not None]
    scenes = [file.scene_of(one) for one in data.image_ids]
    right = SceneRelevance(scenes, [said for _, said in kept]).dense().T >= 0.99
    scores = unit_rows(model.encode_text(tuple(one for one, _ in kept))) @ pictures.T
    _row("captions, scenes", scores, unit_rows(model.encode_text(UNRELATED)) @ pictures.T, right)


def _made(count: int) -> None:
    rng = np.random.default_rng(count)
    width, topics = 256, 60
    centres = unit_rows(rng.normal(size=(topics, width)))
    picture_cone, text_cone, hub = unit_rows(rng.normal(size=(3, width)))
    topic, asked = np.arange(count) % topics, np.arange(QUERIES) % topics

    def noise(rows: int) -> Rows:
        return unit_rows(rng.normal(size=(rows, width)))

    def texts(about: Rows) -> Rows:
        return unit_rows(text_cone + 0.3 * picture_cone + 0.1 * hub + 0.5 * about + 0.45 * noise(len(about)))

    pictures = unit_rows(
        picture_cone + 0.25 * text_cone + 0.3 * np.abs(rng.normal(size=(count, 1))) * hub + 0.3 * centres[topic]
        + 0.75 * noise(count)
    )  # fmt: skip
    unrelated, queries, others = (texts(one) @ pictures.T for one in (noise(48), centres[asked], noise(QUERIES)))
    near = np.quantile(queries.max(axis=1), 0.5)
    _row(f"made vectors, {count:,} (best cosine {near:.2f})", queries, unrelated, topic[None] == asked[:, None])
    _row(f"made vectors, {count:,}, of nothing", others, unrelated, np.zeros(others.shape))


def _row(name: str, scores: Rows, unrelated: Rows, right: NDArray[np.generic]) -> None:
    calibration = Calibration.unsupervised(unrelated)
    rungs = np.array([calibration.rungs(one) for one in scores])
    best = rungs.min(axis=1)
    shares = [f"{np.mean(best == rung):.0%}" for rung in (1, 2, 3, BEYOND)]
    of_name = [right[rungs == rung] for rung in (1, 2, 3)]
    precise = [f"{one.mean():.0%} of {len(one):,}" if len(one) else "" for one in of_name]
    print(f"| {name} | {' | '.join((*shares, *precise))} |", flush=True)


def _words(text: str) -> set[str]:
    plain = {word.strip(".,\"'").lower() for word in text.split()}
    return plain - {"", "a", "an", "the", "in", "on", "is", "are", "of", "and", "with", "to", "his", "her", "at"}


def _some(data: ImageCaptions) -> ImageCaptions:
    return data.select(np.arange(min(PICTURES, len(data))))


if __name__ == "__main__":
    main()
