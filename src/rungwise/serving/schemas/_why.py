"""What the server answers to why a picture was found, as values; see :mod:`rungwise.serving.schemas.responses`."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.core.output import short_repr


@dataclass(frozen=True)
class WhyWord:
    """A word of a query, and where it was found in a picture.

    Attributes:
        word: The word as the model read it.
        answer: Cosine of the word and what it attended to in the picture.
        share: Share of the word in the score. The shares of a text add up to 1 together with what frames it.
        where: Part of the picture, such as ``"lower left"``; empty where it is not known.
        regions: Weight of each region; the weights add up to 1.
    """

    word: str
    answer: float
    share: float
    where: str
    regions: tuple[float, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class WhyText:
    """A text of a query.

    Attributes:
        text: The text as it was understood.
        weight: Weight of the text; below 0 where it is wanted less.
        words: Words of the text, in their order.
    """

    text: str
    weight: float
    words: tuple[WhyWord, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class Why:
    """Which regions of a picture answered which words of a query.

    Attributes:
        index_version: Version of the index.
        id: Id of the picture.
        model: Kind of the model that explains.
        boxes: Left, top, right and bottom of each region, as shares of the picture's width and height; empty where the
            places of regions are not known.
        texts: Texts of the query.
    """

    index_version: str
    id: str
    model: str
    boxes: tuple[tuple[float, ...], ...]
    texts: tuple[WhyText, ...]

    __repr__ = short_repr
