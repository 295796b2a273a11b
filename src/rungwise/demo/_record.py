"""Record of the demo's measurements, so that the next start need not measure again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rungwise.core import UserError, from_plain, read_json
from rungwise.core.disk import replacing
from rungwise.demo._examples import ExampleQuery
from rungwise.demo._measurement import Compared

_FORMAT, _VERSION = "rungwise demo", 1


@dataclass(frozen=True)
class Results:
    """Measurements of one demo.

    Attributes:
        fingerprints: Fingerprints of the two models, by name.
        compared: The comparisons: searches for held-out combinations first, then the captions of the test pictures.
        examples: Example queries.
        seconds: Seconds that each part took.
        trained: Number of pictures that both models learnt from.
    """

    fingerprints: Mapping[str, str]
    compared: tuple[Compared, ...]
    examples: tuple[ExampleQuery, ...]
    seconds: Mapping[str, float]
    trained: int

    def save(self, path: Path) -> None:
        """Write the file, or no file at all."""
        with replacing(path) as draft:
            values = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
            draft.write_text(json.dumps(values, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read and check a file of :meth:`save`; UserError if it is missing, damaged or of no demo."""
        values = read_json(path)
        if not isinstance(values, dict) or (values.pop("format", ""), values.pop("version", 0)) != (_FORMAT, _VERSION):
            raise UserError(f"{path}: no results of this demo; make it anew with --again")
        return from_plain(cls, values, str(path))
