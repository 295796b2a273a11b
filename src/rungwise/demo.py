"""The whole of rungwise on generated scenes: make, train, measure against chance, index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rungwise.data.collection import ImageCaptions
from rungwise.evaluation import Result, evaluate
from rungwise.index import Index, Searcher
from rungwise.models import JointEmbedding
from rungwise.scenes.collection import SceneConfig, SceneQuery, generate, held_out_queries, load_scene_file
from rungwise.scenes.relevance import SceneRelevance
from rungwise.training.config import TrainConfig
from rungwise.training.loop import train
from rungwise.training.recipes import load_config
from rungwise.training.reports import Watcher

SCENES = SceneConfig(pictures=4000, side=128)
"""What the demo generates."""

MEASURES = ("R@1", "R@5", "R@10", "MedR", "MeanR", "rsum", "nDCG@10", "CS@100")


@dataclass(frozen=True)
class HeldOut:
    """Searches for combinations that training never showed.

    Attributes:
        queries: How many were made.
        gallery: Pictures searched.
        found: Percent with a right picture among the first five.
        chance: What a random ranking would reach, in percent, by exact expectation.
        example: The first of the queries.
    """

    queries: int
    gallery: int
    found: float
    chance: float
    example: str


def make_scenes(folder: Path, watcher: Watcher, config: SceneConfig = SCENES) -> ImageCaptions:
    """Generate the demo's collection, or find it made."""
    done = 0

    def progress(now: int, total: int) -> None:
        nonlocal done
        watcher.work("drawing scenes", now - done, total)
        done = now

    return generate(folder, config, progress)


def train_on(
    data: ImageCaptions,
    scenes: Path,
    out: Path,
    watcher: Watcher,
    config: TrainConfig | None = None,
    device: str | None = None,
) -> JointEmbedding:
    """Train the preset ``scenes`` on a generated collection, or load the model of a finished run."""
    config = config or load_config("scenes")
    config = replace(config, data=replace(config.data, path=str(scenes)))
    relevance = SceneRelevance.load(scenes, data)
    resume = (out / "checkpoint.safetensors").exists()
    # So small a network gains nothing from a second thread, and one that waits for a busy core costs it much.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result = train(
            config, data, out, relevance=relevance, cache=out / "cache", resume=resume, device=device, watcher=watcher
        )
    finally:
        torch.set_num_threads(threads)
    return JointEmbedding.from_pretrained(result.model_folder, device)


def evaluate_on_test(data: ImageCaptions, scenes: Path, model: JointEmbedding) -> Result:
    """Classic and graded measures on the test pictures, with the scenes' exact relevance."""
    test = data.split("test")
    return evaluate(
        image_embeddings=model.encode_image(test.paths).vectors,
        text_embeddings=model.encode_text(test.captions),
        image_of_caption=test.image_of_caption,
        relevance=SceneRelevance.load(scenes, test),
        measures=MEASURES,
        data_name=test.name,
        data_hash=test.content_hash(),
        model_hash=model.fingerprint,
    )


def search_held_out(
    scenes: Path, index: Index, model: JointEmbedding, count: int = 100, first: int = 5, seed: int = 1
) -> HeldOut:
    """Search for held-out combinations; a picture is right if all that the query says is true of it.

    Args:
        scenes: Folder of the generated collection.
        index: Of its test pictures.
        model: That built the index.
        count: Queries.
        first: Results looked at.
        seed: Of the queries; the recipe was chosen on those of seed 0.
    """
    queries = held_out_queries(scenes, count, seed)
    right = right_pictures(scenes, index, queries)
    searcher = Searcher(index, model)
    rows = {item.id: row for row, item in enumerate(index.items())}
    found = 0
    for column, query in enumerate(queries):
        hits = searcher.search_text(query.text, first)
        found += bool(right[[rows[hit.id] for hit in hits], column].any())
    chance = float(np.mean([_chance(column, first) for column in right.T]))
    return HeldOut(count, len(index), 100 * found / count, 100 * chance, queries[0].text)


def right_pictures(scenes: Path, index: Index, queries: list[SceneQuery]) -> NDArray[np.bool_]:
    """(pictures of the index, queries): whether all that a query says is true of a picture."""
    file = load_scene_file(scenes)
    shown = [file.scene_of(item.id) for item in index.items()]
    exact: NDArray[np.bool_] = SceneRelevance(shown, [query.statement for query in queries]).dense() == 1
    return exact


def _chance(right: NDArray[np.bool_], first: int) -> float:
    """Probability that ``first`` pictures drawn at random hold a right one.

    >>> _chance(np.array([True, False, False, False]), 2)
    0.5
    """
    total, good = len(right), int(right.sum())
    return 1 - comb(total - good, first) / comb(total, first)
