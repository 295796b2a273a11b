"""Where relevance ends: CutF1 of every method, calibration error, and queries that fit nothing.

    RUNGWISE_DATA=... python benchmarks/cutting.py --weak MODEL --quick MODEL --scenes MODEL
    RUNGWISE_DATA=... python benchmarks/cutting.py --weak MODEL --scenes MODEL --transfer

``--weak`` and ``--quick`` are trained on Flickr8K's training split. Methods choose their numbers on the validation
split and are judged on the test split. Queries are captions; relevant are pictures of which a source that trained
nothing there says so: for ``--weak`` MiniLM (best reference >= .5), for ``--quick``, whose text side is MiniLM, tf-idf
(>= .25); and what the crowd said, which no method has seen. ``--scenes`` is trained on generated scenes; methods are
fitted on fresh scenes and judged on others; degrees are exact, relevant is what the query is true of.

"way" is how far of the way from the best flat threshold to the best cut of each query, which no method can know.
After ± stands half of the 95 % interval: bootstrap over the queries' pictures. ECE is of expected degrees, over all
pictures and over the 10 and 100 best hits. "text" and "captions" say what of the query is known: its vector, and the
captions of the hits, its own left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cutting_data import (
    CROWD_FROM,
    SOURCES,
    Asked,
    crowd,
    flickr8k,
    scenes,
    worlds,
)
from rungwise.calibration import (
    UNRELATED,
    Background,
    Calibration,
    FlatThreshold,
    Known,
    LargestGap,
    Oracle,
    ShareOfBest,
    TopK,
)
from rungwise.metrics import ECE, CutF1, CutPrecision, CutRecall, Ends, JudgedQueries, Positives, Rankings, judged_by
from rungwise.models import DualEncoder, load_dual_encoder

AT_ONCE = 256
DRAWS = 1000
SAMPLE = 2048
"""Vectors of an index that stand for all of it."""
SIZES = (500, 8_000, 100_000)
TIMED = 200
FLAT, BEST = "best flat threshold", "best cut of a query"
SCORES, TEXT, FULL = "supervised: scores", "  and text", "  and captions"
CONSOLE = Console(width=100, highlight=False)
Values = NDArray[np.float64]


class CountKnown:
    """Shows as many hits as there are relevant candidates: what the count alone could give."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts

    def judge(self, scores: NDArray[np.float32], direction: str, queries: NDArray[np.int64]) -> JudgedQueries:
        """See :class:`rungwise.metrics.Ends`."""
        return JudgedQueries(self.counts[queries], (self.counts[queries] > 0).astype(np.float64))


def fitted(fit: Asked, model: DualEncoder, relevant_from: float) -> dict[str, Calibration]:
    """Calibrations: by nothing, by unrelated texts, by degrees; the last reads whatever is known of a query."""
    unrelated = fit.questions(model, UNRELATED)
    return {
        "unsupervised: bulk": Calibration.unsupervised(),
        "unsupervised: unrelated": Calibration.unsupervised(unrelated.similarity),
        FULL: Calibration.fit(
            fit.similarity,
            fit.relevance,
            relevant_from,
            known=fit.known(captions=True),
            unrelated=unrelated.similarity,
            unrelated_known=unrelated.known(captions=True),
        ),
    }


def methods_of(
    fit: Asked, judged: Asked, calibrations: dict[str, Calibration], fit_from: float, relevant_from: float
) -> dict[str, Ends]:
    """Every method, ready to judge."""
    out: dict[str, Ends] = {
        FLAT: FlatThreshold.fit(fit.similarity, fit.relevance, fit_from),
        "share of best score": ShareOfBest.fit(fit.similarity, fit.relevance, fit_from),
        "largest gap": LargestGap.fit(fit.similarity, fit.relevance, fit_from),
        "top k": TopK.fit(fit.similarity, fit.relevance, fit_from),
    }
    *unsupervised, learnt = calibrations.items()
    out |= dict(unsupervised)
    out[SCORES] = learnt[1]
    out[TEXT] = learnt[1].informed(judged.known(captions=False))
    out[FULL] = learnt[1].informed(judged.known(captions=True))
    out["bound: number known"] = CountKnown((judged.relevance >= relevant_from).sum(axis=1))
    out[BEST] = Oracle(judged.relevance, relevant_from)
    return out


