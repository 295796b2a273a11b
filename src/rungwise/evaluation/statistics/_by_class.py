"""Numbers of a result class by class: which labels a model finds, and which it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.formats import IN_FILE, Number
from rungwise.core.output import short_repr
from rungwise.core.text import natural_key
from rungwise.evaluation.statistics._intervals import MeasureTerm, PerQuery, is_known
from rungwise.metrics import DIRECTIONS
from rungwise.relevance.human import labels_of


@dataclass(frozen=True)
class ClassNumbers:
    """The numbers by measure, such as ``MAP@50``, of the queries of one class; NaN where none has a value."""

    __pydantic_config__ = IN_FILE

    label: str
    queries: int
    numbers: Mapping[str, Number]

    __repr__ = short_repr


@dataclass(frozen=True)
class ByClass:
    """Numbers of all classes, as :func:`by_class` finds them.

    Attributes:
        classes: Classes by name, per direction; a direction that was not measured is absent.
        without_label: Per direction, the number of queries without a label, which are in no class.
    """

    __pydantic_config__ = IN_FILE

    classes: Mapping[str, tuple[ClassNumbers, ...]] = field(default_factory=dict)
    without_label: Mapping[str, int] = field(default_factory=dict)

    __repr__ = short_repr

    def notes(self) -> list[str]:
        """Remarks on the classes, one line each."""
        return [
            f"{way}: queries without a label, which are in no class: {count}"
            for way, count in self.without_label.items()
            if count
        ]


class Measured(PerQuery, Protocol):
    """What :func:`by_class` reads of a :class:`~rungwise.evaluation.Result`."""

    @property
    def numbers(self) -> Mapping[str, float]:
        """Values by name."""
        ...

    @property
    def has_queries(self) -> bool:
        """Whether there are values per query."""
        ...


def by_class(result: Measured, labels: Sequence[str | int | Sequence[str | int]]) -> ByClass:
    """Take every measure of a result over the queries of each class; sums such as rsum have no classes.

    Measures that are not known here are left out.

    A query with several labels counts in each of its classes. A caption has the labels of its image.

    Args:
        result: Result of one gallery, with values per query.
        labels: (images,) label of each image, or its several labels, or none.

    Raises:
        UserError: If the result has no values per query, is of several galleries, or is of more images than labels.

    >>> from rungwise.evaluation import EvaluationSettings, evaluate, positives_from_labels
    >>> labels, owners = ["art", "art", "sport"], [0, 1, 2]
    >>> right = positives_from_labels(labels, owners)
    >>> scores = [[0.9, 0.8, 0.1], [0.2, 0.1, 0.3], [0.1, 0.2, 0.7]]
    >>> settings = EvaluationSettings(positives=right)
    >>> result = evaluate(similarity=scores, image_of_caption=owners, protocol="labels", settings=settings)
    >>> [(one.label, one.queries, round(one.numbers["MAP"], 1)) for one in by_class(result, labels).classes["i2t"]]
    [('art', 2, 79.2), ('sport', 1, 100.0)]
    """
    if not result.has_queries:
        raise UserError("by class: the result holds no values per query; evaluate again")
    if any(len(sizes) > 1 for sizes in result.gallery.values()):
        raise UserError("by class: the result is of several galleries; evaluate under protocol 'labels'")
    own = [labels_of(one) for one in labels]
    terms = [MeasureTerm.of(name) for name in result.numbers if "/" in name and is_known(name)]
    classes: dict[str, tuple[ClassNumbers, ...]] = {}
    without: dict[str, int] = {}
    for way in DIRECTIONS:
        measured = [term for term in terms if term.direction == way]
        images = result.image_of_query(way)
        if images.max(initial=-1) >= len(own):
            raise UserError(
                f"by class: there are labels of {len(own)} images, and image {images.max()} was measured; give the"
                " labels of every image"
            )
        if not measured:
            continue
        members = dict(_members([own[image] for image in images.tolist()]))
        classes[way] = tuple(
            ClassNumbers(
                label,
                len(queries),
                {str(t.measure): t.measure.aggregate(result.per_query(t.name)[queries]) for t in measured},
            )
            for label, queries in members.items()
        )
        without[way] = sum(not own[image] for image in images.tolist())
    return ByClass(classes, without)


def _members(labels: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each class by name, with the positions of its queries, ascending."""
    found: dict[str, list[int]] = {}
    for query, own in enumerate(labels):
        for label in own:
            found.setdefault(label, []).append(query)
    for label in sorted(found, key=natural_key):
        yield label, np.array(found[label], dtype=np.int64)
