"""Measures of rungwise as a metric of torchmetrics, with and without degrees of relevance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rungwise.core import MissingExtraError, RungwiseWarning, UserError, require, user_path
from rungwise.core.output import some_of
from rungwise.evaluation import EvaluationSettings, Protocol, Provenance, Result, evaluate, protocol_named
from rungwise.evaluation.inputs import checked_degrees, checked_owners
from rungwise.metrics import CS, DIRECTIONS, NCS, NDCG, Kendall, MeanDegree, Measure, Spearman, Total, parse_all
from rungwise.relevance import load

try:
    from torchmetrics import Metric
    from torchmetrics.utilities.data import dim_zero_cat
    from torchmetrics.utilities.distributed import gather_all_tensors
except ModuleNotFoundError as error:
    raise MissingExtraError("torchmetrics", "rungwise.integrations.torchmetrics") from error

if TYPE_CHECKING:
    from rungwise.similarity import Similarity

__all__ = ["Graded"]

_OF_DEGREES = (CS, NCS, NDCG, Kendall, MeanDegree, Spearman)
"""Families that read degrees alone, unless ``non_gt`` removes the annotated pairs."""


class Graded(Metric):
    """Measures of rungwise, updated batch by batch and equal to :func:`rungwise.evaluation.evaluate`.

    A batch brings vectors and their positions in the evaluated data. Batches may come in any order and size, and a
    picture in many of them, as in a loader of pairs: the first vector of a position counts. So what a
    ``DistributedSampler`` repeats counts once. States are synced over processes as those of every metric.

    While some positions have not come, as in the sanity check of Lightning, ``compute`` measures those that have, as a
    smaller gallery, and warns. Captions whose image has not come are then left out. Negative similarities are ranked
    as all others.

    Args:
        measure: A measure or its name, such as ``"nDCG@10"``, ``"R@1"`` or ``"rsum"``; or several of them, which are
            measured in one pass.
        relevance: (images, captions) degrees as an array or a tensor, a source of :mod:`rungwise.relevance`, or the
            folder or ``.npy`` file that holds them. Needed by graded measures.
        image_of_caption: (captions,) position of each caption's image. Needed where the relevance does not know it and
            a measure reads it.
        direction: ``"t2i"`` for caption queries, ``"i2t"`` for image queries, or ``"both"``; sums such as rsum are of
            both.
        protocol: A protocol or its name; it is followed once all positions have come.
        similarity_function: Function of two blocks of vectors, as in ``evaluate``. Default: the inner product, which
            is the cosine of normalised vectors.
        provenance: Names and hashes for :meth:`result`.
        settings: What counts as right beside the annotation, where relevance ends, and how the work is divided.
        missing: ``"refuse"`` raises a UserError where positions are missing, instead of the warning.
        **options: Options of every metric, such as ``compute_on_cpu`` and ``process_group``.

    Raises:
        UserError: If a measure is not known, needs degrees or ``image_of_caption`` that are not given, or these do not
            fit each other.

    >>> metric = Graded("nDCG@10", relevance=[[1.0, 0.2], [0.1, 0.9]])
    >>> vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> metric.update(vectors[1:], vectors[1:], images=[1], captions=[1])
    >>> metric.update(vectors[:1], vectors[:1], images=[0], captions=[0])
    >>> metric.compute()
    tensor(100., dtype=torch.float64)
    """

    is_differentiable = False
    full_state_update = False

    image_vectors: list[Tensor]
    text_vectors: list[Tensor]
    image_places: list[Tensor]
    text_places: list[Tensor]

    def __init__(
        self,
        measure: str | Measure | Total | Sequence[str | Measure | Total],
        relevance: Any = None,
        *,
        image_of_caption: ArrayLike | None = None,
        direction: Literal["t2i", "i2t", "both"] = "t2i",
        protocol: str | Protocol = "full",
        similarity_function: Callable[[Any, Any], Any] | Similarity | None = None,
        provenance: Provenance | None = None,
        settings: EvaluationSettings | None = None,
        missing: Literal["warn", "refuse"] = "warn",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._measures = parse_all((measure,) if isinstance(measure, Measure | Total) else measure)
        if direction not in (*DIRECTIONS, "both"):
            raise UserError(f"direction={direction!r} is none of 't2i', 'i2t' and 'both'; give one of them")
        if missing not in ("warn", "refuse"):
            raise UserError(f"missing={missing!r} is neither 'warn' nor 'refuse'; give one of them")
        ways = DIRECTIONS if direction == "both" else (direction,)
        self._measure_of = {
            name: one
            for one in self._measures
            for name in ([str(one)] if isinstance(one, Total) else [f"{way}/{one}" for way in ways])
        }
        self._relevance = _degrees(relevance)
        self._owners = self._checked_owners(image_of_caption)
        self._protocol = protocol_named(protocol)
        self._similarity_function = similarity_function
        self._provenance, self._settings = provenance, settings
        self._missing, self._of_a_batch = missing, False
        for name in ("image_vectors", "text_vectors", "image_places", "text_places"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that :meth:`compute` gives, such as ``t2i/nDCG@10`` and ``rsum``."""
        return tuple(self._measure_of)

    def is_rising(self, name: str) -> bool:
        """Whether larger is better of the number with this name."""
        return self._measure_of[name].higher_is_better

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        """Whether larger is better; None where the measures differ."""
        found = {one.higher_is_better for one in self._measures}
        return found.pop() if len(found) == 1 else None

    @property
    def plot_lower_bound(self) -> float | None:  # type: ignore[override]
        """Smallest possible number; None where the measures differ or have no bound."""
        return self._bound(0)

    @property
    def plot_upper_bound(self) -> float | None:  # type: ignore[override]
        """Largest possible number; None where the measures differ or have no bound."""
        return self._bound(1)

    def update(
        self,
        image_embeddings: Any = None,
        text_embeddings: Any = None,
        images: Any = None,
        captions: Any = None,
    ) -> None:
        """Take vectors of a batch; a loader of one side alone leaves the other out.

        Args:
            image_embeddings: (n, D) vectors, kept as float32 where they are.
            text_embeddings: (m, D) vectors.
            images: (n,) positions of the images in the evaluated data, from 0.
            captions: (m,) positions of the captions.

        Raises:
            UserError: If a side has vectors without positions or the reverse, their numbers differ, or a position does
                not exist.
        """
        rows, columns = self._size()
        _take(self.image_vectors, self.image_places, image_embeddings, images, ("image_embeddings", "images"), rows)
        _take(self.text_vectors, self.text_places, text_embeddings, captions, ("text_embeddings", "captions"), columns)

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The number, in its own unit; several numbers by name."""
        result, kind = self.result(), torch.float32 if self.device.type == "mps" else torch.float64
        values = {name: torch.tensor(result[name], dtype=kind, device=self.device) for name in self.names}
        return values if len(values) > 1 else values[self.names[0]]

    def result(self) -> Result:
        """The result with both directions and values per query, of what this process has.

        Within ``with metric.sync_context():`` it is of all processes.

        Raises:
            UserError: If nothing has come, positions are missing and ``missing="refuse"``, or ``evaluate`` refuses.
        """
        images, image_places = _in_order(self.image_vectors, self.image_places)
        texts, text_places = _in_order(self.text_vectors, self.text_places)
        if not (len(images) and len(texts)):
            raise UserError("no image or no caption has come; call update with vectors and positions of both")
        owners, relevance, protocol, provenance = self._owners, self._relevance, self._protocol, self._provenance
        least = 0 if owners is None else int(owners.max())
        rows, columns = self._size()
        shape = (rows or max(int(image_places[-1]), least) + 1, columns or int(text_places[-1]) + 1)
        if shape != (len(images), len(texts)):
            self._say_missing(image_places, text_places, shape)
            if owners is not None:
                kept = np.isin(owners[text_places], image_places)
                texts, text_places = texts[kept], text_places[kept]
                owners = np.searchsorted(image_places, owners[text_places])
                if not len(texts):
                    raise UserError("no caption has come whose image has; call update with images and their captions")
            every = checked_degrees(relevance, shape, gaps=True)
            relevance = None if every is None else every.select(image_places, text_places)
            protocol, provenance = protocol_named("full"), _of_part(provenance, image_places, text_places)
        return evaluate(
            image_embeddings=images,
            text_embeddings=texts,
            image_of_caption=np.arange(len(texts)) % len(images) if owners is None else owners,
            relevance=relevance,
            measures=self._measures,
            protocol=protocol,
            similarity_function=self._similarity_function,
            provenance=provenance,
            settings=self._settings,
        )

    def forward(self, *given: Any, **named: Any) -> Any:
        """Take a batch as :meth:`update` does; gives the numbers of this batch as a gallery of its own."""
        self._of_a_batch = True
        try:
            return super().forward(*given, **named)
        finally:
            self._of_a_batch = False

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw a value, or several as a curve, with matplotlib; gives the figure and its axes.

        Args:
            val: What :meth:`compute` or :meth:`forward` gave, or a list of these. Default: what ``compute`` gives.
            ax: Axes to draw into.

        Raises:
            MissingExtraError: If matplotlib is not installed.
        """
        require("matplotlib", "Graded.plot")
        drawn: Any = self._plot(val, ax)
        drawn[1].set_ylabel(", ".join(map(str, self._measures)))
        return drawn

    def extra_repr(self) -> str:
        """Names of the numbers."""
        return ", ".join(self.names)

    def _bound(self, end: int) -> float | None:
        found = {one.bounds[end] for one in self._measures}
        return bound if len(found) == 1 and np.isfinite(bound := found.pop()) else None

    def _checked_owners(self, given: ArrayLike | None) -> NDArray[np.int64] | None:
        """(captions,) positions of images, from the argument or the relevance; None where no measure reads them."""
        owners = getattr(self._relevance, "image_of_caption", None) if given is None else given
        terms = [term for one in self._measures for term in (one.terms if isinstance(one, Total) else (one,))]
        if self._relevance is None and (graded := [str(one) for one in self._measures if one.graded]):
            raise UserError(f"{some_of(graded)}: reads degrees of relevance; give relevance")
        reading = [str(one) for one in terms if not isinstance(one, _OF_DEGREES) or getattr(one, "non_gt", False)]
        if owners is None and reading:
            raise UserError(f"{some_of(reading)}: reads which captions are an image's own; give image_of_caption")
        shape = getattr(self._relevance, "shape", None)
        if owners is None:
            return None
        checked = checked_owners(owners)
        if shape is not None and (len(checked) != shape[1] or checked.max() >= shape[0]):
            raise UserError(
                f"image_of_caption names {len(checked)} captions of images up to {checked.max()}, but relevance has"
                f" shape {tuple(shape)}; give both of the same data"
            )
        return checked

    def _size(self) -> tuple[int | None, int | None]:
        """Number of images and captions of the data, where they are known before all have come."""
        shape = getattr(self._relevance, "shape", None)
        if shape is not None:
            return int(shape[0]), int(shape[1])
        return None, None if self._owners is None else len(self._owners)

    def _say_missing(self, images: NDArray[np.int64], captions: NDArray[np.int64], shape: tuple[int, int]) -> None:
        """Warn of positions that have not come, or refuse them."""
        if self._of_a_batch:
            return
        lacking = []
        for what, places, count in (("images", images, shape[0]), ("captions", captions, shape[1])):
            if len(away := np.setdiff1d(np.arange(count), places)):
                lacking.append(f"{len(away):,} of {count:,} {what} ({some_of([str(one) for one in away], 30)})")
        said = f"Graded: {' and '.join(lacking)} never came to update"
        given = self._settings is not None and (self._settings.positives or self._settings.human_positives)
        if self._missing == "refuse" or given:
            raise UserError(f"{said}; give all batches before compute (in Lightning, with num_sanity_val_steps=0)")
        warnings.warn(
            f"{said}; the numbers are of the smaller gallery of those that did", RungwiseWarning, stacklevel=4
        )

    def _sync_dist(self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None) -> None:
        """Sync as the base class does, where a process that had no batch brings rows of none, of the others' width."""
        for vectors, places in (("image_vectors", "image_places"), ("text_vectors", "text_places")):
            own = getattr(self, vectors)
            width = torch.tensor(own[0].shape[1] if own else 0, device=self.device)
            widest = max(int(one) for one in dist_sync_fn(width, group=process_group or self.process_group))
            if not own:
                setattr(self, vectors, [torch.empty(0, widest, device=self.device)])
                setattr(self, places, [torch.empty(0, dtype=torch.int64, device=self.device)])
        super()._sync_dist(dist_sync_fn, process_group)


