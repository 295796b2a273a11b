"""A fitted regression as a JSON file: plain coefficients, and whatever is read is checked first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from rungwise.core.digests import digest_of_json
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.core.reading import read_json, user_path
from rungwise.relevance.curves import Curve
from rungwise.relevance.fit import MOST_KNOTS, MOST_SOURCES, Fit, Kind

_FORMAT, _VERSION = "rungwise-combination", 1
_LONGEST = 4000
"""Characters of a text in the file."""
_LARGEST = 1e30
_MOST_PAIRS = 1 << 53


def write_fit(fit: Fit, path: Path | str) -> None:
    """Write a file, whole or not at all.

    Raises:
        UserError: If the place cannot be written.

    >>> import tempfile
    >>> curves = (Curve((0.0, 1.0), (0.0, 5.0)),)
    >>> fit = Fit("isotonic", ("words",), (), "", 30, 0.0, 5.0, (0.0,), (1.0,), (1.0,), curves)
    >>> file = Path(tempfile.mkdtemp()) / "fit.json"
    >>> write_fit(fit, file)
    >>> read_fit(file) == fit
    True
    """
    with replacing(Path(path)) as draft:
        draft.write_text(json.dumps(as_json(fit), allow_nan=False, indent=1) + "\n", encoding="ascii")


def as_json(fit: Fit) -> dict[str, Any]:
    """As plain numbers, lists and texts, which JSON gives back to the bit; with a checksum of all of them."""
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
        UserError: In one line, if there is none, or it is damaged, was altered, is of another version or no fit.

    >>> read_fit("nowhere.json")
    Traceback (most recent call last):
    rungwise.core.reading.MissingFileError: nowhere.json: ...
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
        return _fit(content)
    except UserError as error:
        raise UserError(f"{path}: damaged ({error}); fit the sources again") from error


def _fit(value: dict[str, Any]) -> Fit:
    kind: Any = value.get("kind")
    if kind not in get_args(Kind):
        raise UserError(f"kind {str(kind)[:40]!r}")
    kind_of: Kind = kind
    grades = _numbers(value.get("grades"), "grades", most=2)
    if len(grades) != 2:
        raise UserError("'grades' is no range")
    pairs, measured = value.get("pairs"), value.get("cross_validated")
    if type(pairs) is not int or not 0 < pairs < _MOST_PAIRS or not isinstance(measured, dict):
        raise UserError("'pairs' or 'cross_validated' is no such thing")
    pearson, spearman = (_share(measured.get(name), name) for name in ("pearson", "spearman"))
    folds = measured.get("folds")
    if type(folds) is not int or not 0 <= folds < _MOST_PAIRS:
        raise UserError("'folds' is no number")
    curves = value.get("curves")
    if not isinstance(curves, list) or len(curves) > MOST_SOURCES:
        raise UserError("'curves' is no list of curves")
    return Fit(
        kind=kind_of,
        names=_texts(value.get("sources"), "sources"),
        hashes=_texts(value.get("source_hashes"), "source_hashes"),
        judgements=_texts([value.get("judgements")], "judgements")[0],
        pairs=pairs,
        low=grades[0],
        high=grades[1],
        centres=_numbers(value.get("centres"), "centres"),
        scales=_numbers(value.get("scales"), "scales"),
        weights=_numbers(value.get("weights"), "weights"),
        curves=tuple(map(_curve, curves)),
        pearson=pearson,
        spearman=spearman,
        folds=folds,
    )


def _curve(value: object) -> Curve:
    if not isinstance(value, list) or len(value) != 2:
        raise UserError("a curve is no pair of lists")
    knots, values = (_numbers(side, "curves", most=MOST_KNOTS) for side in value)
    return Curve(knots, values)


def _numbers(value: object, name: str, most: int = MOST_SOURCES) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) > most:
        raise UserError(f"{name!r} is no list of at most {most} numbers")
    if not all(type(one) in (int, float) and abs(one) < _LARGEST for one in value):
        raise UserError(f"{name!r} holds what is no number of a sane size")
    return tuple(map(float, value))


def _share(value: object, name: str) -> float | None:
    if value is not None and not (isinstance(value, int | float) and abs(value) <= 1):
        raise UserError(f"{name!r} is no correlation")
    return None if value is None else float(value)


def _texts(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_SOURCES:
        raise UserError(f"{name!r} is no list of at most {MOST_SOURCES} texts")
    for one in value:
        if not isinstance(one, str) or len(one) > _LONGEST or not one.isprintable():
            raise UserError(f"{name!r} holds what is no line of text")
    return tuple(value)
