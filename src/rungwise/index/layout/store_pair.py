"""The two stores of an index: making and opening them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.data import READERS
from rungwise.index.layout import manifest as storage
from rungwise.index.stores import Store, damaged, factory
from rungwise.index.update import FACTS
from rungwise.parts import origins_of, recorded

_TYPES = {"numbers": "number", "texts": "text", "truth values": "truth"}
"""Types of a collection's columns, by the kinds that the collection names."""

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.models import DualEncoder

__all__ = ["create_stores", "open_stores", "refuse_thumbnails"]


def create_stores(
    folder: Path,
    name: str,
    model: DualEncoder,
    model_location: str,
    store: str,
    *,
    half: bool = False,
    thumbnails: bool = False,
    data: ImageCaptions | None = None,
) -> tuple[storage.Manifest, tuple[Store, Store]]:
    """Make the two empty stores of a new index, and its manifest.

    A store may give the columns of ``data`` fields of their own; ``store``, ``half`` and ``thumbnails`` are those of
    :meth:`rungwise.index.Index.build`.

    Raises:
        UserError: If stores stand there already, or the place cannot be written.
    """
    refuse_thumbnails(folder, thumbnails)
    kind = factory.choose(store, folder, model.similarity)
    dimension, similarity, columns = model.dimension, model.similarity, _columns(data)
    pictures = factory.create_store(
        kind, folder, storage.PICTURES, dimension, similarity, "image", half=half, columns=columns
    )
    captions = factory.create_store(kind, folder, storage.CAPTIONS, dimension, similarity, "text", half=half)
    both = pictures, captions
    origins = origins_of(type(pictures), type(model), getattr(model, "config", None))
    if data is not None and data.layout in READERS.known():
        origins |= origins_of(READERS.named(data.layout))
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
        modules=origins.modules,
        packages=origins.packages,
    )
    return manifest, both


def open_stores(folder: Path, manifest: storage.Manifest, *, all_vectors: bool = False) -> tuple[Store, Store]:
    """Open the stores of pictures and captions; ``all_vectors`` compares checksums of large files of vectors, too.

    Raises:
        UserError: If one is missing or damaged, or is that of another index.
    """
    with recorded(manifest.origins):
        pictures, captions = (
            factory.open_store(manifest.store, folder, name, all_vectors=all_vectors)
            for name in (storage.PICTURES, storage.CAPTIONS)
        )
    for one, name, identity in (
        (pictures, storage.PICTURES, manifest.picture_store),
        (captions, storage.CAPTIONS, manifest.caption_store),
    ):
        if one.identity != identity:
            raise damaged(folder / name, "it is the store of another index")
        if one.dimension != manifest.dimension:
            raise damaged(folder, f"dimension {one.dimension} where index.json says {manifest.dimension}")
    return pictures, captions


def _columns(data: ImageCaptions | None) -> dict[str, str]:
    """Types of the columns that records of pictures will hold, as far as they are known."""
    kinds = {} if data is None else data.column_kinds
    return {**FACTS, **{name: _TYPES[kind] for name, kind in kinds.items() if kind in _TYPES}}


def refuse_thumbnails(folder: Path, wanted: bool) -> None:
    """Refuse small copies of pictures under an address."""
    if wanted and (address := address_of(folder)):
        raise UserError(f"{address}: small copies of pictures are kept in folders only; leave them out")