def measured(method: Ends, asked: Asked, relevant_from: float) -> tuple[dict[str, Values], Values]:
    """Values of every query by measure, and how many hits were shown."""
    measures = {
        "f1": CutF1(relevant_from),
        "precision": CutPrecision(relevant_from),
        "recall": CutRecall(relevant_from),
        "ece": ECE(),
        "ece10": ECE(10),
        "ece100": ECE(100),
    }
    found: dict[str, list[Values]] = {name: [] for name in measures}
    cuts = []
    for start in range(0, len(asked.similarity), AT_ONCE):
        some = np.arange(start, min(start + AT_ONCE, len(asked.similarity)))
        judged = judged_by(method, asked.similarity[some], "t2i", some)
        nothing = Positives(np.zeros(len(some) + 1, np.int64), np.empty(0, np.int64))
        rankings = Rankings(nothing, asked.similarity[some], asked.relevance[some], "t2i", judged=judged)
        for name, measure in measures.items():
            if judged.degrees is not None or not name.startswith("ece"):
                found[name].append(measure.per_query(rankings))
        cuts.append(judged.cuts)
    return {name: np.concatenate(parts) for name, parts in found.items() if parts}, np.concatenate(cuts)


def draws(groups: NDArray[np.int64]) -> NDArray[np.float32]:
    """(draws, queries) how often a query counts when pictures are drawn with replacement."""
    _, picture = np.unique(groups, return_inverse=True)
    count = int(picture.max()) + 1
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), DRAWS).astype(np.float32)
    return drawn[:, picture]


