"""A calibration as a JSON file; whatever is read is checked first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rungwise.calibration.supervised import Supervised
from rungwise.calibration.unrelated import Standard
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.core.reading import parse_json, read_bytes
from rungwise.core.sealed_lines import sealed, unsealed

_FORMAT, _VERSION = "rungwise-calibration", 1
_LONGEST = 1000
"""Characters of a text in the file."""
_MOST_CANDIDATES = 1 << 53
_LARGEST, _LEAST_DEVIATION = 1e30, 1e-12


@dataclass(frozen=True)
class Stored:
    """The fields of a calibration, as :class:`rungwise.calibration.Calibration` explains them."""

    relevant_from: float
    scale: tuple[float, float]
    boundaries: tuple[float, float]
    source: str
    model_fingerprint: str
    learnt: Supervised | None
    standard: Standard | None


def as_json(stored: Stored) -> dict[str, object]:
    """As plain numbers, lists and texts, which JSON gives back to the bit."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "source": stored.source,
        "model_fingerprint": stored.model_fingerprint,
        "relevant_from": stored.relevant_from,
        "scale": list(stored.scale),
        "boundaries": list(stored.boundaries),
        "learnt": None if stored.learnt is None else stored.learnt.to_json(),
        "standard": None if stored.standard is None else asdict(stored.standard),
    }


def write(value: dict[str, object], path: Path) -> None:
    """Write a file with a checksum, whole or not at all.

    Raises:
        UserError: If the place cannot be written.
    """
    with replacing(path) as draft:
        whole = json.loads(sealed(value))
        draft.write_text(json.dumps(whole, allow_nan=False, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Stored:
    """Read and check a file.

    Raises:
        MissingFileError: If there is none.
        UserError: In one line, if it is damaged, of an unknown version or something else.
    """
    text = read_bytes(path, "json_bytes")
    value = parse_json(text, path)
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise UserError(f"{path}: is no calibration; give a file that `rungwise calibrate` wrote")
    if value.get("version") != _VERSION:
        raise UserError(f"{path}: version {value.get('version')!r}, this rungwise reads {_VERSION}; update rungwise")
    try:
        unsealed(text)
        return _stored(value)
    except (UserError, ValueError) as error:
        raise UserError(f"{path}: damaged ({error}); run `rungwise calibrate` again") from error


def _stored(value: dict[str, Any]) -> Stored:
    relevant_from = _number(value, "relevant_from")
    scale, boundaries = _pair(value, "scale"), _pair(value, "boundaries")
    if not scale[0] < scale[1]:
        raise UserError("'scale' does not rise")
    if boundaries[0] < boundaries[1]:
        raise UserError("'boundaries' rise")
    learnt = value.get("learnt")
    if learnt is not None and not isinstance(learnt, dict):
        raise UserError("'learnt' is no object")
    return Stored(
        relevant_from,
        scale,
        boundaries,
        _text(value, "source"),
        _text(value, "model_fingerprint"),
        None if learnt is None else Supervised.from_json(learnt),
        None if value.get("standard") is None else _standard(value["standard"]),
    )


def _standard(value: object) -> Standard:
    if not isinstance(value, dict):
        raise UserError("'standard' is no object")
    best, deviation, spread, total = (_number(value, name) for name in ("best", "deviation", "spread", "total"))
    if not (deviation >= _LEAST_DEVIATION and spread >= 0 and 2 <= total <= _MOST_CANDIDATES and total == int(total)):
        raise UserError("'standard' is out of range")
    return Standard(best, deviation, spread, int(total))


def _number(value: dict[str, Any], name: str) -> float:
    number: Any = value.get(name)
    if type(number) not in (int, float) or not abs(number) < _LARGEST:
        raise UserError(f"{name!r} is no number of a sane size")
    return float(number)


def _pair(value: dict[str, Any], name: str) -> tuple[float, float]:
    pair = value.get(name)
    if not isinstance(pair, list) or len(pair) != 2:
        raise UserError(f"{name!r} is no pair of numbers")
    first, second = (_number({name: each}, name) for each in pair)
    return first, second


def _text(value: dict[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or len(text) > _LONGEST or not text.isprintable():
        raise UserError(f"{name!r} is no line of text")
    return text
