"""Verification of an index: files, checksums, counts, ids and numbers, and some vectors against a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from rungwise.core import Check, MissingExtraError, UncheckedError, UserError, checked
from rungwise.core.network import address_of
from rungwise.data import Issue
from rungwise.data.pictures import picture_bytes
from rungwise.index._index import Index
from rungwise.index._items import ids_of_texts, source_of
from rungwise.index.layout import FAVOURITES, QUERIES, location, read_favourites, read_grades, read_queries
from rungwise.index.layout import manifest as storage
from rungwise.index.stores import damaged, factory
from rungwise.index.update import FOLDER as THUMBNAILS
from rungwise.index.update import Thumbnails
from rungwise.parts import recorded

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

FARTHEST = 0.02
"""Largest distance of a vector from the one encoded anew, in lengths of that: devices round differently."""


def verify_index(
    folder: Path, model: Callable[[storage.Manifest], DualEncoder] | None = None, sample: int = 32
) -> Iterator[Check]:
    """Check everything in an index; vectors of all sizes are compared with their checksums.

    Args:
        folder: Folder of the index.
        model: Loads the model that made it; None encodes nothing anew.
        sample: Number of pictures, and of captions, that are encoded anew and compared.

    Raises:
        MissingExtraError: If a library of the store or of the model is missing.
    """
    description = checked(storage.DESCRIPTION, lambda: _description(folder))
    yield description
    if description.wrong:
        return
    manifest = storage.read_manifest(folder)
    if not address_of(folder):  # what else lies in a bucket is never touched
        yield checked("names of files", lambda: _files(folder))
    for name in (storage.PICTURES, storage.CAPTIONS):
        yield from _store(folder, manifest, name)
    yield checked(storage.ISSUES, lambda: _issues(folder, manifest))
    if manifest.thumbnails:
        yield checked(THUMBNAILS, lambda: _thumbnails(folder))
    if _is_there(folder, storage.CALIBRATION):
        yield checked(storage.CALIBRATION, lambda: calibration_of(folder, manifest))
    if _is_there(folder, storage.GRADES):
        yield checked(storage.GRADES, lambda: _grades(folder))
    if not address_of(folder) and _is_there(folder, FAVOURITES):
        yield checked(FAVOURITES, lambda: _favourites(folder))
    if not address_of(folder) and _is_there(folder, QUERIES):
        yield checked(QUERIES, lambda: _queries(folder))
    whole = checked("pictures with their captions", lambda: _whole(folder))
    yield whole
    if model is not None:
        if whole.wrong or whole.unchecked:
            yield Check("model", unchecked="no vectors were encoded anew, since the index cannot be opened")
        else:
            yield from _against_the_model(Index.open(folder), model, sample)


def _description(folder: Path) -> str:
    manifest = storage.read_manifest(folder)
    return f"version {manifest.version}, of {manifest.name}, checksum"


def _is_there(folder: Path, name: str) -> bool:
    address = address_of(folder)
    return location.stamp(address, name) is not None if address else os.path.lexists(folder / name)


def _files(folder: Path) -> str:
    storage.refuse_strangers(folder)
    return "none but the index's own"


def calibration_of(folder: Path, manifest: storage.Manifest) -> str:
    """Source of the calibration in the folder of an index or a backup; refuses one that is damaged or not its own."""
    found = storage.read_calibration(folder)
    if found is None:  # removed meanwhile
        return "none"
    if found.model_fingerprint and found.model_fingerprint not in manifest.models:
        raise UserError(
            f"{folder / storage.CALIBRATION}: fitted for model {found.model_fingerprint[:12]}, and the index is of"
            f" model {manifest.model_fingerprint[:12]}; fit it again with `rungwise calibrate`"
        )
    return found.source


def _grades(folder: Path) -> str:
    found = read_grades(folder)
    _refuse_damaged(found.issues, f"{len(found)} grades")
    return f"{len(found)} of {len(found.by_query())} queries"


def _favourites(folder: Path) -> str:
    found = read_favourites(folder)
    said = f"{len(found.pictures)} favourites, {len(found.searches)} saved searches"
    _refuse_damaged(found.issues, said)
    return said


def _queries(folder: Path) -> str:
    found = read_queries(folder)
    said = f"{len(found.kept)} queries"
    _refuse_damaged(found.issues, said)
    return said


def _refuse_damaged(issues: Sequence[Issue], others: str) -> None:
    if issues:
        first, more = issues[0], len(issues) - 1
        raise UserError(
            f"{first.where}: {first.kind} ({first.detail}){f', and {more} more' if more else ''}; the other"
            f" {others} count; remove the line"
        )


def _store(folder: Path, manifest: storage.Manifest, name: str) -> Iterator[Check]:
    """Check the files first: what an engine says of a damaged one does not name it."""
    try:
        with recorded(manifest.origins):
            store = factory.open_store(manifest.store, folder, name, all_vectors=True)
    except MissingExtraError:
        raise
    except UncheckedError as error:
        yield Check(name, unchecked=str(error))
        return
    except UserError as error:
        yield Check(name, wrong=str(error))
        return
    files = checked(f"files of {name}", store.verified_files)
    yield files
    if not files.wrong:
        yield checked(name, store.verified)


def _issues(folder: Path, manifest: storage.Manifest) -> str:
    left = storage.read_issues(folder, manifest)
    if len(left) != manifest.skipped:
        raise damaged(folder / storage.ISSUES, f"{len(left)} lines where {manifest.skipped} are expected")
    return f"{len(left)} pictures that are left out"


def _thumbnails(folder: Path) -> str:
    """Check every copy against its checksum; a missing one is made from its picture when it is asked for."""
    index, kept = Index.open(folder), Thumbnails(folder)
    sources = (source_of(record) for _, record in index.picture_store.records())
    contents = [source.content for source in sources if source is not None]
    there = [one for one in contents if kept.has(one)]
    if broken := [one for one in there if kept.read(one) is None]:
        raise UserError(
            f"{folder / THUMBNAILS}: {len(broken)} of {len(there)} copies are damaged, first"
            f" {broken[0]}; remove them, and `rungwise index --rehash` makes them again"
        )
    return f"{len(there)} copies of {len(contents)} pictures, each as it was written"


def _whole(folder: Path) -> str:
    index = Index.open(folder)
    borne, kept = ids_of_texts(index.items()), set(index.captions())
    if without := next((text for text in borne if text not in kept), None):
        raise damaged(folder / storage.CAPTIONS, f"no vector of the caption {without!r}"[:200])
    left = len(kept - borne.keys())
    without = f", {left} captions of no picture, which are never found" if left else ""
    return f"{len(index)} pictures, {len(borne)} captions, each with its vector{without}"


def _against_the_model(index: Index, load: Callable[[storage.Manifest], DualEncoder], sample: int) -> Iterator[Check]:
    try:
        model = load(index.manifest)
        index.check(model)
    except UncheckedError as error:
        yield Check("model", unchecked=f"no vectors could be encoded anew: {error}")
        return
    except MissingExtraError:
        raise
    except UserError as error:
        yield Check("model", wrong=f"no vectors could be encoded anew: {error}")
        return
    yield from _pictures_anew(index, model, sample)
    yield from _captions_anew(index, model, sample)


def _pictures_anew(index: Index, model: DualEncoder, sample: int) -> Iterator[Check]:
    """Compare a sample with the model; pictures that could not be read are a check of their own."""
    what, everything = "sample of pictures", list(index.items())
    items = [everything[at] for at in _drawn(len(everything), sample)]
    if not items:
        yield Check(what, "there are none")
        return
    if not model.reads_pictures or any(item.path is None for item in items):
        yield Check(what, unchecked="vectors are of rows of features, which the index does not hold")
        return
    ids, pictures, unread = [], [], ""
    for item in items:
        try:
            pictures.append(picture_bytes(cast(Path, item.path)))  # of files, a model may know features by heart
            ids.append(item.id)
        except UserError as error:
            unread = unread or str(error)
    if ids:
        try:
            encoded = model.encode_image(pictures)
        except UserError as error:
            yield Check(what, wrong=f"no picture can be encoded: {error}")
            return
        ids = [ids[at] for at in encoded.kept.tolist()]
        unread = unread or (str(encoded.issues[0]) if encoded.issues else "")
    if ids:
        stored = index.picture_store.get(ids)
        vectors = [stored[one].vector for one in ids]
        yield checked(what, lambda: _compared(index, "picture", ids, vectors, encoded.vectors))
    if len(ids) < len(items):
        yield Check(what, unchecked=f"{len(items) - len(ids)} of {len(items)} files could not be read ({unread})")


def _captions_anew(index: Index, model: DualEncoder, sample: int) -> Iterator[Check]:
    what, everything = "sample of captions", list(index.captions())
    texts = [everything[at] for at in _drawn(len(everything), sample)]
    if not texts:
        yield Check(what, "there are none")
    elif not model.reads_words:
        yield Check(what, unchecked="the model reads rows of features in place of words")
    else:
        stored = index.caption_store.get(texts)
        vectors = [stored[one].vector for one in texts]
        yield checked(what, lambda: _compared(index, "caption", texts, vectors, model.encode_text(texts)))


def _drawn(count: int, sample: int) -> list[int]:
    """Other positions every time, so that repeated checks see more."""
    drawn: list[int] = np.sort(np.random.default_rng().choice(count, min(sample, count), replace=False)).tolist()
    return drawn


def _compared(
    index: Index, what: str, names: Sequence[str], stored: Sequence[NDArray[np.float32]], anew: NDArray[np.float32]
) -> str:
    lengths = np.linalg.norm(anew, axis=1)
    off = np.linalg.norm(np.stack(stored) - anew, axis=1) / np.where(lengths > 0, lengths, 1)
    wrong = np.flatnonzero(~(off <= FARTHEST))
    if wrong.size:
        raise UserError(
            f"{index.folder}: {wrong.size} of {len(names)} {what}s encoded anew give other vectors, first"
            f" {names[wrong[0]]!r} ({off[wrong[0]]:.3g} of its length away): the {what}s were changed since, or the"
            " vectors are not theirs; build the index again"
        )
    return f"{len(names)} encoded anew give the same vectors"
