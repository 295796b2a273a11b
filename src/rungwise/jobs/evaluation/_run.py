"""Evaluation: of a model with data, of files or arrays of scores, or of a result that was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rungwise.core import UserError
from rungwise.core.disk import replacing, require_writable_file, usable_cache
from rungwise.core.output import Progress, short_repr
from rungwise.data import ImageCaptions
from rungwise.evaluation import (
    EvaluationSettings,
    HumanPositives,
    Result,
    Shards,
    by_class,
    card_facts,
    diagnose,
    evaluate_with_people,
    protocol_named,
    published_beside,
    report_page,
    write_false_negatives,
)
from rungwise.evaluation import evaluate as measured
from rungwise.evaluation.analysis import Diagnostics, false_negatives_by_gallery, in_positions_of_data
from rungwise.evaluation.benchmarks import BenchmarkResult
from rungwise.evaluation.inputs import RankOnly, Reranked
from rungwise.evaluation.judgements import RightAnswers
from rungwise.evaluation.report import ReportOrigin, curve_measures
from rungwise.evaluation.statistics import Intervals
from rungwise.evaluation.tables import PublishedRow
from rungwise.jobs._job import function_of
from rungwise.jobs._terminal import console, say
from rungwise.jobs.evaluation._benchmark import benchmark_evaluated, benchmark_of
from rungwise.jobs.evaluation._cutoffs import read_ends
from rungwise.jobs.evaluation._inputs import ScoredInputs, is_place, read_beside, read_scored
from rungwise.jobs.evaluation._options import Evaluate
from rungwise.jobs.evaluation._origin import origin_of
from rungwise.jobs.evaluation._positives import read_people, read_positives, refuse_beside_people
from rungwise.jobs.evaluation._trec import refuse_trec_options, write_trec_files
from rungwise.metrics import Measure, SimilaritySource, Total, parse_all, positives_of
from rungwise.models.io import CARD
from rungwise.runs import is_run_folder, keep_result
from rungwise.training import MODEL

SHARDS = 16
"""Default number of shards of each direction with Ray."""


@dataclass(frozen=True)
class Shown:
    """What a command prints of an evaluation.

    Attributes:
        result: The result.
        rows: Published rows to set beside it.
        intervals: 95 % intervals by the names of its numbers; None where nobody asked for them.
    """

    result: Result
    rows: Sequence[PublishedRow]
    intervals: Intervals | None

    __repr__ = short_repr


def evaluated(
    asked: Evaluate, *, intervals: bool = False, show: Callable[[Shown], None] | None = None, command: str = ""
) -> Result:
    """Evaluate, and write what the options name.

    Args:
        asked: The options.
        intervals: Compute intervals for what is shown.
        show: Called with the result before anything is written.
        command: The command as it was typed, for the report; empty for a call in Python, whose options are shown.

    Raises:
        UserError: If options contradict each other, or what they name does not fit.
    """
    if (kept := _kept_result(asked)) is not None:
        return _of_result(asked, kept, intervals, show)
    given = asked
    asked, run_folder = _of_run(_with_data_in_place(asked))
    if asked.model is not None or asked.rerank is not None:
        usable_cache(asked.cache)
    if asked.card and is_place(asked.model):
        require_writable_file(Path(asked.model) / CARD)
    protocol_named(asked.protocol)  # a mistake in a name should not wait for a model
    parse_all(asked.measures)
    people = asked.judgements
    _refuse_what_contradicts(asked)
    refuse_beside_people(asked, people)
    scored = read_scored(asked)
    scored.refuse_own_opinion(scored.relevance)
    _refuse_missing_degrees(asked, scored, people)
    positives, human = read_positives(asked, people, scored), read_people(asked, people, scored)
    measures = _measures(asked, scored, positives)
    curves = _curves(asked, scored, positives)
    with _shards(asked) as shards:
        settings = _settings(asked, scored, measures, shards, positives)
        human = human or settings.human_positives
        whole = (measured if human is None else partial(evaluate_with_people, human))(
            similarity=scored.similarity,
            image_of_caption=scored.data.image_of_caption,
            relevance=scored.relevance,
            measures=(*measures, *curves),
            protocol=asked.protocol,
            provenance=scored.provenance,
            settings=settings,
        )
    positives = settings.positives
    result = whole.of_measures(measures) if curves else whole
    if asked.by_class:
        result = replace(result, by_class=by_class(result, scored.data.labels))
    found = result.intervals() if intervals or asked.report or asked.card else None
    rows = [row for paper in asked.paper for row in _published(asked, paper, result, scored.split)]
    if show is not None:
        show(Shown(result, rows, found if intervals else None))
    if isinstance(scored.similarity, Reranked):
        _say_cost(scored.similarity, result)
    elif run_folder is not None:
        _keep_in(run_folder, result)
    if asked.out:
        result.to_json(asked.out)
        say(f"written: {asked.out}")
    write_trec_files(asked, scored, replace(settings, human_positives=human))
    if asked.card:
        from rungwise.models import add_evaluation  # torch, which files of numbers do not need

        add_evaluation(str(asked.model), card_facts(result, found))
        say(f"written: {asked.model}/{CARD}")
    if asked.report or asked.false_negatives:
        origin = origin_of(given, scored, command)
        _look_closer(asked, scored, positives, human, result, rows, found, whole, origin)
    return result


def _kept_result(asked: Evaluate) -> Result | None:
    """The result that stands in the place of a model: itself, or the JSON file that holds it."""
    if not asked.has_result:
        return None
    return asked.model if isinstance(asked.model, Result) else Result.from_json(str(asked.model))


def _of_result(asked: Evaluate, kept: Result, intervals: bool, show: Callable[[Shown], None] | None) -> Result:
    """Print, and write, what a result says of the measures that are asked for."""
    if asked.measures:
        names = {name.rpartition("/")[2] for name in kept.numbers}
        others = [one for one in asked.measures if one not in names]  # a measure of the result need not be known here
        if lacking := [str(one) for one in parse_all(others) if str(one) not in names]:
            raise UserError(f"{lacking[0]}: was not measured; in the result are {', '.join(dict.fromkeys(names))}")
        kept = kept.of_measures(asked.measures)
    rows = [row for paper in asked.paper for row in _published(asked, paper, kept, kept.split)]
    if show is not None:
        show(Shown(kept, rows, kept.intervals() if intervals else None))
    if asked.out:
        kept.to_json(asked.out)
        say(f"written: {asked.out}")
    return kept


def _settings(
    asked: Evaluate,
    scored: ScoredInputs,
    measures: Sequence[str | Measure | Total],
    shards: Shards | None,
    positives: RightAnswers | None,
) -> EvaluationSettings:
    """The settings that were given as a value, and what options say beside them, which wins."""
    given = asked.settings or EvaluationSettings()
    ends = None
    if _read_ends(measures) and (asked.calibration is not None or given.ends is None):
        ends = read_ends(asked.calibration, scored)
    own: dict[str, Any] = {"positives": positives, "ends": ends, "shards": shards}
    for name, value in own.items():
        if value is not None and getattr(given, name) is not None:
            say(f"{name} of settings is left aside: an option of the call says otherwise")
    return replace(given, **{name: value for name, value in own.items() if value is not None})


@contextmanager
def _shards(asked: Evaluate) -> Iterator[Shards | None]:
    """Context with the shards of the evaluation and a progress bar; None where it is not cut."""
    count = asked.shards if asked.shards is not None or asked.ray is None else SHARDS
    if count is None:
        yield None
        return
    with ExitStack() as shown:
        bars: list[Progress] = []

        def tell(done: int, total: int) -> None:
            if done == 1:  # of the next gallery
                bars.append(shown.enter_context(Progress("shards", total, console)))
            bars[-1].at(done)

        yield Shards(count, asked.ray, progress=tell)


def _with_data_in_place(asked: Evaluate) -> Evaluate:
    """The options with DATA moved from the place of MODEL, where scores are given."""
    if asked.has_scores and asked.model is not None and asked.data is None:
        given: Any = asked.model
        asked = replace(asked, model=None, data=given if isinstance(given, ImageCaptions) else Path(given))
    return asked


def _of_run(asked: Evaluate) -> tuple[Evaluate, Path | None]:
    """The options with a run's folder replaced by its model, and the folder; None where a model itself is named."""
    if is_place(asked.rerank) and is_run_folder(Path(asked.rerank)):
        asked = replace(asked, rerank=str(Path(asked.rerank) / MODEL))
    if not is_place(asked.model) or not is_run_folder(folder := Path(asked.model)):
        return asked, None
    return replace(asked, model=str(folder / MODEL)), folder


