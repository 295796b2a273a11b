"""Example queries of the page, chosen by rule and sorted by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from rungwise.demo._comparison import ComparedAnswer, SideBySide
from rungwise.scenes import SceneQuery

Outcome = Literal["found", "missed", "absent"]

FROM_OUTSIDE = ("a purple elephant", "a dog on a beach", "two people riding bicycles")
"""Queries for what no picture can show: the first candidates for the example of something absent."""

_FOUND, _A_LADDER = 4, 4
"""Number of examples of what is found, and smallest number of relevant pictures of each, so that these differ."""


@dataclass(frozen=True)
class ExampleQuery:
    """An example query.

    Attributes:
        text: Text of the query.
        outcome: What the model that learnt degrees makes of it. ``"found"``: a right picture is first, before the end
            of relevance, and four or more pictures are relevant. ``"missed"``: none of the first five is right.
            ``"absent"``: no picture is relevant, and it says so.
    """

    text: str
    outcome: Outcome


def choose_examples(
    comparison: SideBySide, held_out: Sequence[SceneQuery], fresh: Sequence[SceneQuery]
) -> tuple[ExampleQuery, ...]:
    """The first queries of each outcome, in their given order; outcomes that do not occur are left out.

    Args:
        comparison: Comparison of the two models.
        held_out: Searches for combinations that training never showed, other than those that are measured.
        fresh: Searches for other scenes, some of which have nothing relevant among the pictures.
    """
    asked = [query.text for query in held_out]
    elsewhere = [*FROM_OUTSIDE, *(query.text for query in fresh)]
    wanted: tuple[tuple[Outcome, list[str], int], ...] = (
        ("found", asked, _FOUND),
        ("missed", asked, 1),
        ("absent", elsewhere, 1),
    )
    return tuple(
        ExampleQuery(text, outcome)
        for outcome, texts, most in wanted
        for text in islice((text for text in texts if _outcome(comparison.answer(text)) == outcome), most)
    )


def _outcome(answer: ComparedAnswer) -> Outcome | None:
    own = answer.columns[-1]
    if answer.relevant == 0:
        return None if own.shown else "absent"
    if own.first_right == 1 and own.shown and answer.relevant >= _A_LADDER:
        return "found"
    return "missed" if (own.first_right or answer.pictures) > 5 else None
