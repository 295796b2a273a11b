"""Evaluation of a model on a benchmark: a folder of questions with their own candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.disk import usable_cache
from rungwise.core.output import one_line
from rungwise.data import READERS, ImageCaptions, Issue
from rungwise.data.pictures import load_picture, unreadable_picture
from rungwise.evaluation.benchmarks import (
    BENCHMARKS,
    Benchmark,
    BenchmarkQuestion,
    BenchmarkResult,
    ScoreQuestion,
    benchmark_layout,
    evaluate_benchmark,
    read_benchmark,
)
from rungwise.jobs._models import encoding_in, read_model, say_cut
from rungwise.jobs._terminal import progress_bar, say, say_issues
from rungwise.jobs.evaluation._inputs import is_place
from rungwise.jobs.evaluation._options import Evaluate
from rungwise.models import DualEncoder, PairScorer
from rungwise.runs import is_run_folder
from rungwise.training import MODEL

_TAKEN = ("model", "data", "layout", "out", "device", "precision", "least_cosine", "altered_model", "cache", "quiet")
"""Options that a benchmark takes; the split of CIRCO is the one with answers."""
_PAIRS = 1 << 16
"""Number of a query's candidates whose vectors are compared at a time."""


def benchmark_of(asked: Evaluate) -> str | None:
    """Layout of the benchmark that DATA holds, as it was asked for or is recognised; None for a collection."""
    if not isinstance(asked.data, Path) or asked.has_result:
        return None
    if asked.layout is not None:
        return asked.layout if asked.layout in BENCHMARKS and not READERS.has(asked.layout) else None
    return benchmark_layout(asked.data)


def benchmark_evaluated(asked: Evaluate, layout: str) -> BenchmarkResult:
    """Measure a model on the benchmark of a layout in DATA, and write what the options name.

    Raises:
        UserError: If an option means nothing here, or the model has no vectors where they are needed.
    """
    assert isinstance(asked.data, Path)
    _refuse_what_means_nothing(asked, layout)
    usable_cache(asked.cache)
    benchmark = read_benchmark(asked.data, layout)
    say_issues(benchmark.issues)
    name = asked.model
    assert name is not None
    if is_place(name) and is_run_folder(Path(name)):
        name = str(Path(name) / MODEL)
    assert isinstance(name, str | PairScorer)
    model = read_model(name, asked.device, altered=asked.altered_model)
    if not isinstance(model, DualEncoder) and not benchmark.crosses:
        raise UserError(
            f"{asked.data}: asks with pictures and texts together, which needs a model with vectors, and"
            f" {one_line(str(asked.model), 100)} scores pairs; give a dual encoder"
        )
    say_cut(model, benchmark.texts)
    with encoding_in(name, asked.precision, asked.least_cosine):
        kept, score = (
            _by_vectors(model, benchmark, asked)
            if isinstance(model, DualEncoder)
            else _by_pairs(model, benchmark, asked)
        )
        seed = model.provenance.get("seed")
        result = evaluate_benchmark(
            kept, score, model_hash=model.fingerprint, seed=seed if isinstance(seed, int) else None
        )
    if asked.out:
        result.to_json(asked.out)
        say(f"written: {asked.out}")
    return result


def _refuse_what_means_nothing(asked: Evaluate, layout: str) -> None:
    usual = Evaluate()
    if layout == "circo" and asked.split == "val":
        asked = replace(asked, split=usual.split)  # what is measured in any case
    for name in (one.name for one in fields(Evaluate)):
        if name not in _TAKEN and getattr(asked, name) != getattr(usual, name):
            raise UserError(
                f"--{name.replace('_', '-')} is of collections, and {asked.data} is a benchmark ({layout}) with its own"
                " questions and measures; leave it out"
            )
    if asked.model is None:
        raise UserError(f"{asked.data}: is a benchmark ({layout}), which a model answers; give MODEL before it")