def _refuse_what_contradicts(asked: Evaluate) -> None:
    """Refuse options that do not go with each other."""
    if asked.shards is not None or asked.ray is not None:
        _refuse_beside_shards(asked)
    if asked.rerank is not None:
        _refuse_beside_reranking(asked)
    refuse_trec_options(asked)
    if asked.card and not (is_place(asked.model) and Path(asked.model).is_dir()):
        raise UserError(f"--card writes into the folder of a model, which {asked.model} is not; leave --card out")
    for option, given in (
        ("--captions-per-image", asked.captions_per_image is not None),
        ("--image-of-caption", asked.image_of_caption is not None),
    ):
        if given and asked.data is not None:
            raise UserError(f"{option} contradicts DATA {asked.data}, which says whose each caption is; give one")


def _refuse_beside_reranking(asked: Evaluate) -> None:
    """Refuse early what two models cannot answer."""
    if asked.top is not None and asked.top < 1:
        raise UserError(f"--top must be at least 1, got {asked.top}")
    for option, given, why in (
        ("--ranked-lists", bool(asked.ranked_lists), "shortlists are made from similarities, and lists have none"),
        ("--card", asked.card, "a card says how one model ranks, and these numbers are of two"),
        (
            "--measures of where relevance ends",
            asked.reads_ends,
            "they read the scores of one model, and these rankings are of two",
        ),
    ):
        if given:
            raise UserError(f"{option} and --rerank: {why}; leave one of them out")


