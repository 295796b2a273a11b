"""The slow parts of the demo: scenes, training of one model, its index, its calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from rungwise.calibration import UNRELATED, Calibration
from rungwise.data import ImageCaptions
from rungwise.demo._places import RECIPES, RELEVANT_FROM, SCENES, Name, Places
from rungwise.demo._sides import known_of_all
from rungwise.index import Index
from rungwise.models import JointEmbedding
from rungwise.scenes import (
    SceneConfig,
    SceneQuery,
    SceneRelevance,
    Statement,
    generate,
    load_scene_file,
    sample_picture,
    write_query,
)
from rungwise.training import CHECKPOINT
from rungwise.training.config import TrainConfig, load_training
from rungwise.training.engine import train
from rungwise.training.tracking import Watcher

FRESH_QUERIES = 400
"""Number of calibration queries about scenes that nobody draws; half of them name one object, the others two."""

_CAPTIONS = 600
"""Number of captions of validation pictures for the calibration; more cost time and change little."""

_FOREIGN = ("cat", "house", "tree", "car", "bridge", "lamp", "horse", "boat")
"""Nouns that no caption has; in a quarter of these searches, one replaces a shape."""

_ELSEWHERE = 1_000_003
"""Offset to the seed of the collection, for scenes that are not among its own."""


def make_scenes(
    places: Places, progress: Callable[[int, int], None] | None = None, config: SceneConfig = SCENES
) -> ImageCaptions:
    """Generate the demo's collection, or find it made, as :func:`rungwise.scenes.generate` does."""
    return generate(places.scenes, config, progress)


def train_one(
    name: Name,
    places: Places,
    data: ImageCaptions,
    watcher: Watcher,
    config: TrainConfig | None = None,
    device: str | None = None,
) -> JointEmbedding:
    """Train a model by its preset, go on with an interrupted run, or load the model of a finished one.

    Raises:
        UserError: If :func:`rungwise.training.engine.train` raises it.
    """
    config = config or load_training(RECIPES[name])
    config = replace(config, data=replace(config.data, path=str(places.scenes)))
    run = places.run(name)
    # So small a network gains nothing from a second thread, and one that waits for a busy core costs it much.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        result = train(
            config,
            data,
            run,
            relevance=SceneRelevance.load(places.scenes, data),
            cache=run / "cache",
            resume=(run / CHECKPOINT).exists(),
            device=device,
            watcher=watcher,
        )
    finally:
        torch.set_num_threads(threads)
    return JointEmbedding.from_pretrained(result.model_folder, device)


def discard_runs(places: Places) -> None:
    """Delete checkpoints, so that the next demo trains anew and does not go on with earlier runs."""
    for name in RECIPES:
        (places.run(name) / CHECKPOINT).unlink(missing_ok=True)


def discard_finished_runs(places: Places) -> None:
    """Call ``discard_runs`` where an earlier demo was finished; interrupted runs are kept.

    A finished demo that is not served is damaged, or of a version with other recipes.
    """
    if places.results.exists():
        discard_runs(places)
        places.results.unlink()


def index_test(name: Name, places: Places, data: ImageCaptions, model: JointEmbedding) -> Index:
    """Build an index of the test pictures, replacing an earlier one, with the calibration of its model."""
    location = str(places.model(name).resolve())
    index = Index.build(data.split("test"), model, places.index(name), model_location=location, overwrite=True)
    index.keep_calibration(calibrated(places.scenes, data, model))
    return index


def calibrated(scenes: Path, data: ImageCaptions, model: JointEmbedding) -> Calibration:
    """Calibration by the exact degrees of the validation pictures.

    Its queries are captions of these pictures; searches for fresh scenes, which few of the pictures fit; and such
    searches with a foreign word in place of a shape, which counts as a fact that never holds. Unrelated texts show it
    what fits nothing.
    """
    validation = data.split("val")
    file = load_scene_file(scenes)
    fresh = fresh_queries(file.config, file.held_out)
    fresh = [query if n % 2 else first_object_of(query) for n, query in enumerate(fresh)]
    captions = list(zip(validation.captions, validation.caption_ids, strict=True))
    foreign = [
        with_foreign_word(query, _FOREIGN[n % len(_FOREIGN)]) for n, query in enumerate(fresh[: FRESH_QUERIES // 4])
    ]
    queries = [
        *(SceneQuery(text, file.statement_of(one)) for text, one in captions[:: -(-len(captions) // _CAPTIONS)]),
        *fresh[len(foreign) :],
        *foreign,
    ]
    shown = [file.scene_of(one) for one in validation.image_ids]
    relevance = SceneRelevance(shown, [query.statement for query in queries]).dense().T.copy()
    relevance[-len(foreign) :] *= np.array([[1 - 1 / (query.statement.facts + 1)] for query in foreign], np.float32)
    texts = [query.text for query in queries]
    pictures, vectors = model.encode_image(validation.paths).vectors, model.encode_text(texts)
    unrelated = model.encode_text(UNRELATED)
    return Calibration.fit(
        model.similarity.array(pictures, vectors).T,
        relevance,
        relevant_from=RELEVANT_FROM,
        known=known_of_all(texts, vectors, model),
        unrelated=model.similarity.array(pictures, unrelated).T,
        unrelated_known=known_of_all(UNRELATED, unrelated, model),
        source="exact degrees of the validation pictures",
        model_fingerprint=model.fingerprint,
    )


def first_object_of(query: SceneQuery) -> SceneQuery:
    """The query without its second object.

    >>> from rungwise.scenes import read_statement
    >>> text = "a red star left of a blue square"
    >>> first_object_of(SceneQuery(text, read_statement(text))).text
    'a red star'
    """
    first = query.statement.mentions[0]
    start, shape, _ = query.text.partition(f" {first.shape}")
    return SceneQuery(start + shape, Statement((first,)))


def with_foreign_word(query: SceneQuery, word: str) -> SceneQuery:
    """The query with a word that means no shape in place of its first shape; its statement leaves the shape out.

    >>> from rungwise.scenes import read_statement
    >>> text = "a red star left of a blue square"
    >>> with_foreign_word(SceneQuery(text, read_statement(text)), "cat").text
    'a red cat left of a blue square'
    """
    first, *others = query.statement.mentions
    start, _, rest = query.text.partition(f" {first.shape}")
    mentions = (replace(first, shape=None), *others)
    return SceneQuery(f"{start} {word}{rest}", replace(query.statement, mentions=mentions))


def fresh_queries(
    config: SceneConfig, held_out: tuple[tuple[tuple[str, str], tuple[str, str]], ...], count: int = FRESH_QUERIES
) -> list[SceneQuery]:
    """Searches for scenes that are not in the collection, without held-out combinations."""
    elsewhere = replace(config, seed=config.seed + _ELSEWHERE, test_share=0.0, captions_per_picture=1)
    rng = np.random.default_rng(np.random.SeedSequence(elsewhere.seed))
    queries: list[SceneQuery] = []
    number = 0
    while len(queries) < count:
        scene = sample_picture(elsewhere, number, held_out).scene
        number += 1
        if len(scene.objects) > 1:
            queries.append(SceneQuery(*write_query(scene, 0, 1, rng)))
    return queries
