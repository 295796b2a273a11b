"""The parts of a query: words, pictures and vectors, each with a weight."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data.files import Picture

LESS = 0.5
"""Default weight of what is wanted less: it takes away a third of that at little cost to the rest.

``benchmarks/queries.py without`` measures it.
"""
MOST_TERMS = 32
"""Number of terms that one query may have."""
MOST_WEIGHT = 1000.0


@dataclass(frozen=True)
class Words:
    """A text that the model reads."""

    text: str

    def __str__(self) -> str:
        return f'"{" ".join(self.text.split())}"'


@dataclass(frozen=True)
class Like:
    """A picture of the index, by its id."""

    id: str

    def __str__(self) -> str:
        return f"the picture {self.id}"


@dataclass(frozen=True)
class GivenPicture:
    """A picture from outside the index: a file, a place in a larger file, or the bytes of a file."""

    picture: Picture | bytes
    name: str

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"the picture {self.name}"


@dataclass(frozen=True, eq=False)
class GivenVector:
    """A picture from outside that is encoded already; ``vector`` is (D,) or (1, D)."""

    vector: ArrayLike
    name: str

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"the picture {self.name}"


What = Words | Like | GivenPicture | GivenVector


@dataclass(frozen=True)
class Term:
    """A part of a query and its weight: finite, at most ``MOST_WEIGHT``, and below 0 for what is wanted less."""

    what: What
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.weight) or abs(self.weight) > MOST_WEIGHT:
            raise UserError(f"weight {self.weight} of {self.what}: give one of at most {MOST_WEIGHT:g}")
        if isinstance(self.what, Words) and not self.what.text.strip():
            raise UserError("the query is empty; write a few words about the picture")


@dataclass(frozen=True)
class Query:
    """Weighted terms whose vectors are added up.

    Attributes:
        terms: Terms, of which one at least has a weight other than 0.
        notes: Lines for a person on how the text was read.

    Raises:
        UserError: If there is nothing to search for, or too much.

    >>> query = Query((Term(Words("a beach"), 2.0), Term(Words("people"), -LESS)))
    >>> query.reading
    'pictures like 2 × "a beach", less like "people"'
    """

    terms: tuple[Term, ...]
    notes: tuple[str, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not any(term.weight for term in self.terms):
            raise UserError("the query is empty; write a few words about the picture")
        if len(self.terms) > MOST_TERMS:
            raise UserError(f"the query has {len(self.terms)} parts; at most {MOST_TERMS} are taken")

    @classmethod
    def of(cls, text: str) -> Query:
        """Query of one plain text, whatever signs it holds."""
        return cls((Term(Words(text)),))

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct texts that a model must encode."""
        return tuple(dict.fromkeys(term.what.text for term in self.terms if isinstance(term.what, Words)))

    @property
    def wanted_texts(self) -> tuple[str, ...]:
        """The distinct texts with a weight above 0."""
        wanted = (term.what for term in self.terms if term.weight > 0)
        return tuple(dict.fromkeys(what.text for what in wanted if isinstance(what, Words)))

    @property
    def like(self) -> tuple[str, ...]:
        """The distinct ids of the pictures of the index that the query names."""
        return tuple(dict.fromkeys(term.what.id for term in self.terms if isinstance(term.what, Like)))

    @property
    def has_words(self) -> bool:
        """Whether any part is a text."""
        return any(isinstance(term.what, Words) for term in self.terms)

    @property
    def has_words_alone(self) -> bool:
        """Whether every part is a text."""
        return all(isinstance(term.what, Words) for term in self.terms)

    @property
    def reading(self) -> str:
        """How the query is understood, in one line; empty where it is one plain text."""
        if len(self.terms) == 1 and self.has_words and self.terms[0].weight > 0:
            return ""
        more = _listed(_weighed(term, 1.0) for term in self.terms if term.weight > 0)
        less = _listed(_weighed(term, LESS) for term in self.terms if term.weight < 0)
        if not more:
            return f"pictures unlike {less}"
        return f"pictures like {more}, less like {less}" if less else f"pictures like {more}"


def _weighed(term: Term, usual: float) -> str:
    return str(term.what) if abs(term.weight) == usual else f"{abs(term.weight):g} × {term.what}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last