def with_half(mean: float, drawn: Values, digits: int) -> str:
    """The mean, and half of the interval of 95 %."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{mean:.{digits}f} ±{(high - low) / 2:.{digits}f}"


def compare(title: str, methods: dict[str, Ends], asked: Asked, relevant_from: float, degrees: bool = True) -> None:
    """Print one table."""
    found = {name: measured(method, asked, relevant_from) for name, method in methods.items()}
    weights = draws(asked.groups)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = {name: float(values["f1"].mean()) for name, (values, _) in found.items()}
    drawn = {name: weights @ values["f1"] for name, (values, _) in found.items()}
    relevant = (asked.relevance >= relevant_from).sum(axis=1)
    table = Table(
        title=f"{title}\n{len(relevant):,} queries, {asked.similarity.shape[1]:,} pictures,"
        f" {relevant.mean():.1f} relevant",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method", no_wrap=True)
    heads = ["CutF1", "way", "prec.", "recall", "shown"]
    for head in heads + (["ECE", "@10", "@100"] if degrees else []):
        table.add_column(head, justify="right", no_wrap=True)
    for name, (values, cuts) in found.items():
        span = mean[BEST] - mean[FLAT]
        way = (drawn[name] - drawn[FLAT]) / (drawn[BEST] - drawn[FLAT])
        inner = name not in (FLAT, BEST)
        cells = [with_half(mean[name], drawn[name], 1)]
        cells += [with_half((mean[name] - mean[FLAT]) / span, way, 2) if inner else ""]
        cells += [f"{values[part].mean():.0f}" for part in ("precision", "recall")] + [f"{cuts.mean():.1f}"]
        if degrees:
            parts = (("ece", ECE()), ("ece10", ECE(10)), ("ece100", ECE(100)))
            cells += [f"{measure.aggregate(values[part]):.3f}" if part in values else "" for part, measure in parts]
        table.add_row(name, *cells)
    CONSOLE.print(table)


def beliefs(method: Callable[[Values, int], float], asked: Asked) -> Values:
    return np.array([method(scores, query) for query, scores in enumerate(asked.similarity)])


def area(something: Values, nothing: Values) -> float:
    """That a query with something relevant is believed in more than one without; ties count half."""
    ordered = np.sort(nothing)
    below = np.searchsorted(ordered, something, "left") + np.searchsorted(ordered, something, "right")
    return float(below.mean() / (2 * len(nothing)))


def nothing(title: str, test: Asked, calibrations: dict[str, Calibration], others: dict[str, Asked], t: float) -> None:
    """Print how well every belief tells the queries from other worlds', and from themselves without their pictures."""
    some = test.only(np.arange(len(test.images)), np.arange(0, len(test.texts), max(1, len(test.texts) // 1000)))
    table = Table(
        title=f"{title}: NoneAUROC, captions of the split against other worlds, and without their pictures",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("belief", no_wrap=True)
    for name in [*others, "all", "emptied"]:
        table.add_column(name, justify="right", no_wrap=True)

    def row(name: str, belief: Callable[[Asked], Callable[[Values, int], float]], emptied: Values) -> None:
        right = beliefs(belief(some), some)
        wrong = [beliefs(belief(other), other) for other in others.values()]
        everything = [area(right, np.concatenate(wrong))] if wrong else []
        numbers = [area(right, one) for one in wrong] + everything + [area(right, emptied)]
        table.add_row(name, *(f"{number:.3f}" for number in numbers))

    kept = [np.flatnonzero(degrees < t) for degrees in some.relevance]

    def best_over_median(scores: Values, _: int) -> float:
        return float(np.sort(scores)[-10:].mean() - np.median(scores))

    row(
        "mean of 10 best less median",
        lambda _: best_over_median,
        np.array([best_over_median(scores[at], 0) for scores, at in zip(some.similarity, kept, strict=True)]),
    )
    for name, calibration in calibrations.items():
        for captions in (None, False, True) if calibration.learnt else (None,):
            label = {None: SCORES, False: TEXT, True: FULL}[captions]

            def of(
                asked: Asked, calibration: Calibration = calibration, captions: bool | None = captions
            ) -> Callable[[Values, int], float]:
                known = asked.known(captions) if captions is not None else [None] * len(asked.texts)
                return lambda scores, query: calibration.belief(scores, known[query])

            empty = np.array([calibration.belief(*one) for one in emptied(some, kept, captions)])
            row(label if calibration.learnt else name, of, empty)
    CONSOLE.print(table)


def emptied(
    asked: Asked, kept: list[NDArray[np.int64]], captions: bool | None
) -> Iterable[tuple[Values, Known | None]]:
    """Scores of every query without its relevant pictures, and what is then known of it."""
    facts = asked.known(captions) if captions is not None else [None] * len(kept)
    for scores, left, known in zip(asked.similarity, kept, facts, strict=True):
        if known is not None and known.caption_scores is not None:
            known = replace(known, caption_scores=known.caption_scores[left])
        yield scores[left], known


def first(args: argparse.Namespace) -> None:
    """Show 1."""
    others = worlds(args.data, args.words)
    for given, source in ((args.weak, "minilm"), (args.quick, "tfidf")):
        if given is None:
            continue
        model, t = load_dual_encoder(given, "cpu"), SOURCES[source][1]
        val, test = flickr8k(model, args.data / "flickr8k", source, args.queries, args.keep)
        title = f"Flickr8K test, {given}, relevant: {source} best reference >= {t:g}"
        calibrations = fitted(val, model, t)
        compare(title, methods_of(val, test, calibrations, t, t), test, t)
        people = crowd(test, args.data / "flickr8k")
        methods = methods_of(val, people, calibrations, t, CROWD_FROM)
        title = f"Flickr8K test, {given}, relevant: most of the crowd said yes; methods saw {source} on validation"
        compare(title, methods, people, CROWD_FROM, degrees=False)
        asked = {name: test.questions(model, texts) for name, texts in others.items()}
        nothing("Flickr8K test", test, calibrations, asked, t)
    if args.scenes is not None:
        model = load_dual_encoder(args.scenes, "cpu")
        fit, judged = (scenes(model, args.pictures, args.queries, seed, args.side)[0] for seed in (101, 102))
        for t in (1.0, 0.75):
            near = t - 1e-6
            calibrations = fitted(fit, model, near)
            title = f"fresh scenes, {args.scenes}, relevant: degree {'1' if t == 1 else f'>= {t:g}'}"
            compare(title, methods_of(fit, judged, calibrations, near, near), judged, near)
            if t == 1:
                asked = {name: judged.questions(model, texts) for name, texts in others.items()}
                nothing("fresh scenes", judged, calibrations, asked, near)


def second(args: argparse.Namespace) -> None:
    """Show 2."""
    if args.weak is not None:
        model, (_, t) = load_dual_encoder(args.weak, "cpu"), SOURCES["minilm"]
        val, test = flickr8k(model, args.data / "flickr8k", "minilm", args.queries, args.keep)
        half = np.arange(0, len(test.images), 2)
        small = test.only(half, np.flatnonzero(np.isin(test.groups, half)))
        calibrations = fitted(val, model, t)
        compare(
            "Flickr8K: fitted at 1,000 pictures, judged at 500", methods_of(val, small, calibrations, t, t), small, t
        )
    if args.scenes is None:
        return
    model, t = load_dual_encoder(args.scenes, "cpu"), 1 - 1e-6
    fit, _ = scenes(model, args.pictures, args.queries, 101, args.side)
    large, data = scenes(model, SIZES[1], 1000, 102, args.side)
    calibrations = fitted(fit, model, t)
    for size in SIZES:
        now = large if size == SIZES[1] else resized(large, size, model)
        title = f"scenes: fitted at {len(fit.images):,} pictures, judged at {size:,}"
        methods = methods_of(fit, now, calibrations, t, t)
        compare(title, {name: methods[name] for name in methods if "captions" not in name}, now, t, degrees=False)
        if size == SIZES[-1]:
            timed(now, calibrations[FULL])
    texts = np.array([any(word in text.split() for word in args.objects) for text in data.captions])
    strange = np.array([texts[large.image_of_caption == image].any() for image in range(len(large.images))])
    about = texts[large.own]
    usual = large.only(np.flatnonzero(~strange), np.flatnonzero(~strange[large.groups]))
    other = large.only(np.flatnonzero(strange), np.flatnonzero(strange[large.groups] & about))
    words = ", ".join(args.objects)
    title = f"scenes: fitted where no caption names {words}; judged where each picture has a caption that does"
    compare(title, methods_of(usual, other, fitted(usual, model, t), t, t), other, t)


def resized(asked: Asked, size: int, model: DualEncoder) -> Asked:
    """Fewer pictures, or each several times with a little noise on its vector, asked by a fifth of the queries."""
    total = len(asked.images)
    if size < total:
        images = np.arange(size)
        return asked.only(images, np.flatnonzero(asked.groups < size))
    copies = np.resize(np.arange(total), size)
    noise = np.random.default_rng(0).standard_normal((size, asked.images.shape[1]), dtype=np.float32)
    noise *= 0.1 / np.sqrt(noise.shape[1])
    noise[:total] = 0
    vectors = asked.images[copies] + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = np.arange(0, len(asked.texts), 5)
    return Asked(
        vectors,
        asked.captions,
        asked.image_of_caption,
        asked.texts[queries],
        asked.own[queries],
        asked.unknown[queries],
        model.similarity.array(asked.texts[queries], vectors),
        asked.relevance[np.ix_(queries, copies)],
        asked.groups[queries],
    )


def timed(asked: Asked, calibration: Calibration) -> None:
    """Print what a query takes with and without being judged."""
    sample = asked.images[np.random.default_rng(0).choice(len(asked.images), SAMPLE, replace=False)]
    bare, judging = [], []
    for number, known in enumerate(asked.known(captions=False)[:TIMED]):
        vector = asked.texts[number]
        start = time.perf_counter()
        scores = asked.images @ vector
        hits = np.argpartition(-scores, 200)[:200]
        falling = scores[hits[np.argsort(-scores[hits], kind="stable")]]
        found = time.perf_counter()
        calibration.judge_hits(falling, Background(sample @ vector, len(asked.images)), known)
        bare.append(found - start)
        judging.append(time.perf_counter() - found)
    CONSOLE.print(
        f"a query at {len(asked.images):,} pictures, median of {len(bare)}:"
        f" search {statistics.median(bare) * 1e3:.2f} ms,"
        f" judging {statistics.median(judging) * 1e3:.2f} ms more (aim 1 ms)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="holds flickr8k and others")
    parser.add_argument("--weak", type=Path, help="a model of Flickr8K that MiniLM had no part in")
    parser.add_argument("--quick", type=Path, help="a model of Flickr8K whose text side may be MiniLM")
    parser.add_argument("--scenes", type=Path, help="a model of generated scenes")
    parser.add_argument(
        "--words", type=Path, help="word vectors in GloVe's text format, whose words are drawn at random"
    )
    parser.add_argument("--queries", type=int, default=3000, help="captions that ask, of each split")
    parser.add_argument("--pictures", type=int, default=2000, help="fresh scenes to fit on, and to judge")
    parser.add_argument("--side", type=int, default=64, help="pixels of a scene")
    parser.add_argument("--objects", nargs="+", default=["star", "stars", "heart", "hearts"], help="held out of a fit")
    parser.add_argument("--keep", type=Path, help="folder for degrees, which take a minute; made anew where missing")
    parser.add_argument("--transfer", action="store_true", help="fitted on one collection, judged on another; times")
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit("give --data or set RUNGWISE_DATA")
    args.data = Path(args.data)
    start = time.perf_counter()
    (second if args.transfer else first)(args)
    CONSOLE.print(f"done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
