"""What the server answers to why a picture was found, as values; see :mod:`rungwise.serving.schemas.responses`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WhyWord:
    """A word of a query, and where it was found in a picture.

    Attributes:
        word: As the model read it.
        answer: How well the picture answered it, as a cosine.
        share: How much it counts in the score. Shares of a text add up to 1 together with what frames it.
        where: In which part of the picture, such as ``"lower left"``; empty where nobody knows.
        regions: The weight of each region; they add up to 1.
    """

    word: str
    answer: float
    share: float
    where: str
    regions: tuple[float, ...]


@dataclass(frozen=True)
class WhyText:
    """A text of a query.

    Attributes:
        text: As it was understood.
        weight: How much it counts; below 0 where it is wanted less.
        words: Its words, in their order.
    """

    text: str
    weight: float
    words: tuple[WhyWord, ...]


@dataclass(frozen=True)
class Why:
    """Which regions of a picture answered which words of a query.

    Attributes:
        index_version: See :class:`~rungwise.serving.schemas.responses.About`.
        id: Of the picture.
        model: What kind of model says so.
        boxes: Left, top, right and bottom of each region, as shares of the picture's width and height; empty where
            nobody knows where regions lie.
        texts: Of the query.
    """

    index_version: str
    id: str
    model: str
    boxes: tuple[tuple[float, ...], ...]
    texts: tuple[WhyText, ...]
