"""The answer of a search, made of the JSON in which a server sent it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rungwise.index import Answer, End, Hit
from rungwise.index.query import UnknownWord


def answer_of_json(found: Mapping[str, Any], *, ends: bool = True) -> Answer:
    """The answer that a server sent, as a search in the same index here would give it.

    Args:
        found: JSON of ``/search`` or ``/similar``, with the hits after the end.
        ends: Whether the end of relevance is read.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: If it is not as this version writes it;
            ``rungwise.serving.Client.reading_answers`` makes one line of it.
    """
    return Answer(
        tuple(Hit(str(hit["id"]), math.nan if hit["score"] is None else float(hit["score"])) for hit in found["hits"]),
        folded={str(hit["id"]): tuple(map(str, hit["folded"])) for hit in found["hits"] if hit["folded"]},
        unknown=tuple(_unknown(one) for one in found["unknown"]),
        reading=str(found["reading"]),
        notes=tuple(map(str, found["notes"])),
        more=bool(found["more"]),
        end=_end(found) if ends else None,
    )


def _unknown(word: Mapping[str, Any]) -> UnknownWord:
    near = tuple(map(str, word["near"]))
    return UnknownWord(str(word["word"]), near, found=bool(word["found"]), misspelt=bool(word["misspelt"]))


def _end(found: Mapping[str, Any]) -> End | None:
    """End of relevance in the server's answer; None where it was not judged."""
    end = found.get("end")
    if end is None:
        return None
    first, second, third = map(str, end["names"])
    return End(
        tuple(int(hit["rung"]) for hit in found["hits"]),
        tuple(float(hit["degree"]) for hit in found["hits"]),
        shown=int(end["shown"]),
        belief=float(end["belief"]),
        source=str(end["source"]),
        advice=tuple(map(str, end["advice"])),
        names=(first, second, third),
        remark=str(end["remark"]),
    )