def _refuse_beside_shards(asked: Evaluate) -> None:
    """Refuse early what is not measured query by query."""
    option = "--ray" if asked.shards is None else "--shards"
    for other, given, why in (
        ("--ranked-lists", bool(asked.ranked_lists), "lists are short enough for one piece"),
        ("--rerank", asked.rerank is not None, "two models rank in one piece"),
        ("--report", asked.report is not None, "a report looks at all scores in one piece"),
        ("--false-negatives", asked.false_negatives is not None, "they are looked for in one piece"),
    ):
        if given:
            raise UserError(f"{other} and {option}: {why}; leave one of them out")


def _keep_in(run: Path, result: Result) -> None:
    """Store the result in the run, if that is writable; nobody asked for it explicitly."""
    try:
        say(f"kept in the run: {keep_result(run, result)}")
    except UserError as error:
        say(f"not kept in the run: {error}")


def _say_cost(source: Reranked, result: Result) -> None:
    """Print the time of the second stage, which is no part of a result."""
    each = 1000 * source.seconds / sum(result.queries.values())
    say(f"reranking took {source.seconds:.2f} s, {each:.2f} ms a query, after pictures and captions were encoded")


def _read_ends(measures: Iterable[str | Measure | Total]) -> bool:
    return any(measure.reads_ends for measure in parse_all(measures))


def _refuse_missing_degrees(asked: Evaluate, scored: ScoredInputs, people: Sequence[Path]) -> None:
    needing = [str(one) for one in parse_all(asked.measures or protocol_named(asked.protocol).measures) if one.graded]
    needing += ["--false-negatives"] * (asked.false_negatives is not None)
    needing += ["--write-degrees"] * (asked.write_degrees is not None) + ["--levels"] * (asked.levels is not None)
    needing += ["--thresholds"] * bool(asked.thresholds)
    needing += ["--right-from"] * (asked.right_from is not None and not people)
    if needing and scored.relevance is None:
        raise UserError(f"{needing[0]} needs degrees of relevance; give --relevance, or leave {needing[0]} out")


def _measures(
    asked: Evaluate, scored: ScoredInputs, positives: RightAnswers | None
) -> tuple[str | Measure | Total, ...]:
    """The requested measures; else the protocol's, without those that short lists cannot answer."""
    usual = asked.measures or protocol_named(asked.protocol).measures
    lists = scored.similarity
    if asked.measures or not isinstance(lists, RankOnly):
        return usual
    right = positives or positives_of(scored.data.image_of_caption, len(scored.data))
    kept = []
    for measure in parse_all(usual):
        terms = measure.terms if isinstance(measure, Total) else (measure,)
        reasons = [why for term in terms if (why := lists.reads(term, right))]
        if reasons:
            say(f"left out {measure}: {reasons[0]}")
        else:
            kept.append(str(measure))
    if not kept:
        raise UserError("the ranked lists are too short for every usual measure; ask for --measures that they answer")
    return tuple(kept)


