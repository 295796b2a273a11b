"""A fitted regression as a JSON file: plain coefficients, and whatever is read is checked first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from rungwise.core import UserError, digest_of_json, from_plain, read_json, user_path
from rungwise.core.disk import replacing
from rungwise.relevance.combine._curves import Curve
from rungwise.relevance.combine._fit import MOST_KNOTS, MOST_SOURCES, Fit, Kind

_FORMAT, _VERSION = "rungwise-combination", 1
_LONGEST = 4000
"""Most characters of a text in the file."""
_LARGEST = 1e30
_MOST_PAIRS = 1 << 53


def write_fit(fit: Fit, path: Path | str) -> None:
    """Write a file, whole or not at all."""
    with replacing(Path(path)) as draft:
        draft.write_text(json.dumps(as_json(fit), allow_nan=False, indent=1) + "\n", encoding="ascii")


def as_json(fit: Fit) -> dict[str, Any]:
    """Plain numbers, lists and texts that JSON gives back to the bit, with a checksum of all of them."""
    content: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": fit.kind,
        "sources": list(fit.names),
        "source_hashes": list(fit.hashes),
        "judgements": fit.judgements,
        "pairs": fit.pairs,
        "grades": [fit.low, fit.high],
        "centres": list(fit.centres),
        "scales": list(fit.scales),
        "weights": list(fit.weights),
        "curves": [[list(curve.knots), list(curve.values)] for curve in fit.curves],
        "cross_validated": {"pearson": fit.pearson, "spearman": fit.spearman, "folds": fit.folds},
    }
    return content | {"checksum": digest_of_json(content)}


def read_fit(path: Path | str) -> Fit:
    """Read and check a file that :func:`write_fit` wrote.

    Raises:
        UserError: In one line, if the file is missing, damaged, altered, of another version or no fit.
    """
    value = read_json(user_path(path))
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise UserError(f"{path}: is no fitted combination; give a file that 'rungwise relevance combine' kept")
    if value.get("version") != _VERSION:
        raise UserError(f"{path}: version {value.get('version')!r}, this rungwise reads {_VERSION}; update rungwise")
    content = {name: part for name, part in value.items() if name != "checksum"}
    try:
        if digest_of_json(content) != value.get("checksum"):
            raise UserError("it is not as it was written")
        return from_plain(_File, content, "what it says").fit()
    except UserError as error:
        raise UserError(f"{path}: damaged ({error}); fit the sources again") from error


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("is no line of text")
    return text


_Number = Annotated[float, Field(strict=True, gt=-_LARGEST, lt=_LARGEST)]
_Numbers = Annotated[tuple[_Number, ...], Field(max_length=MOST_SOURCES)]
_Knots = Annotated[tuple[_Number, ...], Field(max_length=MOST_KNOTS)]
_Line = Annotated[str, Field(max_length=_LONGEST), AfterValidator(_line)]
_Lines = Annotated[tuple[_Line, ...], Field(max_length=MOST_SOURCES)]
_Correlation = Annotated[float, Field(strict=True, ge=-1, le=1)]
_Count = Annotated[int, Field(strict=True, ge=0, lt=_MOST_PAIRS)]


@dataclass(frozen=True)
class _Measured:
    """Agreement of the fit with grades that were left out."""

    pearson: _Correlation | None
    spearman: _Correlation | None
    folds: _Count


@dataclass(frozen=True)
class _File:
    """The content of a file, with the keys of :func:`as_json`."""

    format: str
    version: int
    kind: Kind
    sources: _Lines
    source_hashes: _Lines
    judgements: _Line
    pairs: Annotated[_Count, Field(gt=0)]
    grades: tuple[_Number, _Number]
    centres: _Numbers
    scales: _Numbers
    weights: _Numbers
    curves: Annotated[tuple[tuple[_Knots, _Knots], ...], Field(max_length=MOST_SOURCES)]
    cross_validated: _Measured

    def fit(self) -> Fit:
        """The fit itself, which checks that its parts fit together."""
        return Fit(
            kind=self.kind,
            names=self.sources,
            hashes=self.source_hashes,
            judgements=self.judgements,
            pairs=self.pairs,
            low=self.grades[0],
            high=self.grades[1],
            centres=self.centres,
            scales=self.scales,
            weights=self.weights,
            curves=tuple(Curve(*curve) for curve in self.curves),
            **asdict(self.cross_validated),
        )