def _by_vectors(model: DualEncoder, benchmark: Benchmark, asked: Evaluate) -> tuple[Benchmark, ScoreQuestion]:
    """Scores by vectors: every text and picture is encoded once.

    An item of a text and a picture is the sum of both vectors, each brought to length 1, brought to length 1, as a
    search of several parts asks (:func:`rungwise.index.query.combined`). Candidates stand where images stand in the
    model's similarity, and the query where texts stand; where a picture asks for texts, the other way round.
    """
    from rungwise.index.query import combined

    with progress_bar("pictures", len(benchmark.pictures)) as advance:
        encoded = model.encode_image(benchmark.pictures, cache=asked.cache, progress=advance)
    lost = set(range(len(benchmark.pictures))) - set(encoded.kept.tolist())
    kept = _without(benchmark, lost, encoded.issues)
    with progress_bar("texts", len(benchmark.texts)) as advance:
        texts = model.encode_captions(benchmark.texts, cache=asked.cache, progress=advance)
    pictures = np.zeros((len(benchmark.pictures), model.dimension), np.float32)
    pictures[encoded.kept] = encoded.vectors
    has_text, has_picture = (benchmark.items >= 0).T
    vectors = np.empty((len(benchmark.items), model.dimension), np.float32)
    vectors[~has_picture] = texts[benchmark.items[~has_picture, 0]]
    vectors[~has_text] = pictures[benchmark.items[~has_text, 1]]
    for item in np.flatnonzero(has_text & has_picture).tolist():
        text, picture = benchmark.items[item].tolist()
        if picture not in lost:
            vectors[item] = combined([texts[text], pictures[picture]], [1, 1])[0]
    compare = model.similarity.array

    def score(question: BenchmarkQuestion) -> NDArray[np.floating]:
        own, query = question.candidates, vectors[question.query][None]
        asks_texts = not has_text[question.query] and not has_picture[own].any()
        found = np.empty(len(own), np.float32)
        for begin in range(0, len(own), _PAIRS):
            some = vectors[own[begin : begin + _PAIRS]]
            found[begin : begin + _PAIRS] = compare(query, some)[0] if asks_texts else compare(some, query)[:, 0]
        return found

    return kept, score


def _by_pairs(model: PairScorer, benchmark: Benchmark, asked: Evaluate) -> tuple[Benchmark, ScoreQuestion]:
    """Scores of a model without vectors: each picture is read once, with the texts that it is asked with."""
    issues: dict[int, Issue] = {}
    for at, picture in enumerate(benchmark.pictures):
        try:
            load_picture(picture, shorter_side=model.decoded_side)
        except UserError as error:
            issues[at] = unreadable_picture(str(picture), error)
    kept = _without(benchmark, set(issues), tuple(issues.values()))
    wanted: dict[tuple[int, int], int] = {}
    for question in kept.questions:
        for pair in _pairs_of(question, kept):
            wanted.setdefault(pair, len(wanted))
    used = sorted({picture for picture, _ in wanted})
    place = {picture: at for at, picture in enumerate(used)}
    data = ImageCaptions(
        tuple(str(picture) for picture in used),
        kept.texts,
        np.zeros(len(kept.texts), np.int64),
        paths=tuple(kept.pictures[picture] for picture in used),
        name=kept.name,
    )
    with progress_bar("pictures", len(used)) as advance:
        scores = model.on(data, cache=asked.cache, progress=advance)
    if scores.issues:
        first = scores.issues[0]
        raise UserError(f"{kept.name}: {first.where}: {first.detail}; copy the picture again, or remove it")
    found = scores.pairs([place[picture] for picture, _ in wanted], [text for _, text in wanted])

    def score(question: BenchmarkQuestion) -> NDArray[np.floating]:
        chosen: NDArray[np.floating] = found[[wanted[pair] for pair in _pairs_of(question, kept)]]
        return chosen

    return kept, score


def _pairs_of(question: BenchmarkQuestion, benchmark: Benchmark) -> list[tuple[int, int]]:
    """Position of the picture and of the text of each pair that a question compares."""
    text, picture = benchmark.items[question.query].tolist()
    own = benchmark.items[question.candidates].tolist()
    return [(one, text) if picture < 0 else (picture, other) for other, one in own]


def _without(benchmark: Benchmark, lost: set[int], issues: Sequence[Issue]) -> Benchmark:
    if not lost:
        return benchmark
    kept = benchmark.without_pictures(lost, issues)
    say(f"{len(lost):,} of {len(benchmark.pictures):,} pictures could not be read; their examples are left out")
    say_issues(issues)
    return kept
