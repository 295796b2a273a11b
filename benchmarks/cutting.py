"""Where relevance ends, by kind of query: what is shown, what it is called, and whether that is right.

    RUNGWISE_DATA=... python benchmarks/cutting.py --photos MODEL --scenes MODEL --made
    python benchmarks/cutting.py --scenes MODEL --made --transfer
    python benchmarks/cutting.py --made --costs
    python benchmarks/cutting.py --model FOLDER --data FOLDER

``--photos`` is a model of Flickr8K, or ``--model`` any published model at hand with ``--data`` of several captions a
picture: fitted on the validation split, judged on an index of the test split that holds one caption of each photo; the
other captions tell what is true. ``--scenes`` is a model of generated scenes, of which all is known; they are asked as
pictures with captions, and as a shop with titles. ``--made`` are vectors made to behave like those of published models.

Methods: one threshold, the best on the queries of the fit; no calibration, by unrelated texts; the calibration before,
by whole captions (relevant from a tf-idf of .25) and their likeness to captions of hits, with today's regression; the
calibration by typed queries; and the best cut of each query by its scores, which needs to know the answer. All but the
last show what full text is sure of, too. F1 is in percent; after ± stands half of the 95 % interval (bootstrap over
queries). "1st right" is the share of the hits with the first name (exactly, or best) that are relevant, "called so" the
share of the relevant hits shown that have it. "less none" is the paired difference to no calibration.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cutting_data as worlds
from rungwise.calibration import (
    Calibration,
    FlatThreshold,
    Known,
    QueryJudgement,
    TrainingQueries,
    compared,
)
from rungwise.calibration._baselines import f1_of_cuts
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index, Searcher, SearchOptions
from rungwise.models import load_dual_encoder
from rungwise.quality.typed_queries import caption_queries, training_queries
from rungwise.relevance import TfIdf

DRAWS = 1000
QUERIES = 1800
TIMED = 200
Values = NDArray[np.float64]


class Threshold:
    """Shows the hits whose score reaches a threshold, all on the last rung."""

    learnt = ()

    def __init__(self, least: float) -> None:
        self.least = least

    def judge_all(self, scores: NDArray[np.float32], known: Known | None) -> tuple[NDArray[np.int64], QueryJudgement]:
        """Positions of all candidates and what is shown of them, as a calibration gives it."""
        order = np.argsort(-scores, kind="stable")
        rungs = np.where(scores[order] >= self.least, 3, 4)
        return order, QueryJudgement(np.zeros(len(order)), rungs, int((rungs < 4).sum()), 1.0)


class Before:
    """A calibration that knows of the texts of hits what was known before: how near they are to the query."""

    learnt = (1,)

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration

    def judge_all(self, scores: NDArray[np.float32], known: Known) -> tuple[NDArray[np.int64], QueryJudgement]:
        """As :meth:`rungwise.calibration.Calibration.judge_all`."""
        return self.calibration.judge_all(scores, reduced(known))


def reduced(known: Known) -> Known:
    """What was known of a query before: its vector, its unknown words, and captions of the 50 best hits."""
    return Known(vector=known.vector, unknown_share=known.unknown_share, caption_scores=known.caption_scores)


def methods_of(world: worlds.World) -> dict[str, object]:
    """Everything that is fitted, on the collection of the fit."""
    start = time.process_time()
    queries, how = training_queries(world.fit, QUERIES)
    kept = np.array(
        [
            not (kind == "phrase" and worlds.in_other_half(statement))
            for kind, statement in zip(queries.kinds, statements(world, queries), strict=True)
        ]
    )
    queries = queries.only(np.flatnonzero(kept))
    new, found = compared(queries, queries.standard(), source="typed queries", model_fingerprint="")
    print(
        f"  {len(queries):,} queries of {world.fit.name}, texts read as {how}: {time.process_time() - start:.0f} s of"
        f" processor; {'it takes its place' if found.harmless else 'the old one would stay'}"
        f"{', only where pictures have texts' if new.needs_texts else ''}",
        flush=True,
    )
    captions = np.arange(0, len(world.fit.captions), max(1, len(world.fit.captions) // 1500))
    source = TfIdf(world.fit.captions, world.fit.owners, images=len(world.fit.ids))
    degrees = source.block(np.arange(len(world.fit.ids)), captions).T
    old = caption_queries(world.fit, captions, degrees, 0.25)
    flat = FlatThreshold.fit(queries.similarity, queries.relevance, queries.relevant_from)
    return {
        "one threshold": Threshold(flat.least),
        "no calibration": None,
        "calibration before": Before(replace(old, known=tuple(map(reduced, old.known))).fit()),
        "calibration": new,
    }


def statements(world: worlds.World, queries: TrainingQueries) -> list[frozenset[tuple[str, ...]]]:
    """Statements of the queries, by which some are kept for judging."""
    reader, _ = worlds.reader_of(world.fit.captions)
    return [reader(text) for text in queries.texts]


def half(values: Values) -> float:
    """Half of the 95 % interval of a mean, over queries drawn with replacement."""
    drawn = np.random.default_rng(0).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(high - low) / 2


def table(world: worlds.World, methods: dict[str, object], texts: bool = True) -> None:
    """Print what each method shows for the queries of each kind."""
    print(f"\n{world.name}, {len(world.index.ids):,} pictures{'' if texts else ', without their texts'}", flush=True)
    head = ("F1", "shown", "1st right", "called so", "2nd right", "belief", "less none")
    print(f"  {'':20} {head[0]:>12} {head[1]:>7} {head[2]:>10} {head[3]:>10} {head[4]:>10} {head[5]:>7} {head[6]:>14}")
    for kind in world.asked:
        queries = world.queries(kind, texts)
        relevant = queries.relevance.sum(axis=1)
        best = f1_of_cuts(queries.similarity, queries.relevance, 1.0).max(axis=1)
        print(f"  {kind}: {len(queries)} queries, {relevant.mean():.1f} relevant; best cut {best.mean():.1f}")
        none = None
        for name, method in methods.items():
            if not texts and isinstance(method, Calibration) and method.needs_texts:
                print(f"    {name:18} needs texts: no calibration judges")
                continue
            judged = queries.judged_by(queries.standard() if method is None else method)  # type: ignore[arg-type]
            named, right = judged.named.sum(axis=0), judged.right.sum(axis=0)
            if method is None:
                none = judged.f1
            cells = f"{judged.f1.mean():6.1f} ±{half(judged.f1):4.1f} {judged.shown.mean():7.1f}"
            for share in (
                right[0] / named[0] if named[0] else np.nan,
                right[0] / right.sum() if right.sum() else np.nan,
                right[1] / named[1] if named[1] else np.nan,
            ):
                cells += f" {'-':>10}" if np.isnan(share) else f" {share:10.2f}"
            cells += f" {judged.beliefs.mean():7.2f}"
            if none is not None and method is not None:
                cells += f" {(judged.f1 - none).mean():+7.1f} ±{half(judged.f1 - none):4.1f}"
            print(f"    {name:18} {cells}", flush=True)


def transfer(world: worlds.World, sizes: tuple[int, ...]) -> None:
    """Fitted at 1,000 pictures, used at other sizes."""
    methods = methods_of(world)
    for size in sizes:
        table(worlds.smaller(world, size) if size < len(world.index.ids) else world, methods)


def strange(world: worlds.World, words: tuple[str, ...]) -> None:
    """Fitted where no caption has these words, used on queries that have them."""
    kept = np.array(
        [at for at, text in enumerate(world.fit.captions) if not set(text.lower().split()) & set(words)], np.int64
    )
    asked = {
        kind: [one for one in some if kind == "unrelated" or set(one.text.lower().split()) & set(words)]
        for kind, some in world.asked.items()
    }
    world = replace(
        world,
        name=f"{world.name}; no query of the fit was about {', '.join(words)}",
        fit=worlds.with_captions(world.fit, kept),
        asked={kind: some for kind, some in asked.items() if some},
    )
    table(world, methods_of(world))


def costs(pictures: int) -> None:
    """What judging takes in a search, and learning."""
    model = worlds.Made()
    start = time.process_time()
    fit, _ = worlds._made_pictures(model, 4000, 5, 3)
    begun = time.process_time()
    queries, _ = training_queries(fit, QUERIES)
    calibration, _ = compared(queries, queries.standard(), source="typed queries", model_fingerprint="made")
    print(
        f"calibrate of 4,000 made pictures with 20,000 captions: {time.process_time() - begun:.0f} s (aim 60)",
        flush=True,
    )
    whole, _ = worlds._made_pictures(model, pictures, 1, 4)
    for captioned in (False, True):
        data = ImageCaptions(
            whole.ids,
            whole.captions if captioned else (),
            whole.owners if captioned else np.zeros(0, np.int64),
            features=FeatureRows(whole.images),
        )
        index = Index.build(data, model, Path(tempfile.mkdtemp()) / "index", store="exact")
        words = [f"{colour} {noun}" for colour in worlds.COLOURS for noun in worlds.NOUNS][:TIMED]
        bare = timed(Searcher(index, model), words, end=False)
        plain = timed(Searcher(index, model), words, end=True)
        index.keep_calibration(calibration)
        judged = timed(Searcher(index, model), words, end=True)
        print(
            f"a search among {pictures:,} pictures {'with' if captioned else 'without'} captions, of {len(words)}:"
            f" {bare:.1f} ms without an end; {plain - bare:+.1f} ms for no calibration,"
            f" {judged - bare:+.1f} ms for the calibration (aim 1 ms)",
            flush=True,
        )
    print(f"whole run: {time.process_time() - start:.0f} s of processor")


def timed(searcher: Searcher, words: list[str], *, end: bool) -> float:
    """Median milliseconds of a search for ten pictures; the first searches read what is held."""
    options = SearchOptions(fold_duplicates=False, end=end)
    vectors = searcher.encode_texts(words)
    for text in words[:5]:
        searcher.search(text, 10, options=options, vectors=vectors)
    took = []
    for text in words[5:]:
        start = time.perf_counter()
        searcher.search(text, 10, options=options, vectors=vectors)
        took.append(time.perf_counter() - start)
    return 1e3 * statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, help="a model of Flickr8K")
    parser.add_argument("--model", type=Path, help="any model at hand, with --data")
    parser.add_argument("--data", type=Path, help="pictures with several captions each, and splits")
    parser.add_argument("--scenes", type=Path, help="a model of generated scenes")
    parser.add_argument("--made", action="store_true", help="vectors made to behave like those of published models")
    parser.add_argument("--keep", type=Path, help="folder for vectors of photos, which take minutes")
    parser.add_argument("--transfer", action="store_true", help="other sizes, and things that nothing was learnt of")
    parser.add_argument("--costs", action="store_true", help="what judging and learning take")
    parser.add_argument("--largest", type=int, default=100_000, help="pictures of the largest index")
    args = parser.parse_args()
    root = Path(os.environ.get("RUNGWISE_DATA", "."))
    if (args.photos and not (root / "flickr8k").is_dir()) or (args.model and args.data is None):
        raise SystemExit("set RUNGWISE_DATA to a folder with flickr8k for --photos, and give --data for --model")
    start = time.perf_counter()
    if args.costs:
        costs(args.largest)
        return
    if args.transfer:
        if args.scenes is not None:
            model = load_dual_encoder(args.scenes, "cpu")
            large = worlds.scenes(model, 8000)
            transfer(large, (500, 2000, 8000))
            strange(worlds.smaller(large, 2000), ("star", "stars", "heart", "hearts"))
        if args.made:
            transfer(worlds.made(args.largest, 100), (500, 8000, args.largest))
        return
    for given, folder in ((args.photos, root / "flickr8k"), (args.model, args.data)):
        if given is not None:
            world = worlds.photos(load_dual_encoder(given, "cpu"), folder, args.keep)
            methods = methods_of(world)
            for texts in (True, False):
                table(world, methods, texts)
    if args.scenes is not None:
        model = load_dual_encoder(args.scenes, "cpu")
        for make in (worlds.scenes, worlds.shop):
            world = make(model)
            methods = methods_of(world)
            for texts in (True, False):
                table(world, methods, texts)
    if args.made:
        world = worlds.made()
        table(world, methods_of(world))
    print(f"\ndone in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
