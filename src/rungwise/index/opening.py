"""The two stores of an index: making them, and opening those of any version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rungwise.core.errors import UserError
from rungwise.core.object_stores import address_of
from rungwise.index import storage, stores, version1
from rungwise.index.files import damaged
from rungwise.index.store import Store

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder


def created(
    folder: Path,
    name: str,
    model: DualEncoder,
    model_location: str,
    store: stores.Wished,
    *,
    half: bool = False,
    thumbnails: bool = False,
) -> tuple[storage.Manifest, tuple[Store, Store]]:
    """The two empty stores of a new index, and what ``index.json`` is to say.

    Args:
        folder: Where the stores are made.
        name: Of the collection.
        model: Encodes its pictures and captions.
        model_location: Where the model came from.
        store: Which kind of store keeps the rows.
        half: Whether vectors are kept in half precision.
        thumbnails: Whether small copies of the pictures will be kept.

    Raises:
        UserError: If stores stand there already, or the place cannot be written.
    """
    refuse_thumbnails(folder, thumbnails)
    kind = stores.choose(store, folder, model.similarity)
    both = (
        stores.create_store(kind, folder, storage.PICTURES, model.dimension, model.similarity, "image", half=half),
        stores.create_store(kind, folder, storage.CAPTIONS, model.dimension, model.similarity, "text", half=half),
    )
    manifest = storage.Manifest(
        name,
        model.fingerprint,
        model_location,
        model.dimension,
        identity=uuid4().hex,
        picture_store=both[0].identity,
        caption_store=both[1].identity,
        model_stands_for=model.stands_for,
        store=kind,
        thumbnails=thumbnails,
    )
    return manifest, both


def opened(folder: Path, manifest: storage.Manifest, *, all_vectors: bool = False) -> tuple[Store, Store]:
    """The stores of pictures and of captions.

    Args:
        folder: Of the index.
        manifest: What its ``index.json`` says.
        all_vectors: Compare the checksums of large files of vectors, too.

    Raises:
        UserError: If one is missing or damaged, or is that of another index.
    """
    both: tuple[Store, Store]
    if manifest.version == 1:
        both = version1.open_stores(folder)
    else:
        pictures, captions = (
            stores.open_store(manifest.store, folder, name, all_vectors=all_vectors)
            for name in (storage.PICTURES, storage.CAPTIONS)
        )
        for one, name, identity in (
            (pictures, storage.PICTURES, manifest.picture_store),
            (captions, storage.CAPTIONS, manifest.caption_store),
        ):
            if identity and one.identity != identity:
                raise damaged(folder / name, "it is the store of another index")
        both = pictures, captions
    for store in both:
        if store.dimension != manifest.dimension:
            raise damaged(folder, f"dimension {store.dimension} where index.json says {manifest.dimension}")
    return both


def refuse_thumbnails(folder: Path, wanted: bool) -> None:
    """Refuse small copies of pictures under an address.

    Raises:
        UserError: If they are wanted there.
    """
    if wanted and (address := address_of(folder)):
        raise UserError(f"{address}: small copies of pictures are kept in folders only; leave them out")
