"""Queries that the page offers, chosen by rule and told apart by what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from rungwise.demo.comparison import Answer, Comparison
from rungwise.scenes.collection import SceneQuery

Outcome = Literal["found", "missed", "absent"]

FROM_OUTSIDE = ("a purple elephant", "a dog on a beach", "two people riding bicycles")
"""What no picture can show: the first candidates for the example of something absent."""

_FOUND = 4


@dataclass(frozen=True)
class Example:
    """A query to try.

    Attributes:
        text: The query.
        outcome: What the model that learnt degrees makes of it: ``"found"`` if a right picture stands first, before the
            end of relevance; ``"missed"`` if none of the first five is right; ``"absent"`` if no picture is relevant
            and it says so.

    >>> Example("a purple elephant", "absent").outcome
    'absent'
    """

    text: str
    outcome: Outcome


def choose_examples(
    comparison: Comparison, held_out: Sequence[SceneQuery], fresh: Sequence[SceneQuery]
) -> tuple[Example, ...]:
    """The first queries of each outcome, in the order in which they come; what does not occur is left out.

    Args:
        comparison: Of the two models.
        held_out: Searches for combinations that training never showed, other ones than those that are measured.
        fresh: Searches for other scenes, of which some have nothing relevant among the pictures.
    """
    answers = [(query.text, comparison.answer(query.text)) for query in held_out]
    found = (text for text, answer in answers if _is_found(answer))
    missed = (text for text, answer in answers if _is_missed(answer))
    return (
        *(Example(text, "found") for text in islice(found, _FOUND)),
        *(Example(text, "missed") for text in islice(missed, 1)),
        *(Example(text, "absent") for text in islice(_absent(comparison, fresh), 1)),
    )


def _is_found(answer: Answer) -> bool:
    own = answer.columns[-1]
    return own.first_right == 1 and own.shown > 0


def _is_missed(answer: Answer) -> bool:
    return (answer.columns[-1].first_right or answer.pictures) > 5


def _absent(comparison: Comparison, fresh: Sequence[SceneQuery]) -> Iterator[str]:
    for text in (*FROM_OUTSIDE, *(query.text for query in fresh)):
        answer = comparison.answer(text)
        if answer.columns[-1].shown == 0 and answer.relevant == 0:
            yield text
