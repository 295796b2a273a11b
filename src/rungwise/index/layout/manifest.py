"""The folder of an index: ``index.json``, what was left out, and a store each for pictures and captions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import MissingFileError, UserError, from_plain, is_regular, stamp
from rungwise.core.disk import digest_of, folders, names_below, replacing, staging
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data import CollectionSource
from rungwise.index.layout import location
from rungwise.index.stores import damaged, is_milvus, read_description, read_lines, write_description, write_lines
from rungwise.index.stores.exact import DESCRIPTION as STORE
from rungwise.index.stores.factory import OWN_FOLDER
from rungwise.index.stores.lance import COUNTS, Tables
from rungwise.index.stores.lance import FILES as LANCE_FILES
from rungwise.index.stores.milvus import catalog
from rungwise.index.update import FOLDER as THUMBNAILS
from rungwise.index.update import SUFFIX as THUMBNAIL
from rungwise.index.update import Skipped
from rungwise.parts import Origins, recorded_in

if TYPE_CHECKING:
    from rungwise.calibration import Calibration
    from rungwise.models import DualEncoder, IndexEncoder

__all__ = [
    "CALIBRATION",
    "CAPTIONS",
    "DESCRIPTION",
    "FORMAT",
    "GRADES",
    "ISSUES",
    "PICTURES",
    "VERSION",
    "Manifest",
    "Stamps",
    "discard",
    "is_index",
    "read_calibration",
    "read_issues",
    "read_manifest",
    "refuse_strangers",
    "replacing_folder",
    "stamps",
    "sweep",
    "write_calibration",
    "write_issues",
    "write_manifest",
]

DESCRIPTION = "index.json"
PICTURES = "pictures"
CAPTIONS = "captions"
ISSUES = "issues.jsonl"
CALIBRATION = "calibration.json"
"""File of the :class:`rungwise.calibration.Calibration` that judges the hits of this index."""
GRADES = "grades.jsonl"
"""File of people's grades of hits; :mod:`rungwise.index.layout._feedback` reads and writes it."""
FORMAT = "rungwise-index"
VERSION = 1

_REPLACED = (DESCRIPTION, f"{PICTURES}/{STORE}", f"{CAPTIONS}/{STORE}")
"""Files that are replaced whenever an index changes."""
_REPLACED_AT_TIMES = (CALIBRATION, GRADES, "queries.jsonl", f"{PICTURES}.lance/{COUNTS}", f"{CAPTIONS}.lance/{COUNTS}")

_OF_A_STORE = (STORE, "vectors-*.npy", "rows-*.jsonl")
_KNOWN = {DESCRIPTION, ISSUES, CALIBRATION, GRADES, f"{THUMBNAILS}/*/*{THUMBNAIL}"}
_KNOWN |= {"favourites.jsonl"}  # which rungwise.index.layout._favourites reads and writes
_KNOWN |= {"queries.jsonl"}  # which rungwise.index.layout._asked_queries reads and writes
_KNOWN |= {f"{OWN_FOLDER.format(store)}/*" for store in (PICTURES, CAPTIONS)}
_KNOWN |= {f"{store}/{name}" for store in (PICTURES, CAPTIONS) for name in _OF_A_STORE}
_KNOWN |= {f"{store}.lance/{name}" for store in (PICTURES, CAPTIONS) for name in LANCE_FILES}


