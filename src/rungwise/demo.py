"""The whole of rungwise on generated scenes: make, train, measure against chance, index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.evaluation import Result, evaluate
from rungwise.index import Index, Searcher
from rungwise.models import JointEmbedding
from rungwise.scenes.collection import SceneConfig, SceneQuery, generate, held_out_queries, load_scene_file
from rungwise.scenes.relevance import SceneRelevance
from rungwise.training.config import TrainConfig
from rungwise.training.loop import CHECKPOINT, MODEL, train
from rungwise.training.recipes import load_config
from rungwise.training.reports import Watcher

SCENES = SceneConfig(pictures=4000, side=128)
"""What the demo generates."""

SCENES_FOLDER, RUN_FOLDER, INDEX_FOLDER = "scenes", "run", "index"
"""Of the demo's own folder."""

MEASURES = ("R@1", "R@5", "R@10", "MedR", "MeanR", "rsum", "nDCG@10", "CS@100")


@dataclass(frozen=True)
class HeldOut:
    """Searches for combinations that training never showed.

    Attributes:
        queries: How many were made.
        gallery: Pictures searched.
        found: Percent with a right picture among the first five.
        chance: What a random ranking would reach, in percent, by exact expectation.
        example: A query whose first answers are right.
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
    resume = (out / CHECKPOINT).exists()
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


def made_before(folder: Path, device: str | None = None) -> tuple[Index, JointEmbedding] | None:
    """The index and the model of an earlier demo; None where it left none that are whole.

    >>> made_before(Path("nowhere")) is None
    True
    """
    try:
        index = Index.open(folder / INDEX_FOLDER)
        model = JointEmbedding.from_pretrained(folder / RUN_FOLDER / MODEL, device)
        index.check(model)
    except UserError:
        return None
    return index, model


def forget(folder: Path) -> None:
    """Let the next demo train anew, in place of going on with the run of an earlier one.

    >>> forget(Path("nowhere"))
    """
    (folder / RUN_FOLDER / CHECKPOINT).unlink(missing_ok=True)


def index_test(data: ImageCaptions, folder: Path, model: JointEmbedding) -> Index:
    """An index of the test pictures, in the place of one that is there."""
    location = str((folder / RUN_FOLDER / MODEL).resolve())
    return Index.build(data.split("test"), model, folder / INDEX_FOLDER, model_location=location, overwrite=True)


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
    right_of = []  # how many of the first are right, and whether the very first is
    for column, query in enumerate(queries):
        among = right[[rows[hit.id] for hit in searcher.search(query.text, first).hits], column]
        right_of.append((bool(among[:1].any()), int(among.sum())))
    found = sum(number > 0 for _, number in right_of)
    chance = float(np.mean([_chance(column, first) for column in right.T]))
    best = max(range(len(queries)), key=right_of.__getitem__)
    return HeldOut(count, len(index), 100 * found / count, 100 * chance, queries[best].text)


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
