"""The files of an index folder: written as a whole or not at all, checked when they are opened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import folders
from rungwise.core.errors import UserError
from rungwise.core.folders import refuse_strangers
from rungwise.core.npy import mapped

MANIFEST = "index.json"
VECTORS = "vectors.npy"
CAPTION_VECTORS = "caption_vectors.npy"
ITEMS = "items.jsonl"
ISSUES = "issues.jsonl"
_KNOWN = {MANIFEST, VECTORS, CAPTION_VECTORS, ITEMS, ISSUES}

FORMAT = "rungwise-index"
VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """What ``index.json`` says: what the index holds and which model made it.

    Attributes:
        name: Of the collection.
        model_fingerprint: Of the model; a search with another is refused.
        model_location: Folder or hub id the model was loaded from, as it was given; empty when unknown.
        similarity: Name of the model's similarity between a picture and a text.
        dimension: D.
        pictures: How many are in the index.
        captions: How many texts, each counted once, have vectors.
        skipped: How many pictures could not be read and stand in ``issues.jsonl``.
        format: Always :data:`FORMAT`.
        version: Of the layout of the folder.

    >>> Manifest("pets", "9a3f", "runs/best", "cosine", 8, pictures=2, captions=0, skipped=0).format
    'rungwise-index'
    """

    name: str
    model_fingerprint: str
    model_location: str
    similarity: str
    dimension: int
    pictures: int
    captions: int
    skipped: int
    format: str = FORMAT
    version: int = VERSION


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``index.json``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> manifest = Manifest("pets", "9a3f", "", "cosine", dimension=8, pictures=2, captions=0, skipped=0)
    >>> write_manifest(folder, manifest)
    >>> read_manifest(folder) == manifest
    True
    """
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read ``index.json``.

    Raises:
        UserError: If there is no index in the folder, or one that this version cannot read.

    >>> read_manifest(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no index here; make one with `rungwise index PICTURES ... --out nowhere`
    """
    path = folder / MANIFEST
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        remedy = f"make one with `rungwise index PICTURES ... --out {folder}`"
        raise UserError(f"{folder}: no index here; {remedy}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    except ValueError as error:
        raise _damaged(path, f"not JSON ({error})") from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise UserError(f"{path}: not the description of a rungwise index; name a folder that `rungwise index` made")
    if stored.get("version") != VERSION:
        raise UserError(
            f"{path}: an index of version {stored.get('version')}, but this rungwise reads version {VERSION};"
            " use the rungwise that made it, or build the index again"
        )
    for field in fields(Manifest):
        expected = int if field.type == "int" else str
        if type(stored.get(field.name)) is not expected:
            raise _damaged(path, f"{field.name!r} is {stored.get(field.name)!r}")
    return Manifest(**{field.name: stored[field.name] for field in fields(Manifest)})


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    r"""Write one JSON object a line, all in ASCII, so that file names in no known encoding survive.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> write_lines(file, [{"id": "Käse"}, {"id": "\udcff"}])
    >>> [record["id"] for record in read_lines(file)]
    ['Käse', '\udcff']
    """
    with path.open("w", encoding="ascii", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read what :func:`write_lines` wrote.

    Raises:
        UserError: If the file is missing or a line is damaged; the message gives the line.

    >>> list(read_lines(Path("nowhere.jsonl")))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere.jsonl: damaged (the file is missing); build the index again
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line)
                except ValueError as error:
                    raise _damaged(f"{path}, line {number}", "not JSON") from error
                if not isinstance(record, dict):
                    raise _damaged(f"{path}, line {number}", "not a JSON object")
                yield record
    except FileNotFoundError as error:
        raise _damaged(path, "the file is missing") from error


def open_vectors(path: Path, rows: int, dimension: int) -> NDArray[np.float32]:
    """Memory-map (rows, dimension) float32.

    Raises:
        UserError: If the file is missing, truncated or of another shape.

    >>> open_vectors(Path("nowhere.npy"), rows=1, dimension=2)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere.npy: damaged (...); build the index again
    """
    try:
        vectors: NDArray[np.float32] = mapped(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from error
    if vectors.shape != (rows, dimension) or vectors.dtype != np.float32:
        found = f"{vectors.dtype} of shape {vectors.shape}"
        raise _damaged(path, f"{found} where index.json says float32 of shape {(rows, dimension)}")
    return vectors


@contextmanager
def replacing_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a sibling folder to write to; it takes the place of ``folder`` only when the block ends well.

    Raises:
        UserError: If an index stands there and ``overwrite`` is false; else see
            :func:`rungwise.core.folders.replacing_folder`.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "index"
    >>> with replacing_folder(target, overwrite=False) as draft:
    ...     _ = (draft / "index.json").write_text("{}")
    >>> [file.name for file in target.iterdir()]
    ['index.json']
    """
    refuse_strangers(folder, _KNOWN, "an index")
    if not overwrite and folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: an index stands here already; name another folder, or replace it with --overwrite")
    with folders.replacing_folder(folder, _KNOWN, "an index") as draft:
        yield draft


def _damaged(where: Path | str, what: str) -> UserError:
    return UserError(f"{where}: damaged ({what}); build the index again")
