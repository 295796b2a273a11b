"""Queries by picture: how often something, or nothing, is said to be like a picture, with a standard and without.

``python benchmarks/picture_queries.py --photos MODEL DATA --scenes MODEL DATA``

There is something to find for pictures kept out of an index of others of the same kind, and for pictures of the index
(which are left out themselves). There is nothing for generated scenes in an index of photos, and for photos in an index
of scenes. Photos of a topic whose photos were all taken out of the index stand between.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rungwise.calibration import Calibration
from rungwise.data import ImageCaptions, read
from rungwise.index import GivenVector, Index, Like, Query, Searcher, Term
from rungwise.models import DualEncoder, load_dual_encoder
from rungwise.similarity import unit_rows

PICTURES, QUERIES = 1000, 200
TOPIC = frozenset(
    ("snow", "snowy", "ski", "skier", "skis", "skiing", "snowboard", "snowboarder", "snowboarding", "sled")
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", nargs=2, metavar=("MODEL", "DATA"), required=True)
    parser.add_argument("--scenes", nargs=2, metavar=("MODEL", "DATA"), required=True)
    given = parser.parse_args()
    photos, scenes = (_parts(read(Path(data))) for _, data in (given.photos, given.scenes))
    models = [load_dual_encoder(model, "cpu") for model, _ in (given.photos, given.scenes)]
    print("| queries | something before | shown | something now | shown | a best match |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, other, model, (within, held), (foreign, _) in (
            ("photos", "scenes", models[0], photos, scenes),
            ("scenes", "photos", models[1], scenes, photos),
        ):
            searcher = Searcher(Index.build(within, model, Path(folder) / name), model)
            _row(f"{name}: kept out of the index", searcher, _given(model, held))
            _row(f"{name}: of the index", searcher, [Like(one) for one in within.image_ids[:QUERIES]])
            _row(f"{name}: {other}", searcher, _given(model, foreign))
        about = _about(photos[0])
        rest = photos[0].select(np.flatnonzero(~about))
        searcher = Searcher(Index.build(rest, models[0], Path(folder) / "without"), models[0])
        _row(
            "photos: of snow, in an index without any",
            searcher,
            _given(models[0], photos[0].select(np.flatnonzero(about))),
        )


def _parts(data: ImageCaptions) -> tuple[ImageCaptions, ImageCaptions]:
    """Pictures for an index, and others for queries."""
    order = np.random.default_rng(0).permutation(len(data))
    return data.select(np.sort(order[:PICTURES])), data.select(np.sort(order[PICTURES : PICTURES + QUERIES]))


def _about(data: ImageCaptions) -> np.ndarray:
    """(images,) whether two captions or more of a picture have a word of the topic."""
    counts = np.zeros(len(data), int)
    for text, image in zip(data.captions, data.image_of_caption, strict=True):
        counts[image] += bool(TOPIC & set(text.lower().replace(".", " ").split()))
    return counts >= 2


def _given(model: DualEncoder, data: ImageCaptions) -> list[GivenVector]:
    return [GivenVector(one[None], "given") for one in model.encode_image(data.pictures[:QUERIES]).vectors]


def _row(name: str, searcher: Searcher, queries: Sequence[GivenVector | Like]) -> None:
    """Print one case; "before" is the null distribution of the query's own scores alone."""
    rows = searcher.index.picture_store.get(list(searcher.index.picture_store.drawn(PICTURES)))
    vectors = unit_rows(np.stack([row.vector for row in rows.values()]))
    bulk, before, now, best = Calibration.unsupervised(), [], [], []
    for query in queries:
        vector = rows[query.id].vector if isinstance(query, Like) else query.vector
        others = [one != query.id for one in rows] if isinstance(query, Like) else slice(None)
        before.append(bulk.cut((vectors @ unit_rows(np.atleast_2d(vector))[0])[others]))
        end = searcher.search(Query((Term(query),)), 1).end
        if end is None:
            raise SystemExit(f"{name}: the model reads no pictures")
        now.append(end.shown)
        best.append(end.rungs[0] == 1)
    cells = [f"{np.mean(np.array(one) > 0):.0%} | {np.median(one):.0f}" for one in (before, now)]
    print(f"| {name} ({len(queries)}) | {' | '.join(cells)} | {np.mean(best):.0%} |", flush=True)


if __name__ == "__main__":
    main()
