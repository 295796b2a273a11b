"""Retrieval tasks of mteb from a collection and degrees of relevance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset, Features, Image, Value
from mteb.abstasks import AbsTaskRetrieval
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import one_line
from rungwise.core.version import __version__
from rungwise.data import ImageCaptions
from rungwise.data.pictures import picture_bytes
from rungwise.metrics import (
    DIRECTIONS,
    Direction,
    JudgedQueries,
    Measure,
    Rankings,
    Scores,
    Total,
    parse_all,
    positives_of,
)
from rungwise.relevance import Degrees, as_degrees

_CHUNK_SCORES = 1 << 24
"""Number of scores that are judged or measured at a time."""
_NOTHING, _NOT_LISTED = -1e30, -2e30
"""Scores of what stands behind the end of a list, and of the candidates that it leaves out."""


class DegreeTask(AbsTaskRetrieval):
    """A retrieval task of mteb in one direction, from a collection and any source of degrees; it reads no network.

    mteb's own measures read whole-number gains: the number of ``levels`` that a pair's degree reaches. Queries without
    a gain are left out of all means, as mteb leaves them out, and a pair without a degree counts 0, as it counts a pair
    that nobody judged. Beside its numbers the results have ours of the degrees themselves, as ``t2i/nDCG@10``, and
    under ``rungwise`` what they were made of. Right for measures such as ``R@1`` are the captions written for a
    picture, whatever the degrees say.

    mteb keeps the first 1,000 candidates of a query: what reads further is refused where there are more. Behind the end
    of a shorter list our measures count candidates of degree 0, as mteb does. Candidates of one score stand by their
    position in the collection for our measures, and by falling id for mteb's.

    Args:
        data: Pictures (files) with captions.
        degrees: A source, saved degrees, or an (images, captions) matrix. Files of CxC, ECCV Caption, Flickr8K's judges
            and of ``rungwise grade`` are read by :class:`rungwise.relevance.HumanJudgements`.
        direction: ``"i2t"``: pictures seek captions; ``"t2i"``: captions seek pictures.
        levels: Rising degrees: at the first a pair's gain becomes 1, at the second 2, and so on.
        measures: Measures that are added, by name or as values; each of one direction, so no sums such as rsum.
        name: Name of the task. Default: that of the data and the direction.
        main_score: Key of the main score in mteb's tables: one of its own, or one that is added.
        languages: Languages of the captions as mteb names them, such as ``("eng-Latn",)``. Default: not said.

    Attributes:
        degrees: The source of degrees.
        levels: The levels.

    Raises:
        UserError: If there are no picture files, the levels do not rise, no pair reaches the first, a measure is a sum,
            or the degrees are of other data.
    """

    def __init__(
        self,
        data: ImageCaptions,
        degrees: Degrees | ArrayLike,
        direction: Direction,
        *,
        levels: Sequence[float],
        measures: Iterable[str | Measure | Total] = ("nDCG@10", "NCS@10"),
        name: str | None = None,
        main_score: str = "ndcg_at_10",
        languages: Sequence[str] = (),
    ) -> None:
        if direction not in DIRECTIONS:
            raise UserError(f"direction must be 'i2t' or 't2i', got {direction!r}")
        if not data.paths or not data.captions:
            raise UserError(f"{data.name}: mteb hands pictures to models; give data with picture files and captions")
        if not levels or not np.isfinite(levels).all() or (np.diff(levels) <= 0).any():
            raise UserError(f"levels must be rising numbers, got {one_line(str(list(levels)), 60)}")
        self.data, self.degrees, self.direction = data, as_degrees(degrees, data), direction
        self.levels = tuple(float(level) for level in levels)
        self.measures = tuple(_single(one) for one in parse_all(measures))
        self.gains, self._without_degree = self._read_gains()
        named = name or f"{''.join(sign if sign.isalnum() else '-' for sign in data.name)}-{direction}"
        self._metadata = mteb.TaskMetadata(
            name=named,
            description=(
                f"{'Captions of pictures' if direction == 'i2t' else 'Pictures of captions'}; degrees:"
                f" {self.degrees.title()}; gain = number of the levels {_listed(self.levels)} that a degree reaches."
            ),
            dataset={"path": data.name, "revision": self._revision()},
            type="Any2AnyRetrieval",
            category=direction,
            modalities=["text", "image"],
            eval_splits=["test"],
            eval_langs=list(languages),
            main_score=main_score,
            is_public=False,
        )
        super().__init__()
        self.load_data()

    @property  # which unloading does not take away, as it does a value of the instance
    def metadata(self) -> mteb.TaskMetadata:  # type: ignore[override]
        """What mteb knows of the task; its description states the degrees and the levels."""
        return self._metadata

    def load_data(self, *given: Any, **asked: Any) -> None:
        """Give mteb the ids, captions and places of pictures, which are opened batch by batch."""
        images = Dataset.from_dict(
            {"id": list(self.data.image_ids), "image": [_cell(picture) for picture in self.data.paths]},
            features=Features({"id": Value("string"), "image": Image()}),
        )
        captions = Dataset.from_dict({"id": list(self.data.caption_ids), "text": list(self.data.captions)})
        queries, corpus = (images, captions) if self.direction == "i2t" else (captions, images)
        split: Any = {"queries": queries, "corpus": corpus, "relevant_docs": self.gains, "top_ranked": None}
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True

    def task_specific_scores(
        self, scores: Any, qrels: Any, results: Mapping[str, Mapping[str, float]], hf_split: str, hf_subset: str
    ) -> dict[str, Any]:
        """Our numbers for the lists that mteb got, and what they were made of."""
        values = self.values(results)
        numbers = {f"{self.direction}/{one}": one.aggregate(values[str(one)]) for one in self.measures}
        made_of = {
            "version": __version__,
            "degrees": self.degrees.title(),
            "levels": list(self.levels),
            "queries": len(results),
            "pairs_without_degree": self._without_degree,
            "units": {f"{self.direction}/{one}": one.unit for one in self.measures},
        }
        return {**{key: None if np.isnan(one) else one for key, one in numbers.items()}, "rungwise": made_of}

    def values(self, results: Mapping[str, Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
        """Values of the measures for each query of the lists ``{query: {candidate: score}}``, in their order.

        Raises:
            UserError: If a measure reads further than the lists go.
        """
        queries, candidates = self._ids()
        place = {one: at for at, one in enumerate(candidates)}
        query_at = {one: at for at, one in enumerate(queries)}
        asked = np.array([query_at[query] for query in results], np.int64)
        lists = list(results.values())
        lengths = np.array([len(own) for own in lists], np.int64)
        right = positives_of(self.data.image_of_caption, len(self.data))[self.direction].select(asked)
        shortest, gap = int(lengths.min(initial=len(candidates))), 0
        if shortest < len(candidates):
            gap = max((getattr(one, "k", None) or 0 for one in self.measures), default=0) + int(right.counts.max())
        for one in self.measures:
            if gap and _reads_all(one):
                raise UserError(
                    f"{one} reads whole rankings, and mteb's lists name as few as {shortest} of {len(candidates)}"
                    " candidates; ask for a measure of the first K, such as nDCG@10"
                )
        found: dict[str, list[NDArray[np.float64]]] = {str(one): [] for one in self.measures}
        for part in chunks_of(len(lists), len(candidates)):
            scores = np.full((len(part), len(candidates) + gap), _NOT_LISTED, np.float32)
            scores[:, len(candidates) :] = _NOTHING
            for row, query in enumerate(part.tolist()):
                scores[row, [place[one] for one in lists[query]]] = list(lists[query].values())
            degrees = np.pad(self._block(asked[part]), ((0, 0), (0, gap)))
            shown = JudgedQueries(lengths[part], (lengths[part] > 0).astype(np.float64))
            rankings = Rankings(right.select(part), scores, degrees, self.direction, judged=shown)
            for one in self.measures:
                found[str(one)].append(one.per_query(rankings))
        return {one: np.concatenate(own) for one, own in found.items()}

    def _ids(self) -> tuple[Sequence[str], Sequence[str]]:
        both = self.data.image_ids, self.data.caption_ids
        return both if self.direction == "i2t" else (both[1], both[0])

    def _block(self, queries: NDArray[np.int64]) -> Scores:
        """(queries, candidates) degrees; 0 for a pair that has none."""
        if self.direction == "i2t":
            return np.nan_to_num(self.degrees.block(queries, np.arange(len(self.data.captions))))
        return np.nan_to_num(self.degrees.block(np.arange(len(self.data)), queries).T)

    def _read_gains(self) -> tuple[dict[str, dict[str, int]], int]:
        """Whole-number gains of the pairs that reach a level, query by query, and the number without a degree."""
        queries, candidates = self._ids()
        gains: dict[str, dict[str, int]] = {}
        unknown = 0
        for rows, degrees in self.degrees.chunks(self.direction):
            unknown += int(np.isnan(degrees).sum())
            reached = np.searchsorted(self.levels, np.nan_to_num(degrees, nan=-np.inf).ravel(), side="right")
            reached = reached.reshape(degrees.shape)
            for row, own in zip(rows.tolist(), reached, strict=True):
                if len(some := np.flatnonzero(own)):
                    gains[queries[row]] = {candidates[at]: int(own[at]) for at in some.tolist()}
        if not gains:
            raise UserError(f"levels: no pair of {self.data.name} has a degree of {self.levels[0]:g}; give lower ones")
        return gains, unknown

    def _revision(self) -> str:
        said = f"{self.direction} {self.levels} {[str(one) for one in self.measures]}"
        return digest_of_parts([self.data.content_hash(), self.degrees.content_hash(), said])[:40]


def chunks_of(queries: int, candidates: int) -> Iterable[NDArray[np.int64]]:
    """Consecutive positions of queries, as many as are taken at a time."""
    size = max(1, _CHUNK_SCORES // max(1, candidates))
    return (np.arange(start, min(start + size, queries)) for start in range(0, queries, size))


def _single(measure: Measure | Total) -> Measure:
    own_sets = not isinstance(measure, Total) and type(measure).sets is not Measure.sets
    if isinstance(measure, Total) or own_sets:
        why = "reads right candidates of its own" if own_sets else "is a sum over both directions"
        raise UserError(f"measures: {measure} {why}, which a task of mteb in one direction lacks; leave it out")
    return measure


def _reads_all(measure: Measure) -> bool:
    return measure.depth is None or (not measure.graded and getattr(measure, "k", None) is None)


def _cell(picture: Any) -> dict[str, Any]:
    """A picture for a column of pictures: the place of a file, or the bytes of what lies in a larger one."""
    if isinstance(picture, Path):
        return {"path": str(picture), "bytes": None}
    return {"path": None, "bytes": picture_bytes(picture)}


def _listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)
