"""One of the two models with its index: what it says of every picture, and where relevance ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Background, Calibration, Judgement, Known
from rungwise.core.errors import UserError
from rungwise.demo.places import NAMES, Name, Places
from rungwise.index import Index
from rungwise.index.words import words_of

if TYPE_CHECKING:
    from rungwise.models import DualEncoder, JointEmbedding


@dataclass(frozen=True)
class Side:
    """A model and the index that it built.

    Attributes:
        name: Which of the two.
        index: Of the test pictures.
        model: That built it.
        calibration: Of the model.
    """

    name: Name
    index: Index
    model: JointEmbedding
    calibration: Calibration

    @classmethod
    def open(cls, name: Name, places: Places, device: str | None = None) -> Side:
        """What an earlier demo made.

        Raises:
            UserError: If anything of it is missing, damaged, or does not belong together.
        """
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
        """Of the pictures, in the order of the index."""
        return tuple(item.id for item in self.index.items())

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        rows = self.index.picture_store.get(self.ids)
        return np.stack([rows[one].vector for one in self.ids])

    def scores(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, pictures) similarity."""
        similarity = self.index.similarity.array(self._vectors, self.model.encode_text(texts))
        return np.ascontiguousarray(similarity.T, dtype=np.float32)

    def judge(self, text: str, falling: NDArray[np.float32]) -> Judgement:
        """Where relevance ends for a text.

        Args:
            text: The query.
            falling: (pictures,) its scores, best first.
        """
        background = Background(falling, len(falling))
        return self.calibration.judge_hits(falling, background, known_of(text, self.model))


def known_of(text: str, model: DualEncoder) -> Known:
    """What a calibration is told of a query beside its scores."""
    words = words_of(text)
    unknown = model.unknown_words(text)
    return Known(unknown_share=len(unknown) / len(words) if words else 0.0)


def both(places: Places, device: str | None = None) -> dict[Name, Side]:
    """Both models as an earlier demo left them.

    Raises:
        UserError: As :meth:`Side.open`, and if they do not know the same pictures.
    """
    sides = {name: Side.open(name, places, device) for name in NAMES}
    first, *others = sides.values()
    for other in others:
        if other.ids != first.ids:
            raise UserError(f"{places.folder}: its two indexes hold different pictures; make it anew with --again")
    return sides
