"""The measures of each benchmark, from the scores of its questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rungwise.core.version import __version__
from rungwise.evaluation.benchmarks._benchmark_result import BenchmarkResult
from rungwise.evaluation.benchmarks._hits import average_precision, hit, target_recall
from rungwise.evaluation.benchmarks._questions import Benchmark, BenchmarkQuestion, ScoreQuestion

CUTS = (5, 10, 25, 50)
"""Places at which CIRCO's measures end."""

_Value = tuple[str, str, float]
"""Name of a number, id of the question or example, and its value."""

PROTOCOLS: Mapping[str, str] = {
    "winoground": "winoground: all questions of an example right, ties are wrong (Thrush et al. 2022, Eq. 1 to 3)",
    "sugarcrepe": "sugarcrepe: the caption scores higher than the negative one, ties are wrong (Hsieh et al. 2023)",
    "circo": "circo: mAP@K over min(K, right answers), Recall@K of the target (Baldrati et al. 2023)",
    "mmeb": "mmeb: the first candidate scores highest, ties are wrong (Jiang et al. 2024)",
}
"""What counts as right, by layout."""


def evaluate_benchmark(
    benchmark: Benchmark, score: ScoreQuestion, *, model_hash: str = "", seed: int | None = None
) -> BenchmarkResult:
    """Measure a benchmark with its own measures, in percent, with a value for each question or example.

    Args:
        benchmark: The questions.
        score: Scores the candidates of one question at a time.
        model_hash: Hash of the model, for the result.
        seed: Seed of the model's training, for the result.

    Returns:
        Numbers by name. Winoground: ``text``, ``image``, ``group``, and those of each tag. SugarCrepe: ``accuracy``
        of all questions, of each category, and of each kind as the mean of its categories. CIRCO: ``mAP@5`` and so
        on, ``Recall@5`` and so on, and ``mAP@10`` of each semantic aspect. MMEB: ``P@1`` of each data set, and their
        mean.
    """
    values: dict[str, list[float]] = defaultdict(list)
    ids: dict[str, list[str]] = defaultdict(list)
    for name, question, value in _VALUES[benchmark.layout](benchmark, score):
        values[name].append(value)
        ids[name].append(question)
    means = _MEANS[benchmark.layout](benchmark, tuple(values))
    numbers = {name: float(np.mean(own)) for name, own in values.items()}
    numbers |= {name: float(np.mean([numbers[one] for one in parts])) for name, parts in means.items()}
    order = sorted(numbers, key=lambda name: ("(" in name, name not in means, list(numbers).index(name)))
    return BenchmarkResult(
        benchmark=benchmark.layout,
        numbers={name: numbers[name] for name in order},
        units=dict.fromkeys(order, "percent"),
        protocol=PROTOCOLS[benchmark.layout],
        data_name=benchmark.name,
        data_hash=benchmark.content_hash(),
        model_hash=model_hash,
        seed=seed,
        version=__version__,
        warnings=benchmark.warnings,
        left_out=benchmark.left_out,
        means=means,
        per_question={name: tuple(own) for name, own in values.items()},
        question_ids={name: tuple(own) for name, own in ids.items()},
    )


def _of_examples(benchmark: Benchmark, score: ScoreQuestion) -> Iterator[_Value]:
    """Winoground: text score (both captions found), image score (both pictures found), group score (both)."""
    examples: dict[str, list[BenchmarkQuestion]] = defaultdict(list)
    for one in benchmark.questions:
        examples[one.example].append(one)
    for example, questions in examples.items():
        found = {
            group: min(hit(score(one), one.right) for one in questions if one.group == group)
            for group in ("text", "image")
        }
        found["group"] = min(found.values())
        for name, value in found.items():
            yield name, example, value
            for tag in questions[0].tags:
                yield f"{name}({tag})", example, value


def _of_categories(benchmark: Benchmark, score: ScoreQuestion) -> Iterator[_Value]:
    for one in benchmark.questions:
        value = hit(score(one), one.right)
        yield "accuracy", one.example, value
        yield f"accuracy({one.group})", one.example, value


def _of_gallery(benchmark: Benchmark, score: ScoreQuestion) -> Iterator[_Value]:
    for one in benchmark.questions:
        scores = score(one)
        for k in CUTS:
            yield f"mAP@{k}", one.example, average_precision(scores, one.right, k)
        for k in CUTS:
            yield f"Recall@{k}", one.example, target_recall(scores, int(one.right[0]), k)
        for tag in one.tags:
            yield f"mAP@10({tag})", one.example, average_precision(scores, one.right, 10)


def _of_data_sets(benchmark: Benchmark, score: ScoreQuestion) -> Iterator[_Value]:
    for one in benchmark.questions:
        yield f"P@1({one.group})", one.example, hit(score(one), one.right)


def _kinds(benchmark: Benchmark, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """SugarCrepe's kinds add, replace and swap, each the mean of its categories."""
    of_kind: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if "_" in name:
            of_kind[f"{name.partition('_')[0]})"].append(name)
    return {kind: tuple(own) for kind, own in of_kind.items()}


def _all(benchmark: Benchmark, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"P@1": names}


def _none(benchmark: Benchmark, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {}


_VALUES: Mapping[str, Callable[[Benchmark, ScoreQuestion], Iterator[_Value]]] = {
    "winoground": _of_examples,
    "sugarcrepe": _of_categories,
    "circo": _of_gallery,
    "mmeb": _of_data_sets,
}
_MEANS: Mapping[str, Callable[[Benchmark, tuple[str, ...]], dict[str, tuple[str, ...]]]] = {
    "winoground": _none,
    "sugarcrepe": _kinds,
    "circo": _none,
    "mmeb": _all,
}
