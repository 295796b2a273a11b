"""``rungwise search --why``: where the words of the query were found in each of the first hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.output import printable

if TYPE_CHECKING:
    from rungwise.data.files import Picture
    from rungwise.models import PairScorer
    from rungwise.serving import Client

HITS = 5
"""Number of first hits that are explained."""
_WORDS = 6
"""Number of words that count most."""


def reason(word: str, where: str, answer: float) -> str:
    """Text of a word, where it was found, and the cosine with what answered it.

    >>> reason("dog", "lower left", 0.712), reason("dog", "", 0.712)
    ('dog: lower left (0.71)', 'dog (0.71)')
    """
    return f"{printable(word)}{f': {where}' if where else ''} ({answer:.2f})"


def reasons_of(scorer: PairScorer, picture: Picture | None, texts: Sequence[str]) -> tuple[str, ...]:
    """Explanation of one hit by a model, or the error that prevents it; ``picture`` is None without a file."""
    if picture is None:
        return ("the picture has no file",)
    lines: list[str] = []
    for text in texts:
        try:
            found = scorer.explain(picture, text)
        except UserError as error:
            return (printable(str(error)),)
        places = found.decisive(_WORDS)
        lines += [reason(found.words[one], found.where(one), float(found.answers[one])) for one in places]
    return tuple(lines)


def reasons_from(client: Client, query: str, item_id: str) -> tuple[str, ...]:
    """Explanation of one hit by a server, or the error that prevents it."""
    words: list[Mapping[str, Any]] = []
    try:
        texts = client.why(query, item_id)["texts"]
    except UserError as error:
        return (str(error),)
    for text in texts:
        words += sorted(text["words"], key=lambda one: -float(one["share"]))[:_WORDS]
    return tuple(reason(str(one["word"]), str(one["where"]), float(one["answer"])) for one in words)


def check_explains(scorer: PairScorer) -> None:
    """Refuse a model that cannot explain; the message names those that can."""
    if not scorer.explains:
        raise UserError(
            f"--why: a model of kind {scorer.kind or type(scorer).__name__!r} cannot say which regions answered which"
            " words; --rerank with one of kind scan, sgr or saf"
        )
