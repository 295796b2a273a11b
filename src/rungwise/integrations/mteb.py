"""mteb: our models and our search as mteb's models, degrees of relevance as its tasks, and its models as ours.

Numbers of mteb are shares from 0 to 1 and read whole-number gains. Ours stand beside them in the same results, under
the names that they have everywhere here (``t2i/nDCG@10``), in their own units, and read the degrees as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mteb
import numpy as np
import torch
from datasets import Dataset, Features, Image, Value
from mteb.abstasks import AbsTaskRetrieval
from mteb.models import ModelMeta
from mteb.results import ModelResult
from mteb.types import PromptType
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import DataLoader

from rungwise.calibration import UNRELATED, Calibration
from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import one_line
from rungwise.core.version import __version__
from rungwise.data import ImageCaptions
from rungwise.data.files import EncodedOnce
from rungwise.data.pictures import picture_bytes
from rungwise.integrations._mteb_models import MtebModel, load_mteb
from rungwise.metrics import (
    DIRECTIONS,
    Direction,
    Ends,
    JudgedQueries,
    Measure,
    Rankings,
    Scores,
    Total,
    judged_by,
    parse_all,
    positives_of,
)
from rungwise.models import DualEncoder
from rungwise.relevance import Degrees, as_degrees

__all__ = ["DegreeTask", "MtebEncoder", "MtebModel", "MtebSearch", "evaluate", "load_mteb"]

_CHUNK_SCORES = 1 << 24
"""Number of scores that are judged or measured at a time."""
_NOTHING, _NOT_LISTED = -1e30, -2e30
"""Scores of what stands behind the end of a list, and of the candidates that it leaves out."""


class MtebEncoder:
    """A dual encoder of ours as mteb's ``EncoderProtocol``, for any task whose inputs are texts or pictures.

    A picture reaches the model as the pixels that mteb hands over, in a file without loss. Where the model reads large
    JPEG files at a fraction of their size, its vectors differ from those of the files by that.

    An input with both a text and a picture is refused: our models compare one with the other and have no vector of
    both. Prompts and instructions of mteb are not used.

    Args:
        model: A dual encoder, such as ``rungwise.load(...)`` gives.
        name: Name in mteb's results, ``organisation/model``. Default: ``rungwise/`` and the family of the model.

    Raises:
        UserError: If the model gives no vectors, or mteb would refuse the name.
    """

    def __init__(self, model: DualEncoder, *, name: str | None = None) -> None:
        if not isinstance(model, DualEncoder):
            raise UserError(f"{type(model).__name__}: gives no vectors, which mteb asks for; give a dual encoder")
        if name is not None and (name.count("/") != 1 or not all(name.split("/"))):
            raise UserError(f"{one_line(name, 60)!r}: mteb takes names such as organisation/model; give name= like it")
        self.model = model
        self.direction: Direction = "t2i"
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name or f"rungwise/{model.kind or type(model).__name__}",
                "revision": model.fingerprint[:40],
                "modalities": ["text", "image"],
                "embed_dim": model.dimension,
                "framework": ["PyTorch"],
                "use_instructions": False,
            }
        )

    def encode(
        self, inputs: DataLoader[Any], *, prompt_type: PromptType | None = None, **asked: Any
    ) -> NDArray[np.float32]:
        """(inputs, D) float32 vectors of batches with a column ``text`` or ``image``; other arguments are not read.

        Raises:
            UserError: If a batch has both columns or neither, or a picture cannot be read.
        """
        vectors = [np.empty((0, self.model.dimension), np.float32)]
        for batch in inputs:
            kinds = [kind for kind in ("text", "image") if kind in batch]
            if len(kinds) != 1:
                has = "both a text and a picture" if kinds else "neither a text nor a picture"
                raise UserError(f"an input of mteb has {has}; our models read one of them: take another task")
            if prompt_type == PromptType.query:
                self.direction = "i2t" if kinds == ["image"] else "t2i"
            if kinds == ["text"]:
                vectors.append(self.model.encode_text([str(text) for text in batch["text"]]))
                continue
            encoded = self.model.encode_image([EncodedOnce(picture)() for picture in batch["image"]])
            if encoded.issues:
                raise UserError(f"{encoded.issues[0].where}: {encoded.issues[0].detail}")
            vectors.append(encoded.vectors)
        return np.concatenate(vectors)

    def similarity(self, embeddings1: ArrayLike, embeddings2: ArrayLike) -> torch.Tensor:
        """(n, m) similarities of queries with candidates, by the model's own similarity.

        One that is not symmetric, such as of order embeddings, takes the queries to be what was last encoded as such.
        """
        first, second = _rows(embeddings1), _rows(embeddings2)
        if self.direction == "i2t":
            return torch.from_numpy(np.ascontiguousarray(self.model.similarity.array(first, second)))
        return torch.from_numpy(np.ascontiguousarray(self.model.similarity.array(second, first).T))

    def similarity_pairwise(self, embeddings1: ArrayLike, embeddings2: ArrayLike) -> torch.Tensor:
        """(n,) similarities of the first rows, the second rows, and so on."""
        pairs = zip(_rows(embeddings1), _rows(embeddings2), strict=True)
        return torch.tensor([float(self.similarity(one[None], other[None])) for one, other in pairs])


class MtebSearch:
    """A dual encoder of ours as mteb's ``SearchProtocol``: each query's list stops where relevance ends.

    mteb takes short lists as they are: what is not listed has gain 0, and a query without a hit counts 0 in every mean.
    So its recall falls with an early end, its precision at k still divides by k, and a right end never raises its nDCG.
    What an end is worth is said by measures such as ``CutF1(0.5)`` of a :class:`DegreeTask`.

    Args:
        model: A dual encoder, or an :class:`MtebEncoder` of one.
        ends: The method that says where relevance ends. Default: the calibration in the model's folder; else, where
            texts seek pictures, one without judgements that knows how high texts score that fit nothing, and where
            pictures seek texts one that knows the query's own scores.
        name: Name in mteb's results. Default: that of the encoder, and ``-with-an-end``.
    """

    def __init__(self, model: DualEncoder | MtebEncoder, *, ends: Ends | None = None, name: str | None = None) -> None:
        self.encoder = model if isinstance(model, MtebEncoder) else MtebEncoder(model)
        meta = (MtebEncoder(self.encoder.model, name=name) if name else self.encoder).mteb_model_meta
        self.mteb_model_meta = meta if name else meta.model_copy(update={"name": f"{meta.name}-with-an-end"})
        self.ends = ends
        self._ids: list[str] = []
        self._vectors = np.empty((0, self.encoder.model.dimension), np.float32)

    def index(self, corpus: Dataset, *, encode_kwargs: Mapping[str, Any], **asked: Any) -> None:
        """Encode the candidates; arguments that are not named here are not read."""
        self._ids = list(corpus["id"])
        self._vectors = self.encoder.encode(_loader(corpus, encode_kwargs), prompt_type=PromptType.document)

    def search(
        self,
        queries: Dataset,
        *,
        top_k: int,
        encode_kwargs: Mapping[str, Any],
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **asked: Any,
    ) -> dict[str, dict[str, float]]:
        """Scores of each query's hits before its end, at most ``top_k``, best first.

        With ``top_ranked`` the end is judged among all candidates, and of the hits before it those are given that it
        lists.
        """
        vectors = self.encoder.encode(_loader(queries, encode_kwargs), prompt_type=PromptType.query)
        ends, names = self.ends or self._own_ends(), list(queries["id"])
        found: dict[str, dict[str, float]] = {}
        for part in _chunks(len(names), len(self._ids)):
            scores = self.encoder.similarity(vectors[part], self._vectors).numpy()
            judged = judged_by(ends, scores, self.encoder.direction, part)
            for row, query in enumerate(part.tolist()):
                order = np.argsort(-scores[row], kind="stable")
                kept = order[: judged.cuts[row]] if judged.shown is None else order[judged.shown[row][order]]
                listed = None if top_ranked is None else set(top_ranked.get(names[query], ()))
                hits = [place for place in kept.tolist() if listed is None or self._ids[place] in listed][:top_k]
                found[names[query]] = {self._ids[place]: float(scores[row, place]) for place in hits}
        return found

    def _own_ends(self) -> Ends:
        model = self.encoder.model
        if model.calibration_file is not None:
            calibration = Calibration.load(model.calibration_file)
            calibration.check(model.fingerprint)
            return calibration
        if self.encoder.direction == "i2t":
            return Calibration.unsupervised(model_fingerprint=model.fingerprint)
        unrelated = self.encoder.similarity(model.encode_text(UNRELATED), self._vectors).numpy()
        return Calibration.unsupervised(unrelated, model_fingerprint=model.fingerprint)


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
        for part in _chunks(len(lists), len(candidates)):
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


def evaluate(
    model: DualEncoder | MtebEncoder | MtebSearch | Any,
    tasks: DegreeTask | Sequence[DegreeTask] | Any,
    *,
    folder: Path | str | None = None,
    **given: Any,
) -> ModelResult:
    """Run ``mteb.evaluate``: a dual encoder of ours is wrapped, and results are written into a folder.

    Args:
        model: A dual encoder of ours, one of the classes here, or any model of mteb.
        tasks: One task or several: ours, whose results have our measures beside mteb's, or its own.
        folder: Where the JSON of each task is written, as ``results/MODEL/REVISION/TASK.json``. Default: nowhere.
        given: Further arguments of ``mteb.evaluate``. Without ``overwrite_strategy`` every task is run, since mteb
            would take numbers of a task of the same name with other levels for those of this one.
    """
    wrapped = MtebEncoder(model) if isinstance(model, DualEncoder) else model
    cache = None if folder is None else mteb.ResultCache(Path(folder))
    usual = {"overwrite_strategy": "always", "co2_tracker": False, "show_progress_bar": False}
    return mteb.evaluate(wrapped, tasks, **{"cache": cache, **usual, **given})


def _rows(vectors: ArrayLike) -> NDArray[np.float32]:
    """(n, D) float32 vectors of an array or a tensor; a single vector is one row."""
    given = vectors.detach().cpu().float().numpy() if isinstance(vectors, torch.Tensor) else vectors
    return np.atleast_2d(np.asarray(given, np.float32))


def _loader(rows: Dataset, encode_kwargs: Mapping[str, Any]) -> DataLoader[Any]:
    """Batches of the columns that are encoded; a title stands before its text, as mteb's own search has it."""

    def batch(some: list[dict[str, Any]]) -> dict[str, list[Any]]:
        if "text" not in some[0]:
            return {"image": [one["image"] for one in some]}
        texts = [f"{one.get('title') or ''} {one['text']}".strip() for one in some]
        return {"text": texts, **({"image": [one["image"] for one in some]} if "image" in some[0] else {})}

    return DataLoader(rows, batch_size=encode_kwargs.get("batch_size", 32), collate_fn=batch)


def _chunks(queries: int, candidates: int) -> Iterable[NDArray[np.int64]]:
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
