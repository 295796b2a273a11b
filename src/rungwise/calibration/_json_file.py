"""JSON file of a calibration; everything that is read is checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rungwise.calibration._kind_comparison import KindComparison
from rungwise.calibration.learning import Supervised
from rungwise.calibration.unrelated import Standard
from rungwise.core import UserError, parse_json, read_bytes
from rungwise.core.disk import replacing
from rungwise.core.disk.sealed_lines import sealed, unsealed

_FORMAT, _VERSION = "rungwise-calibration", 1
_LONGEST = 1000
"""Largest number of characters of a text in the file."""
_MOST_CANDIDATES = 1 << 53
_MOST_LEARNT, _MOST_KINDS = 2, 100
_LARGEST, _LEAST_DEVIATION = 1e30, 1e-12


def as_json(fields: Mapping[str, Any]) -> dict[str, object]:
    """Plain values of a calibration's fields, which JSON gives back to the bit."""
    learnt, standard = fields["learnt"], fields["standard"]
    return {
        "format": _FORMAT,
        "version": _VERSION,
        **{name: fields[name] for name in ("source", "model_fingerprint", "relevant_from")},
        "scale": list(fields["scale"]),
        "learnt": [one.to_json() for one in learnt],
        "standard": None if standard is None else asdict(standard),
        "needs_texts": fields["needs_texts"],
        "kinds": [kind.to_json() for kind in fields["kinds"]],
    }


def write(value: dict[str, object], path: Path) -> None:
    """Write a file with a checksum, or no file at all."""
    with replacing(path) as draft:
        whole = json.loads(sealed(value))
        draft.write_text(json.dumps(whole, allow_nan=False, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Read and check a file; returns the fields of a :class:`rungwise.calibration.Calibration` by name.

    Raises:
        MissingFileError: If the file does not exist.
        UserError: If the file is damaged, of an unknown version or no calibration.
    """
    text = read_bytes(path, "json_bytes")
    value = parse_json(text, path)
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise UserError(f"{path}: is no calibration; give a file that `rungwise calibrate` wrote")
    if value.get("version") != _VERSION:
        raise UserError(f"{path}: version {value.get('version')!r}, this rungwise reads {_VERSION}; update rungwise")
    try:
        unsealed(text)
        return _fields(value)
    except (UserError, ValueError) as error:
        raise UserError(f"{path}: damaged ({error}); run `rungwise calibrate` again") from error


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    relevant_from = _number(value, "relevant_from")
    scale = _pair(value, "scale")
    if not scale[0] < scale[1]:
        raise UserError("'scale' does not rise")
    learnt = _listed(value, "learnt")
    if len(learnt) > _MOST_LEARNT or not all(isinstance(one, dict) for one in learnt):
        raise UserError("'learnt' is no list of at most two objects")
    return {
        "relevant_from": relevant_from,
        "scale": scale,
        "source": _text(value, "source"),
        "model_fingerprint": _text(value, "model_fingerprint"),
        "learnt": tuple(map(Supervised.from_json, learnt)),
        "standard": None if value.get("standard") is None else _standard(value["standard"]),
        "needs_texts": _truth(value, "needs_texts"),
        "kinds": tuple(map(KindComparison.from_json, _listed(value, "kinds"))),
    }


def _standard(value: object) -> Standard:
    if not isinstance(value, dict):
        raise UserError("'standard' is no object")
    best, deviation, spread, total = (_number(value, name) for name in ("best", "deviation", "spread", "total"))
    if not (deviation >= _LEAST_DEVIATION and spread >= 0 and 2 <= total <= _MOST_CANDIDATES and total == int(total)):
        raise UserError("'standard' is out of range")
    return Standard(best, deviation, spread, int(total))


def _listed(value: dict[str, Any], name: str) -> list[Any]:
    listed = value.get(name)
    if not isinstance(listed, list) or len(listed) > _MOST_KINDS:
        raise UserError(f"{name!r} is no list, or a long one")
    return listed


def _truth(value: dict[str, Any], name: str) -> bool:
    if not isinstance(truth := value.get(name), bool):
        raise UserError(f"{name!r} is neither true nor false")
    return truth


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