@dataclass(frozen=True)
class Manifest:
    """Content of ``index.json``: what the index holds and which model made it.

    Attributes:
        name: Name of the collection.
        model_fingerprint: Fingerprint of the model; searches with another are refused, except with its stand-ins.
        model_location: Folder or hub id the model was loaded from, as it was given; empty when unknown.
        dimension: Dimension D of the vectors.
        skipped: Number of pictures that could not be read and stand in ``issues.jsonl``.
        identity: Differs from that of every other index, also of one that was in this folder before.
        picture_store: Identity of the store of pictures.
        caption_store: Identity of the store of captions.
        issues_sha256: SHA-256 of ``issues.jsonl``.
        model_stands_for: Fingerprint of the model from which this one was exported; empty for all others.
        store: Kind of store that keeps the rows.
        revision: Number that grows with every change that is acknowledged.
        rows_in_order: Number of pictures when the stores were last compacted.
        thumbnails: Whether small copies of the pictures are kept.
        issues_before: SHA-256 of the ``issues.jsonl`` that stood there before. A process that dies between the two
            files leaves that one.
        source: Where the collection was read from, and as what; None where no reader made it. Paths are relative to the
            folder of the index where both lie in the same one.
        mounts: Folders below those of the collection that were mounted when it was last read.
        modules: Modules that the parts of the index come from: model, store and reader. They are printed, and never
            imported.
        packages: Installed packages that offered such parts.
        listing: What stood in the folders of the collection (:func:`rungwise.data.listing_of`) when all of it was in
            the index; empty where something was not, where that is not known, and once rows were changed otherwise.
        format: Always :data:`FORMAT`.
        version: Version of the layout of the folder.
    """

    name: str
    model_fingerprint: str
    model_location: str
    dimension: int
    skipped: int = 0
    identity: str = ""
    picture_store: str = ""
    caption_store: str = ""
    issues_sha256: str = ""
    model_stands_for: str = ""
    store: str = "exact"
    revision: int = 0
    rows_in_order: int = 0
    thumbnails: bool = False
    issues_before: str = ""
    source: CollectionSource | None = None
    mounts: tuple[str, ...] = ()
    listing: str = ""
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    format: str = FORMAT
    version: int = VERSION

    __repr__ = short_repr

    @property
    def origins(self) -> Origins:
        """Where the parts of the index come from."""
        return recorded_in({"modules": self.modules, "packages": self.packages})

    @property
    def models(self) -> frozenset[str]:
        """Fingerprints of the models whose vectors these are, but for rounding."""
        return frozenset({self.model_fingerprint, self.model_stands_for} - {""})

    def is_of(self, model: IndexEncoder, fingerprint: str | None = None) -> bool:
        """Whether a model gives the vectors of this index: it built the index, or was exported from or to that one.

        ``fingerprint`` is the model's, where it was computed before; that takes long.
        """
        theirs = model.fingerprint if fingerprint is None else fingerprint
        return self.dimension == model.dimension and bool(self.models & {theirs, model.stands_for})

    def stand_in(self, model: DualEncoder) -> str:
        """One line about a model that is taken in place of the one that built the index; empty for that one.

        The fingerprint of a model that was not exported is not computed.
        """
        compare = "rungwise verify compares its vectors with those of the index"
        if not model.stands_for:
            return f"the index was built by an export of this model; {compare}" if self.model_stands_for else ""
        if self.model_fingerprint == model.fingerprint or model.stands_for not in self.models:
            return ""
        return f"an export stands in for the model that built the index; {compare}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``index.json``."""
    with location.at_hand(folder, [DESCRIPTION], writing=True) as at_hand:
        write_description(at_hand / DESCRIPTION, asdict(manifest), indent=2)


def read_manifest(folder: Path) -> Manifest:
    """Read ``index.json``; refuses where there is none, and one that was altered or is of another version."""
    with location.at_hand(folder, [DESCRIPTION]) as at_hand:
        path = at_hand / DESCRIPTION
        try:
            stored = read_description(path, FORMAT, VERSION)
        except MissingFileError:
            raise UserError(
                f"{at_hand}: no index here; make one with `rungwise index FOLDER` of a folder of pictures, and name it"
            ) from None
        try:
            return from_plain(Manifest, stored, str(path))
        except UserError as error:
            raise UserError(f"{error}; the file is damaged, build the index again") from None


def read_issues(folder: Path, manifest: Manifest) -> tuple[Skipped, ...]:
    """The pictures of the collection that are not in the index; refuses a missing or damaged file."""
    with location.at_hand(folder, [ISSUES]) as at_hand:
        return _read_issues(at_hand / ISSUES, manifest)


def _read_issues(path: Path, manifest: Manifest) -> tuple[Skipped, ...]:
    left = []
    digest = manifest.issues_sha256
    if manifest.issues_before and is_regular(path) and digest_of(path) == manifest.issues_before:
        digest = manifest.issues_before
    for number, record in enumerate(read_lines(path, digest), start=1):
        try:
            left.append(Skipped.of_plain(record))
        except TypeError as error:
            raise damaged(f"{path}, line {number}", str(error)) from error
    return tuple(left)


def write_issues(folder: Path, manifest: Manifest, left: Sequence[Skipped]) -> Manifest:
    """Write the pictures that are left out, and ``index.json`` with the digest of that file; gives the new manifest.

    >>> import tempfile
    >>> from rungwise.data import Issue
    >>> from rungwise.index._items import ItemSource
    >>> folder, left = Path(tempfile.mkdtemp()), [Skipped("a", Issue("cut off", "a.jpg"), ItemSource(7, 0, ""))]
    >>> manifest = write_issues(folder, Manifest("pets", "9a3f", "", dimension=8), left)
    >>> manifest.skipped, read_issues(folder, read_manifest(folder)) == tuple(left)
    (1, True)
    """
    with location.at_hand(folder, [ISSUES, DESCRIPTION], writing=True) as at_hand:
        return _write_issues(at_hand, manifest, left)


