"""The folder of an index: ``index.json``, what was left out, and a store each for pictures and captions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rungwise.core import folders
from rungwise.core.configuration import from_plain
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.core.folders import refuse_strangers
from rungwise.index.files import read_description

DESCRIPTION = "index.json"
PICTURES = "pictures"
CAPTIONS = "captions"
ISSUES = "issues.jsonl"
FORMAT = "rungwise-index"
VERSION = 2

VECTORS_1 = "vectors.npy"
CAPTION_VECTORS_1 = "caption_vectors.npy"
ITEMS_1 = "items.jsonl"
"""What folders of version 1 hold in place of the two stores."""

_OF_A_STORE = ("store.json", "vectors-*.npy", "rows-*.jsonl")
_KNOWN = {DESCRIPTION, ISSUES, VECTORS_1, CAPTION_VECTORS_1, ITEMS_1}
_KNOWN |= {f"{store}/{name}" for store in (PICTURES, CAPTIONS) for name in _OF_A_STORE}


@dataclass(frozen=True)
class Manifest:
    """What ``index.json`` says: what the index holds and which model made it.

    Attributes:
        name: Of the collection.
        model_fingerprint: Of the model; a search with another is refused.
        model_location: Folder or hub id the model was loaded from, as it was given; empty when unknown.
        dimension: D.
        skipped: How many pictures of the build could not be read and stand in ``issues.jsonl``.
        format: Always :data:`FORMAT`.
        version: Of the layout of the folder.

    >>> Manifest("pets", "9a3f", "runs/best", dimension=8).format
    'rungwise-index'
    """

    name: str
    model_fingerprint: str
    model_location: str
    dimension: int
    skipped: int = 0
    format: str = FORMAT
    version: int = VERSION


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``index.json``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> manifest = Manifest("pets", "9a3f", "", dimension=8)
    >>> write_manifest(folder, manifest)
    >>> read_manifest(folder) == manifest
    True
    """
    with replacing(folder / DESCRIPTION) as draft:
        draft.write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read ``index.json``, also of version 1.

    Raises:
        UserError: If there is no index in the folder, or one that this version cannot read.

    >>> read_manifest(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no index here; build one with Index.build or `rungwise index`
    """
    path = folder / DESCRIPTION
    try:
        stored = read_description(path, FORMAT, (1, VERSION))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder}: no index here; build one with Index.build or `rungwise index`") from None
    try:
        return from_plain(Manifest, stored, str(path))
    except UserError as error:
        raise UserError(f"{error}; the file is damaged, build the index again") from None


def is_index(folder: Path) -> bool:
    """Whether an index stands in a folder, be it whole or not.

    >>> is_index(Path("nowhere"))
    False
    """
    return (folder / DESCRIPTION).is_file()


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
        raise UserError(
            f"{folder}: an index stands here already; name another folder, or replace it with overwrite=True"
        )
    # Without a seal: pictures come and go, and every part of a store has its own checksums.
    with folders.replacing_folder(folder, _KNOWN, "an index", seal=False) as draft:
        yield draft