def _curves(asked: Evaluate, scored: ScoredInputs, positives: RightAnswers | None) -> tuple[str, ...]:
    """Measures that the report plots under the protocol labels, as far as short lists can answer them."""
    if asked.report is None or asked.protocol != "labels" or positives is None:
        return ()
    lists = scored.similarity
    measures = parse_all(curve_measures(*lists.shape))
    if isinstance(lists, RankOnly):
        return tuple(str(one) for one in measures if isinstance(one, Measure) and not lists.reads(one, positives))
    return tuple(str(one) for one in measures)


def _published(asked: Evaluate, paper: str, result: Result, split: str) -> list[PublishedRow]:
    rows = published_beside(result, paper, dataset=asked.dataset, split=split)
    theirs = dict.fromkeys(name for row in rows for name in row.numbers)
    if not any(name in result.numbers for name in theirs):
        raise UserError(
            f"--paper {paper}: its rows have none of these --measures; ask for one of"
            f" {', '.join(dict.fromkeys(name.rpartition('/')[2] for name in theirs))}"
        )
    return rows


def _look_closer(
    asked: Evaluate,
    scored: ScoredInputs,
    positives: RightAnswers | None,
    human: HumanPositives | None,
    result: Result,
    rows: list[PublishedRow],
    intervals: Intervals | None,
    whole: Result,
    origin: ReportOrigin,
) -> None:
    """Write the report and the false negatives; ``whole`` also holds the measures of curves."""

    def diagnosed(similarity: SimilaritySource) -> Diagnostics:
        return diagnose(
            similarity,
            scored.data,
            relevance=scored.relevance,
            positives=positives,
            human_positives=human,
            protocol=asked.protocol,
            thresholds=asked.thresholds,
        )

    found = diagnosed(scored.similarity)
    galleries = None if asked.false_negatives else 1  # a report shows those of the first
    # Beside judgements, --right-from is a grade of theirs.
    right_from = asked.right_from if human is None else None
    wrong = false_negatives_by_gallery(found, right_from=right_from, galleries=galleries)
    if asked.false_negatives:
        everywhere = in_positions_of_data(found, wrong)
        write_false_negatives(asked.false_negatives, everywhere, scored.data)
        say(f"written: {asked.false_negatives} ({len(everywhere)} candidates)")
        if not len(everywhere) and human is None:
            needed = "the degree of the query's own captions" if right_from is None else f"{right_from:g}"
            say(f"none of the candidates ranked first reaches {needed}; give a lower --right-from")
    if asked.report:
        page = report_page(
            result,
            found,
            false_negatives=wrong[0],
            published=rows,
            intervals=intervals,
            beside=diagnosed(read_beside(asked.beside, scored, asked)) if asked.beside else None,
            names=asked.names,
            has_texts=scored.has_texts,
            curves=whole,
            origin=origin,
            explain=scored.orders.explain if scored.orders is not None and scored.orders.explains else None,
        )
        with replacing(asked.report) as draft:
            draft.write_text(page, encoding="utf-8")
        say(f"report: {asked.report}")


def _either(asked: Evaluate) -> Result | BenchmarkResult:
    """The result of a collection, or of a benchmark where the data are one."""
    layout = benchmark_of(asked)
    return evaluated(asked) if layout is None else benchmark_evaluated(asked, layout)


evaluate = function_of(
    "evaluate",
    Evaluate,
    _either,
    """
    Returns:
        Result with numbers named ``i2t/...`` and ``t2i/...``, and sums such as ``rsum``. Of a folder that holds a
        benchmark (:mod:`rungwise.evaluation.benchmarks`), its result with the benchmark's own measures.

    Raises:
        UserError: If options contradict each other, or what they name does not fit.

    >>> import numpy as np, rungwise
    >>> image, text = np.eye(3), np.eye(3)[[0, 1, 1, 2]]
    >>> result = rungwise.evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=[0, 1, 1, 2])
    >>> result["i2t/R@1"], result["t2i/MedR"], result.per_query("t2i/R@1")
    (100.0, 1.0, array([100., 100., 100., 100.]))
    """,
)