def _write_issues(folder: Path, manifest: Manifest, left: Sequence[Skipped]) -> Manifest:
    path = folder / ISSUES
    with replacing(path) as draft:
        after = write_lines(draft, (one.to_plain() for one in left))
        # Before the file itself takes its place: until then the digest of the one that stands there is known, too.
        manifest = replace(
            manifest,
            skipped=len(left),
            issues_sha256=after,
            issues_before=digest_of(path) if is_regular(path) else "",
            revision=manifest.revision + 1,
        )
        write_manifest(folder, manifest)
    return manifest


def read_calibration(folder: Path) -> Calibration | None:
    """The calibration that an index keeps, None where there is none; refuses a damaged one."""
    from rungwise.calibration import Calibration

    with location.at_hand(folder, [CALIBRATION]) as at_hand:
        path = at_hand / CALIBRATION
        return Calibration.load(path) if os.path.lexists(path) else None


def write_calibration(folder: Path, calibration: Calibration) -> None:
    """Keep a calibration in an index, in place of the one before."""
    with location.at_hand(folder, [CALIBRATION], writing=True) as at_hand:
        calibration.save(at_hand / CALIBRATION)


def sweep(folder: Path) -> None:
    """Remove what killed changes of an index, and killed builds, left unfinished."""
    if not address_of(folder):  # where there are no drafts
        staging.sweep(folder)
        for name in (*_REPLACED, *_REPLACED_AT_TIMES):
            staging.sweep(folder / name)


Stamps = tuple[tuple[int, ...] | None, ...]
"""Stamps of the files that are replaced whenever an index changes; None for a file that is not there."""


def stamps(folder: Path) -> Stamps:
    """Stamps by which this state of a folder differs from any other; no file of a folder is read."""
    if address := address_of(folder):
        return location.stamp(address, DESCRIPTION), None, None
    return tuple(stamp(folder / name) for name in _REPLACED)


def is_index(folder: Path) -> bool:
    """Whether an index stands in a folder, be it whole or not."""
    if address := address_of(folder):
        return location.stamp(address, DESCRIPTION) is not None
    return is_regular(folder / DESCRIPTION)


def refuse_strangers(folder: Path) -> None:
    """Refuse a folder that holds anything but an index; the message names the file."""
    if address_of(folder):
        return  # what else lies in a bucket is never touched
    staging.sweep(folder)  # what a killed run had moved aside comes back
    folders.refuse_strangers(folder, _KNOWN, "an index")


def discard(folder: Path) -> None:
    """Remove an index that did not come about; refuses a folder that holds anything else."""
    refuse_strangers(folder)
    if is_milvus(folder):
        catalog.drop(folder)
    elif address_of(folder):
        _drop_tables(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _drop_tables(folder: Path) -> None:
    for name in (PICTURES, CAPTIONS):
        Tables(folder, name).drop()


@contextmanager
def replacing_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a sibling folder to write to; it takes the place of ``folder`` only when the block ends well.

    In an object store the address is written to at once: ``index.json``, which is written last, makes it an index. In
    Milvus the new index gets collections of its own, and takes the name once it is whole.

    Raises:
        UserError: If an index stands there and ``overwrite`` is false, the folder holds anything else, or it cannot be
            written.
    """
    if is_milvus(folder):
        with _replacing_in_milvus(folder, overwrite=overwrite) as made:
            yield made
        return
    if address := address_of(folder):
        if is_index(folder):
            raise UserError(f"{address}: an index stands here already; name another address, or delete it there first")
        _drop_tables(folder)  # of a process that died before it wrote index.json, without which there is no index
        yield folder
        return
    refuse_strangers(folder)
    if not overwrite and folder.exists() and any(names_below(folder)):
        raise UserError(
            f"{folder}: an index stands here already; name another folder, or replace it with overwrite=True",
            parameters={"overwrite=True": "overwrite"},
        )
    # Without a seal: pictures come and go, and every part of a store has its own checksums.
    with folders.replacing_folder(folder, _KNOWN, "an index", header=DESCRIPTION, seal=False) as draft:
        yield draft


@contextmanager
def _replacing_in_milvus(place: Path, *, overwrite: bool) -> Iterator[Path]:
    if catalog.is_index(place) and not overwrite:
        raise UserError(
            f"{address_of(place)}: an index stands here already; name another one, or replace it with overwrite=True",
            parameters={"overwrite=True": "overwrite"},
        )
    draft = catalog.drafted(catalog.address_in(place))
    try:
        with catalog.being_written(draft):
            yield draft
    except BaseException:
        with suppress(UserError):  # the server may be away; the next who makes an index here removes what is left
            catalog.drop(draft)
        raise
    catalog.publish(draft)
    location.forget_stamps(address_of(place) or "")
