"""What a new calibration of a model does not reach: exports made before, and indexes with one of their own.

An export takes the calibration of its model along when it is made, and says of which model it was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from rungwise.calibration import Calibration
from rungwise.core import UserError, is_regular, parse_json, read_bytes
from rungwise.index.layout import manifest
from rungwise.jobs._terminal import pasted, program, say, shortest
from rungwise.jobs.calibration._options import Calibrate
from rungwise.models.io import CALIBRATION, CONFIG, IMAGE_GRAPH

_MOST_FOLDERS = 1000
"""Largest number of entries of one folder that are looked at."""


def say_out_of_reach(asked: Calibrate, calibration: Calibration) -> None:
    """Print one line with its remedy for each export and index nearby that does not get a model's new calibration.

    Nearby is what stands beside the model, beside its run, or in the folder of the command, and the model of an index
    there. Prints nothing where the calibration was not written into the folder of a model.
    """
    if asked.out is not None or asked.index is not None:
        return
    for line in _lines(Path(str(asked.model)), calibration.model_fingerprint):
        say(line)


def _lines(folder: Path, fingerprint: str) -> Iterator[str]:
    own = _bytes(folder / CALIBRATION)
    near = list(dict.fromkeys(_folders_near(folder)))
    indexes = [(one, found) for one in near if (found := _index_of(one, fingerprint)) is not None]
    built_by = [Path(found.model_location).resolve() for _, found in indexes if found.model_location]
    for one in dict.fromkeys([*near, *built_by]):
        if _is_export_of(one, fingerprint) and (theirs := _bytes(one / CALIBRATION)) != own:
            yield (
                f"{shortest(one)}: this export was made before and keeps {'an older' if theirs else 'no'} calibration;"
                f" export again: {program()} export {pasted(folder)} --out {pasted(shortest(one))} --overwrite"
            )
    for one, _ in indexes:
        if is_regular(one / manifest.CALIBRATION):
            yield (
                f"{shortest(one)}: this index keeps a calibration of its own, which goes before the model's; renew it:"
                f" {program()} calibrate {pasted(shortest(one))}"
            )


def _folders_near(folder: Path) -> Iterator[Path]:
    model = folder.resolve()
    for place in dict.fromkeys((model.parent, model.parent.parent, Path.cwd())):
        try:
            yield from (one for one in islice(place.iterdir(), _MOST_FOLDERS) if one.is_dir())
        except OSError:
            continue  # a folder that may not be read holds nothing that this person could export again


def _index_of(folder: Path, fingerprint: str) -> manifest.Manifest | None:
    """The description of an index that was built by a model or its export; None for any other folder."""
    try:
        found = manifest.read_manifest(folder) if manifest.is_index(folder) else None
    except UserError:
        return None
    return found if found is not None and fingerprint in found.models else None


def _is_export_of(folder: Path, fingerprint: str) -> bool:
    if not is_regular(folder / IMAGE_GRAPH):
        return False
    try:
        facts = parse_json(read_bytes(folder / CONFIG, "json_bytes"), str(folder / CONFIG))
        return bool(facts["model"]["origin"]["fingerprint"] == fingerprint)
    except (UserError, KeyError, TypeError):
        return False  # what is no whole export is nobody's


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, "json_bytes")
    except UserError:
        return b""