def _degrees(relevance: Any) -> Any:
    """Degrees that ``evaluate`` takes: a folder is opened, a tensor comes to the CPU, lists become an array."""
    if isinstance(relevance, str | Path):
        return load(user_path(relevance))
    if isinstance(relevance, Tensor):
        return relevance.detach().cpu()
    return relevance if relevance is None or hasattr(relevance, "block") else np.asarray(relevance)


def _take(
    vectors: list[Tensor], places: list[Tensor], given: Any, at: Any, names: tuple[str, str], count: int | None
) -> None:
    """Keep the vectors of positions that have none yet."""
    if given is None and at is None:
        return
    if given is None or at is None:
        raise UserError(f"{names[given is not None]} are missing; give {names[0]} and {names[1]} together")
    rows = torch.as_tensor(given).detach().float()
    positions = torch.as_tensor(at).cpu().numpy()
    if rows.ndim != 2 or positions.shape != rows.shape[:1]:
        raise UserError(
            f"{names[0]} have shape {tuple(rows.shape)} and {names[1]} {positions.shape}; give (n, D) and (n,)"
        )
    if not len(positions):
        return
    if positions.dtype.kind not in "iu":
        raise UserError(f"{names[1]} must be whole numbers, got {positions.dtype}; give positions in the data, from 0")
    wrong = (positions < 0) | (positions >= (np.inf if count is None else count))
    if wrong.any():
        most = "" if count is None else f" to {count - 1}"
        raise UserError(f"{names[1]}: there is no position {positions[wrong][0]}; give positions in the data, 0{most}")
    found, first = np.unique(positions, return_index=True)
    new = first if not places else first[~np.isin(found, dim_zero_cat(places).cpu().numpy())]
    vectors.append(rows[torch.from_numpy(new).to(rows.device)])
    places.append(torch.from_numpy(positions[new].astype(np.int64)).to(rows.device))


def _in_order(vectors: Any, places: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors in the order of their positions, of each the first, and these positions."""
    if not len(places):
        return np.empty((0, 0), np.float32), np.empty(0, np.int64)
    found, first = np.unique(dim_zero_cat(places).cpu().numpy(), return_index=True)
    return dim_zero_cat(vectors).cpu().numpy()[first], found


def _of_part(known: Provenance | None, images: NDArray[np.int64], captions: NDArray[np.int64]) -> Provenance | None:
    """Provenance with the ids of these images and captions."""
    if known is None:
        return None
    of_images, of_captions = known.image_ids, known.caption_ids
    return replace(
        known,
        image_ids=None if of_images is None else [of_images[place] for place in images],
        caption_ids=None if of_captions is None else [of_captions[place] for place in captions],
    )
