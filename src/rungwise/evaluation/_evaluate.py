"""Evaluation: from embeddings or scores to a :class:`~rungwise.evaluation.Result`."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration import Calibration
from rungwise.core import UserError, digest_of_parts
from rungwise.core.formats import in_file
from rungwise.core.output import short_repr
from rungwise.core.version import __version__
from rungwise.evaluation._evaluation_settings import EvaluationSettings, Provenance
from rungwise.evaluation._protocols import Fold, Protocol, protocol_named
from rungwise.evaluation._sharding import check_divisible, measuring
from rungwise.evaluation.inputs import RankOnly, Reranked, checked_degrees, checked_owners, similarity_source
from rungwise.evaluation.judgements import HumanPositives, RightAnswers, check_positives
from rungwise.evaluation.result import Reranking, Result
from rungwise.metrics import (
    DIRECTIONS,
    CheckedDegrees,
    Direction,
    Ends,
    JudgedQueries,
    Measure,
    Positives,
    ProductSource,
    QueryValues,
    Scores,
    SimilaritySource,
    Total,
    name_of_ends,
    parse_all,
    positives_of,
)
from rungwise.relevance import Degrees as RelevanceSource

if TYPE_CHECKING:
    from rungwise.similarity import Similarity

DEFAULT_MEASURES = ("R@1", "R@5", "R@10", "MedR", "MeanR", "rsum")
"""Measures that most papers report."""
_SHOWN = 12
"""Smallest number of characters of a fingerprint that messages print."""
_ROWS = 1024
"""Number of rows of a matrix of degrees that are hashed at a time."""


def evaluate(
    *,
    similarity: Any = None,
    image_embeddings: Any = None,
    text_embeddings: Any = None,
    image_of_caption: ArrayLike,
    relevance: Any = None,
    measures: Iterable[str | Measure | Total] | None = None,
    protocol: str | Protocol = "full",
    similarity_function: Callable[[Any, Any], Any] | Similarity | None = None,
    provenance: Provenance | None = None,
    settings: EvaluationSettings | None = None,
) -> Result:
    """Measure the rankings of a model, in both directions.

    Give either ``similarity`` or both kinds of embeddings; numpy arrays, torch tensors and memory-maps are read as they
    are, a block at a time.

    Args:
        similarity: (images, captions) matrix, or a scorer that maps integer positions to a (len(images), len(captions))
            block: a function of both, or an object with such a ``block`` and a ``shape``. A scorer is asked for most
            pairs once, and for all a second time when a graded measure reads the lists of caption queries. Also a
            :class:`~rungwise.evaluation.inputs.RankedLists`, where a direction without lists is not
            reported; a :class:`~rungwise.evaluation.inputs.Reranked`, whose first candidates another model
            orders anew; or a source from :func:`~rungwise.evaluation.inputs.similarity_source`, which also takes the
            number of images where a scorer does not tell and the last ones may have no caption.
        image_embeddings: (images, D) array, or what :func:`~rungwise.evaluation.inputs.read_embeddings` returns.
        text_embeddings: (captions, D) array, or what ``read_embeddings`` returns.
        image_of_caption: (captions,) position of each caption's image.
        relevance: (images, captions) degrees, or a :class:`~rungwise.relevance.Relevance`; graded measures need
            it. NaN marks a pair without a degree, which only measures of where relevance ends accept.
        measures: Measures or their names, each taken in both directions. Default: the protocol's.
        protocol: A protocol or its name.
        similarity_function: Function of two blocks of embeddings, (a, D) and (b, D) of the kind that was given, that
            returns (a, b); or a :class:`~rungwise.similarity.Similarity`, for which the embeddings are prepared
            vectors. Default: the float32 inner product of the embeddings as given, which is the cosine if they are
            normalised.
        provenance: Names and hashes of data, model and degrees, stored in the result.
        settings: What counts as right beside the annotation, where relevance ends, and how the work is divided.

    Returns:
        Result with numbers named ``i2t/...`` and ``t2i/...``, and sums such as ``rsum``.

    Raises:
        UserError: If sizes do not agree, a matrix is transposed, a value is not finite, the degrees came from the model
            that is judged (see :func:`refuse_own_opinion`), a measure or protocol is not known, the protocol does not
            fit the data, a graded measure is asked for without relevance, or a measure reads what lists or two stages
            do not have; or the scores cannot be cut into shards.

    >>> image, text = np.eye(3), np.eye(3)[[0, 1, 1, 2]]
    >>> result = evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=[0, 1, 1, 2])
    >>> result["i2t/R@1"], result["t2i/MedR"], result.per_query("t2i/R@1")
    (100.0, 1.0, array([100., 100., 100., 100.]))
    """
    provenance, settings = provenance or Provenance(), settings or EvaluationSettings()
    refuse_own_opinion(relevance, provenance.model_hash, similarity)
    owners = checked_owners(image_of_caption)
    if settings.shards is not None:
        similarity, image_embeddings, text_embeddings, relevance = map(
            in_file, (similarity, image_embeddings, text_embeddings, relevance)
        )
    source = similarity_source(
        similarity=similarity,
        image_embeddings=image_embeddings,
        text_embeddings=text_embeddings,
        image_of_caption=owners,
        similarity_function=similarity_function,
    )
    if settings.shards is not None:
        check_divisible(source)
    query_ids = _query_ids(provenance, source.shape)
    rule = protocol_named(protocol)
    asked = parse_all(rule.measures if measures is None else measures)
    single = tuple(dict.fromkeys(m for one in asked for m in (one.terms if isinstance(one, Total) else (one,))))
    gaps = all(measure.takes_gaps for measure in single if measure.graded)
    degrees = checked_degrees(relevance, source.shape, gaps)
    rule.check_positives(settings.positives is not None)
    if settings.positives is not None:
        check_positives(settings.positives, *source.shape)
    folds = rule.folds(owners, source.shape[0])
    ends = _ends(settings, single)
    measured = _measured(source, owners, folds, single, degrees, replace(settings, ends=ends))
    directions = source.directions if isinstance(source, RankOnly) else DIRECTIONS
    numbers, units = _numbers(asked, measured.passes, directions)
    reported = {f"{way}/{measure}" for way in directions for measure in single} & set(numbers)
    human, graded = settings.human_positives, any(measure.graded for measure in single)
    return Result(
        numbers=numbers,
        units=units,
        protocol=rule.name,
        gallery={
            "i2t": tuple(len(fold.captions) for fold in folds),
            "t2i": tuple(len(fold.images) for fold in folds),
        },
        queries={
            "i2t": sum(len(fold.images) for fold in folds),
            "t2i": sum(len(fold.captions) for fold in folds),
        },
        captions_per_image=_captions_per_image(owners, folds, source.shape[0]),
        remarks=_remarks(measured.passes, reported),
        right=_right(rule, settings.positives, human),
        relevance=(provenance.relevance_name or _title(relevance, degrees, source.shape)) if graded else "",
        reference=(relevance.reference or "") if graded and isinstance(relevance, RelevanceSource) else "",
        ends="" if ends is None else name_of_ends(ends),
        data_name=provenance.data_name,
        data_hash=provenance.data_hash,
        dataset=provenance.dataset,
        split=provenance.split,
        model_hash=provenance.model_hash,
        seed=provenance.seed,
        version=__version__,
        reranking=_reranking(measured.parts),
        judgements=None if human is None else human.judging(measured.added),
        warnings=_warnings(source),
        _image_of_query={
            "i2t": np.concatenate([fold.images for fold in folds]),
            "t2i": np.concatenate([owners[fold.captions] for fold in folds]),
        },
        _query_ids={
            way: tuple(ids[place] for fold in folds for place in (fold.images if way == "i2t" else fold.captions))
            for way, ids in query_ids.items()
            if ids
        },
        _per_query={
            f"{way}/{measure}": np.concatenate([one.values[way, measure] for one in measured.passes])
            for way in DIRECTIONS
            for measure in single
            if f"{way}/{measure}" in reported
        },
    )


def evaluate_with_people(
    human_positives: HumanPositives, *, settings: EvaluationSettings | None = None, **arguments: Any
) -> Result:
    """Evaluate with human positives and with the annotation alone, with arguments as for :func:`evaluate`.

    The result holds the numbers of both.

    >>> scores = np.array([[0.4, 0.9], [0.1, 0.8]])
    >>> found = evaluate_with_people(
    ...     HumanPositives(np.array([[0, 1]])), similarity=scores, image_of_caption=[0, 1], measures=["R@1"])
    >>> found["i2t/R@1"], found.judgements.before["i2t/R@1"], found.judgements.added
    (100.0, 50.0, {'i2t': 1, 't2i': 1})
    """
    settings = settings or EvaluationSettings()
    before = evaluate(**arguments, settings=replace(settings, human_positives=None))
    after = evaluate(**arguments, settings=replace(settings, human_positives=human_positives))
    assert after.judgements is not None
    return replace(after, judgements=replace(after.judgements, before=dict(before.numbers)))


def refuse_own_opinion(relevance: Any, model_hash: str, similarity: Any = None) -> None:
    """Refuse to judge a model by its own opinion, in whatever combination or folder it came.

    Args:
        relevance: Degrees of relevance; accepted if they do not say which models they came from.
        model_hash: Fingerprint of the evaluated model; empty where it is not known.
        similarity: Scores of the model; for two stages the second model's fingerprint is checked as well.

    >>> from rungwise.relevance import ModelScores
    >>> refuse_own_opinion(ModelScores(np.eye(2), [0, 1], model="5eed", images=2), "5eed")
    Traceback (most recent call last):
    rungwise.core.UserError: the degrees of relevance are the opinion of the model that is judged (5eed); ...
    """
    judged = {model_hash, similarity.second_hash if isinstance(similarity, Reranked) else ""} - {""}
    named: frozenset[str] = getattr(relevance, "models", frozenset())
    # Whoever names a model by hand may have copied the beginning that messages print.
    own = sorted(
        one for one in judged for other in named if one == other or (len(other) >= _SHOWN and one.startswith(other))
    )
    if own:
        raise UserError(
            f"the degrees of relevance are the opinion of the model that is judged ({own[0][:_SHOWN]}); give degrees of"
            " another source"
        )


@dataclass(frozen=True)
class _Measured:
    """Values of every query, gallery by gallery.

    Attributes:
        passes: Values of the queries of each gallery.
        parts: Scores of each gallery.
        added: Per direction, the number of right answers that people added to the annotation's.
    """

    passes: list[QueryValues] = field(default_factory=list)
    parts: list[SimilaritySource] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)


def _measured(
    source: SimilaritySource,
    owners: NDArray[np.int64],
    folds: Sequence[Fold],
    measures: tuple[Measure, ...],
    degrees: CheckedDegrees | None,
    settings: EvaluationSettings,
) -> _Measured:
    """Values of the measures for every query of every gallery."""
    measured, ends = _Measured(), settings.ends
    with measuring(settings.shards) as measure:
        for one in galleries(source, owners, folds, settings):
            measured.parts.append(one.source)
            measured.added.update(one.added)
            if isinstance(one.source, RankOnly):
                for asked in measures:
                    if why := one.source.reads(asked, one.right or one.annotated):
                        raise UserError(why)
            graded = degrees.select(one.fold.images, one.fold.captions) if degrees else None
            method = ends if one.whole or ends is None else _in_fold(ends, one.fold)
            found = measure(one.source, one.of_caption, measures, graded, settings.chunk, one.right, method)
            if isinstance(one.source, RankOnly):
                _count_zero(one.source, found)
            measured.passes.append(found)
    return measured


@dataclass(frozen=True)
class Gallery:
    """A gallery of a protocol: what is ranked in it, and what is right.

    Attributes:
        fold: Positions of its images and captions in the whole data.
        whole: Whether these are all of them.
        source: Scores of its images with its captions.
        of_caption: (captions,) position of each caption's image in the gallery.
        right: Right answers per direction, where they differ from what ``of_caption`` says; else None.
        added: Per direction, the number of right answers that people added to the annotation's.
    """

    fold: Fold
    whole: bool
    source: SimilaritySource
    of_caption: NDArray[np.int64]
    right: Mapping[Direction, Positives] | None
    added: Counter[str]

    __repr__ = short_repr

    @property
    def annotated(self) -> Mapping[Direction, Positives]:
        """Right answers by whose each caption is."""
        return positives_of(self.of_caption, len(self.fold.images))


def galleries(
    source: SimilaritySource, owners: NDArray[np.int64], folds: Sequence[Fold], settings: EvaluationSettings
) -> Iterator[Gallery]:
    """The galleries of an evaluation, one after another.

    Args:
        source: Scores of all images with all captions.
        owners: (captions,) position of each caption's image.
        folds: Galleries of the protocol.
        settings: What counts as right beside the annotation.

    >>> from rungwise.metrics import MatrixSource
    >>> folds = protocol_named("full").folds(np.array([0, 0, 1]), 2)
    >>> [one] = galleries(MatrixSource(np.eye(2)[:, [0, 0, 1]]), np.array([0, 0, 1]), folds, EvaluationSettings())
    >>> one.whole, one.annotated["i2t"].counts
    (True, array([2, 1]))
    """
    human = settings.human_positives
    for fold in folds:
        whole = len(folds) == 1 and (len(fold.images), len(fold.captions)) == source.shape
        of_caption = np.searchsorted(fold.images, owners[fold.captions])
        right: Mapping[Direction, Positives] | None = settings.positives
        added: Counter[str] = Counter()
        if human is not None:
            annotated = right or positives_of(of_caption, len(fold.images))
            right = human.beside(annotated, fold)
            added.update({way: len(right[way].candidate) - len(annotated[way].candidate) for way in DIRECTIONS})
        part = source if whole else source.select(fold.images, fold.captions)
        yield Gallery(fold, whole, part, of_caption, right, added)


def _count_zero(lists: RankOnly, found: QueryValues) -> None:
    """Set the values of queries without a list to 0, but where the measure is not defined."""
    for (way, measure), values in found.values.items():
        none = lists.counted_zero(way)
        known = none[~np.isnan(values[none]).reshape(len(none), measure.parts).all(axis=1)]
        if len(known):
            values[known] = 0.0
            found.remarks.setdefault((way, measure), Counter()).update({"no list, counted 0": len(known)})


def _ends(settings: EvaluationSettings, measures: Iterable[Measure]) -> Ends | None:
    """Method that says where relevance ends; None where no measure reads that."""
    if not any(measure.reads_ends for measure in measures):
        return None
    return Calibration.unsupervised() if settings.ends is None else settings.ends


def _captions_per_image(owners: NDArray[np.int64], folds: Sequence[Fold], images: int) -> dict[str, float]:
    """``min``, ``mean`` and ``max`` over the images of all galleries."""
    counts = np.concatenate([np.bincount(owners[fold.captions], minlength=images)[fold.images] for fold in folds])
    return {"min": float(counts.min()), "mean": float(counts.mean()), "max": float(counts.max())}


def _warnings(source: SimilaritySource) -> tuple[str, ...]:
    first = source.first if isinstance(source, Reranked) else source
    return first.warnings() if isinstance(first, ProductSource) else ()


def _reranking(parts: Iterable[SimilaritySource]) -> Reranking | None:
    """Record of the second stage over all galleries; None without one."""
    own = [part for part in parts if isinstance(part, Reranked)]
    if not own:
        return None
    return Reranking(own[0].second_hash, own[0].top, sum(part.pairs_scored for part in own))


@runtime_checkable
class _EndsOfParts(Ends, typing.Protocol):
    """A method of where relevance ends that knows more of the candidates of a fold than their scores."""

    def of_part(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> Ends:
        """The method for the images and captions of a fold, by positions in the whole data."""
        ...


def _in_fold(ends: Ends, fold: Fold) -> Ends:
    return ends.of_part(fold.images, fold.captions) if isinstance(ends, _EndsOfParts) else _InFold(ends, fold)


class _InFold:
    """A method of where relevance ends that is told positions in the whole data, though only one fold is ranked."""

    def __init__(self, ends: Ends, fold: Fold) -> None:
        self._ends = ends
        self._places: dict[Direction, NDArray[np.int64]] = {"i2t": fold.images, "t2i": fold.captions}

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        return self._ends.judge(scores, direction, self._places[direction][queries])


def _numbers(
    asked: Iterable[Measure | Total], passes: list[QueryValues], directions: Sequence[Direction]
) -> tuple[dict[str, float], dict[str, str]]:
    """Numbers and units by name: aggregated within each fold, averaged over folds; sums need both directions."""

    def number(way: Any, measure: Measure) -> float:
        return float(np.mean([measure.aggregate(one.values[way, measure]) for one in passes]))

    numbers: dict[str, float] = {}
    units: dict[str, str] = {}
    for one in asked:
        terms = one.terms if isinstance(one, Total) else (one,)
        for way in directions:
            for measure in terms:
                numbers[f"{way}/{measure}"] = number(way, measure)
                units[f"{way}/{measure}"] = measure.unit
        if isinstance(one, Total) and len(directions) == len(DIRECTIONS):
            numbers[str(one)] = sum(numbers[f"{way}/{measure}"] for way in DIRECTIONS for measure in terms)
            units[str(one)] = one.unit
    return numbers, units


def _remarks(passes: list[QueryValues], reported: set[str]) -> Mapping[str, Mapping[str, int]]:
    total: dict[str, Counter[str]] = {}
    for one in passes:
        for (way, measure), counts in one.remarks.items():
            if f"{way}/{measure}" in reported:
                total.setdefault(f"{way}/{measure}", Counter()).update(counts)
    return {name: dict(counts) for name, counts in sorted(total.items())}


def _query_ids(provenance: Provenance, shape: tuple[int, int]) -> dict[Direction, tuple[str, ...]]:
    """Ids of the queries of each direction by position in the data; empty where none were given."""
    return {
        "i2t": _ids(provenance.image_ids, shape[0], "image"),
        "t2i": _ids(provenance.caption_ids, shape[1], "caption"),
    }


def _ids(given: Sequence[str] | None, count: int, what: str) -> tuple[str, ...]:
    ids = tuple(str(one) for one in given) if given is not None else ()
    if given is not None and len(ids) != count:
        raise UserError(f"{what}_ids name {len(ids)} {what}s but there are {count}; give one id each")
    if len(set(ids)) < len(ids):
        again, times = Counter(ids).most_common(1)[0]
        places = [place for place, one in enumerate(ids) if one == again]
        raise UserError(
            f"{what}_ids: {again!r} stands {times} times, at {places[0]} and {places[1]}; give every {what} its own id"
        )
    return ids


def _right(rule: Protocol, positives: RightAnswers | None, human_positives: HumanPositives | None) -> str:
    annotated = rule.right if positives is None else f"{rule.right}, hash {_hash(positives)[:16]}"
    return annotated if human_positives is None else f"{annotated}, and {human_positives}"


def _hash(positives: RightAnswers) -> str:
    return digest_of_parts(part for way in DIRECTIONS for part in (positives[way].starts, positives[way].candidate))


def _title(relevance: Any, degrees: CheckedDegrees | None, shape: tuple[int, int]) -> str:
    """Name of the degrees in the result; a matrix has its hash in it, by which two of them are told apart."""
    if isinstance(relevance, RelevanceSource):
        return relevance.title()
    if degrees is None or hasattr(relevance, "block"):
        return "given as blocks"
    images, captions = np.arange(shape[0]), np.arange(shape[1])
    rows = (images[start : start + _ROWS] for start in range(0, len(images), _ROWS))
    digest = digest_of_parts(np.ascontiguousarray(degrees.block(some, captions), np.float32) for some in rows)
    return f"given as a matrix, hash {digest[:16]}"
