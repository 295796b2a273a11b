"""One of the two models with its index: its scores of every picture, and where relevance ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Background, Calibration, Known, QueryJudgement
from rungwise.core import UserError
from rungwise.demo._places import NAMES, Name, Places
from rungwise.index import Index
from rungwise.index.cutoff import known_of
from rungwise.index.query import Query
from rungwise.metrics import JudgedQueries

if TYPE_CHECKING:
    from rungwise.models import DualEncoder, JointEmbedding


_POOL = 200
"""Number of hits that are judged one by one, as a search does."""


@dataclass(frozen=True)
class DemoModel:
    """A model with the index of the test pictures that it built, and its calibration."""

    name: Name
    index: Index
    model: JointEmbedding
    calibration: Calibration

    @classmethod
    def open(cls, name: Name, places: Places, device: str | None = None) -> DemoModel:
        """Open what an earlier demo made; UserError if anything is missing, damaged, or does not belong together."""
        from rungwise.models import JointEmbedding

        index = Index.open(places.index(name))
        model = JointEmbedding.from_pretrained(places.model(name), device)
        index.check(model)
        calibration = index.calibration
        if calibration is None:
            raise UserError(f"{places.index(name)}: has no calibration; make the demo anew with --again")
        return cls(name, index, model, calibration)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the pictures, in the order of the index."""
        return tuple(item.id for item in self.index.items())

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        rows = self.index.picture_store.get(self.ids)
        return np.stack([rows[one].vector for one in self.ids])

    def scores(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[Known]]:
        """(texts, pictures) similarities, and what a calibration knows of each text besides."""
        vectors = self.model.encode_text(texts)
        similarity = self.index.similarity.array(self._vectors, vectors)
        return np.ascontiguousarray(similarity.T, dtype=np.float32), known_of_all(texts, vectors, self.model)

    def judge(self, falling: NDArray[np.float32], known: Known) -> QueryJudgement:
        """Where relevance ends for one text with (pictures,) falling scores, as a search of the index judges it."""
        return self.calibration.judge_hits(falling[:_POOL], Background(falling, len(falling)), known)

    def judged(self, scores: NDArray[np.float32], known: Sequence[Known]) -> JudgedQueries:
        """Where relevance ends for texts with (texts, pictures) scores."""
        return self.calibration.judge(scores, "t2i", np.arange(len(scores)), known)


def known_of_all(texts: Sequence[str], vectors: NDArray[np.float32], model: DualEncoder) -> list[Known]:
    """What a calibration knows of texts, from their (texts, D) vectors by the model, as in a search."""
    return [known_of(Query.of(text), vector, model) or Known() for text, vector in zip(texts, vectors, strict=True)]


def both(places: Places, device: str | None = None) -> dict[Name, DemoModel]:
    """Open both models of an earlier demo; UserError also if their indexes hold different pictures."""
    sides = {name: DemoModel.open(name, places, device) for name in NAMES}
    first, *others = sides.values()
    for other in others:
        if other.ids != first.ids:
            raise UserError(f"{places.folder}: its two indexes hold different pictures; make it anew with --again")
    return sides
