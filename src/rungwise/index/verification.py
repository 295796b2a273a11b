"""Looking an index through: files, checksums, counts, ids and numbers, and some vectors against a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.core.checks import Check, checked
from rungwise.core.errors import UserError
from rungwise.core.object_stores import address_of
from rungwise.data.picture_files import picture_bytes
from rungwise.index import storage, stores
from rungwise.index.files import damaged
from rungwise.index.grades import read_grades
from rungwise.index.index import Index
from rungwise.index.items import ids_of_texts

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder

FARTHEST = 0.02
"""How far a vector may lie from the one that is encoded anew, in lengths of that: devices round differently."""


def verify_index(
    folder: Path, model: Callable[[storage.Manifest], DualEncoder] | None = None, sample: int = 32
) -> Iterator[Check]:
    """Look at everything in an index; vectors of all sizes are compared with their checksums.

    Args:
        folder: Of the index.
        model: Loads the model that made it; None encodes nothing anew.
        sample: How many pictures, and how many captions, are encoded anew and compared.

    >>> [check.wrong for check in verify_index(Path("nowhere"))]
    ['nowhere: no index here; build one with Index.build or `rungwise index`']
    """
    description = checked(storage.DESCRIPTION, lambda: _description(folder))
    yield description
    if description.wrong:
        return
    manifest = storage.read_manifest(folder)
    yield checked("files", lambda: _files(folder))
    if manifest.version > 1:
        for name in (storage.PICTURES, storage.CAPTIONS):
            yield checked(name, lambda name=name: _store(folder, manifest.store, name))  # type: ignore[misc]
    if not address_of(folder) and os.path.lexists(folder / storage.CALIBRATION):
        yield checked(storage.CALIBRATION, lambda: _calibration(folder, manifest))
    if not address_of(folder) and os.path.lexists(folder / storage.GRADES):
        yield checked(storage.GRADES, lambda: _grades(folder))
    whole = checked("pictures with their captions", lambda: _whole(folder))
    yield whole
    if model is not None and not whole.wrong:
        yield from _against_the_model(Index.open(folder), model, sample)


def _description(folder: Path) -> str:
    manifest = storage.read_manifest(folder)
    checksum = "checksum" if manifest.identity else "made before there were checksums"
    return f"version {manifest.version}, of {manifest.name}, {checksum}"


def _files(folder: Path) -> str:
    if address_of(folder):
        return "not looked through under an address"
    storage.refuse_strangers(folder)
    return "none but the index's own"


def _calibration(folder: Path, manifest: storage.Manifest) -> str:
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
    if found.issues:
        first, more = found.issues[0], len(found.issues) - 1
        raise UserError(
            f"{first.where}: {first.kind} ({first.detail}){f', and {more} more' if more else ''}; the other"
            f" {len(found)} grades count; remove the line"
        )
    return f"{len(found)} of {len(found.by_query())} queries"


def _store(folder: Path, kind: stores.Kind, name: str) -> str:
    return stores.open_store(kind, folder, name, all_vectors=True).verified()


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
    except UserError as error:
        yield Check("model", wrong=f"no vectors could be encoded anew: {error}")
        return
    yield checked("sample of pictures", lambda: _pictures_anew(index, model, sample))
    yield checked("sample of captions", lambda: _captions_anew(index, model, sample))


def _pictures_anew(index: Index, model: DualEncoder, sample: int) -> str:
    everything = list(index.items())
    items = [everything[at] for at in _drawn(len(everything), sample)]
    paths = [item.path for item in items if item.path is not None]
    if len(paths) < len(items):
        return "nothing was encoded anew: the collection holds features in place of files"
    ids, pictures = [], []
    for item, path in zip(items, paths, strict=True):
        with suppress(UserError):
            pictures.append(picture_bytes(path))  # of files, a model may know features by heart
            ids.append(item.id)
    encoded = model.encode_image(pictures)
    ids = [ids[at] for at in encoded.kept.tolist()]
    stored = index.picture_store.get(ids)
    _compare(index, "picture", ids, [stored[one].vector for one in ids], encoded.vectors)
    unread = f"; {len(items) - len(ids)} of {len(items)} files could not be read now" if len(ids) < len(items) else ""
    return f"{len(ids)} encoded anew give the same vectors{unread}"


def _captions_anew(index: Index, model: DualEncoder, sample: int) -> str:
    everything = list(index.captions())
    texts = [everything[at] for at in _drawn(len(everything), sample)]
    if not texts:
        return "there are none"
    try:
        anew = model.encode_text(texts)
    except UserError as error:  # a model that reads rows of features, which an index does not hold
        return f"nothing was encoded anew: {error}"
    stored = index.caption_store.get(texts)
    _compare(index, "caption", texts, [stored[one].vector for one in texts], anew)
    return f"{len(texts)} encoded anew give the same vectors"


def _drawn(count: int, sample: int) -> list[int]:
    """Other positions every time, so that looking again looks at more."""
    drawn: list[int] = np.sort(np.random.default_rng().choice(count, min(sample, count), replace=False)).tolist()
    return drawn


def _compare(
    index: Index, what: str, names: Sequence[str], stored: Sequence[NDArray[np.float32]], anew: NDArray[np.float32]
) -> None:
    if not names:
        return
    lengths = np.linalg.norm(anew, axis=1)
    off = np.linalg.norm(np.stack(stored) - anew, axis=1) / np.where(lengths > 0, lengths, 1)
    wrong = np.flatnonzero(~(off <= FARTHEST))
    if wrong.size:
        raise UserError(
            f"{index.folder}: {wrong.size} of {len(names)} {what}s encoded anew give other vectors, first"
            f" {names[wrong[0]]!r} ({off[wrong[0]]:.3g} of its length away): the {what}s were changed since, or the"
            " vectors are not theirs; build the index again"
        )
