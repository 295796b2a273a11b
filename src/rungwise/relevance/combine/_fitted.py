"""Sources combined by a regression on people's judgements: degrees in people's units.

Judging such degrees by the judgements that they were fitted to measures nothing:
:attr:`rungwise.relevance.combine.Fit.pearson` is of grades that were left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, digest_of_parts
from rungwise.relevance._base import Block, Degrees
from rungwise.relevance.combine._combinations import Combination, pair_degrees
from rungwise.relevance.combine._fit import Fit, Kind, fit_table
from rungwise.relevance.combine._fit_file import as_json


class Combined(Combination):
    """A rising regression of sources on people's grades.

    Args:
        sources: Sources of the same images and captions, at least one.
        fitted: Regression learned here or on other pairs; None until :meth:`fit`.

    >>> from rungwise.relevance.lexical import CIDErD, TfIdf
    >>> from rungwise.relevance.human import HumanJudgements
    >>> animals = ("dog", "cat", "fox", "cow")
    >>> captions = [f"{size} {animal}" for size in ("a big", "a small", "one") for animal in animals]
    >>> owners = range(12)
    >>> images, texts = np.divmod(np.arange(144), 12)
    >>> grades = 4.0 * (images % 4 == texts % 4) + 1.0 * (images // 4 == texts // 4)
    >>> people = HumanJudgements(images, texts, grades, (12, 12), image_of_caption=owners)
    >>> learned = Combined([CIDErD(captions, owners), TfIdf(captions, owners)]).fit(people)
    >>> learned.fitted.kind, learned.fitted.pairs, learned.dense()[0, :2].round(1)
    ('isotonic', 144, array([5. , 1.2], dtype=float32))
    """

    def __init__(self, sources: Sequence[Degrees], fitted: Fit | None = None) -> None:
        super().__init__(sources)
        self.fitted = fitted
        names = tuple(source.called for source in self.sources)
        if fitted is not None and fitted.names != names:
            raise UserError(
                f"combine: fitted to {', '.join(fitted.names)}, but the sources are {', '.join(names)}; give the same"
                " sources with the same options, in the same order"
            )

    def fit(self, judgements: Degrees, *, kind: Kind = "isotonic") -> Combined:
        """Learn from people's judgements of images and captions.

        Args:
            judgements: Degrees such as :class:`~rungwise.relevance.human.HumanJudgements`, of the same images
                and captions.
            kind: Kind of regression, as in :mod:`rungwise.relevance.combine._fit`.

        Returns:
            The combination that was learned; this one stays as it was.

        Raises:
            UserError: If the judgements are of other data or cannot be listed, or for the reasons of :meth:`fit_pairs`.
        """
        pairs = judgements.known_pairs()
        if judgements.shape != self.shape:
            raise UserError(
                f"combine: judgements of {judgements.shape} images and captions for sources of {self.shape}; give"
                " judgements of the same collection"
            )
        if pairs is None:
            raise UserError(
                "combine: the judgements are of all pairs and cannot be listed; give those that people graded"
            )
        grades = pair_degrees(judgements, *pairs.T)
        return self._learned(pairs[:, 0], pairs[:, 1], grades, kind, judgements.content_hash())

    def fit_pairs(
        self, images: ArrayLike, captions: ArrayLike, grades: ArrayLike, *, kind: Kind = "isotonic"
    ) -> Combined:
        """Learn from grades of pairs, as :meth:`fit` does.

        Args:
            images: (pairs,) positions.
            captions: (pairs,) positions.
            grades: (pairs,) people's grades, on any scale.
            kind: Kind of regression, as in :mod:`rungwise.relevance.combine._fit`.

        Raises:
            UserError: If the three differ in length, a position does not exist, a source does not know all pairs, there
                are fewer than 30, all grades are the same, or no source rises with them.
        """
        rows, columns = self.positions(images, captions)
        given = np.asarray(grades, np.float64)
        if not rows.shape == columns.shape == given.shape or rows.ndim != 1:
            raise UserError(
                f"combine: {rows.size} images, {columns.size} captions, {given.size} grades; give equally many"
            )
        return self._learned(rows, columns, given, kind, digest_of_parts([rows, columns, given]))

    def _learned(self, images: Any, captions: Any, grades: Any, kind: Kind, judgements: str) -> Combined:
        table = np.empty((len(images), len(self.sources)))
        for place, source in enumerate(self.sources):
            table[:, place] = pair_degrees(source, images, captions)
        learned = fit_table(
            table,
            grades,
            kind=kind,
            groups=images,
            names=[source.called for source in self.sources],
            hashes=[source.content_hash() for source in self.sources],
            judgements=judgements,
        )
        return type(self)(self.sources, learned)

    def combined(self, blocks: Iterator[Block]) -> Block:
        """The grades that people would give; a UserError if nothing was learned."""
        return self._known().combined(blocks).astype(np.float32)

    def options(self) -> Mapping[str, Any]:
        """The fitted regression, and the hash of each source; a UserError if nothing was learned."""
        return {"fit": as_json(self._known()), **super().options()}

    def _known(self) -> Fit:
        if self.fitted is None:
            raise UserError("combine: nothing was learned yet; take what fit() returns, or give a fit")
        return self.fitted
