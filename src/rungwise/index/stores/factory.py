"""Choice of the class of store that keeps the rows of an index, by the kind that ``index.json`` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.index.stores._addresses import is_milvus
from rungwise.index.stores._base import STORES, Side, Store
from rungwise.index.stores.exact import ExactStore
from rungwise.index.stores.lance.store import LanceStore
from rungwise.index.stores.milvus import MilvusStore
from rungwise.similarity import Similarity

__all__ = ["AUTO", "OURS", "check_kind", "choose", "create_store", "open_store"]

OURS = ("exact", "lance", "milvus")
AUTO = "auto"
"""Kind that leaves the choice to :func:`choose`."""
OWN_FOLDER = "{}.own"
"""Folder, within that of an index, of a store of somebody's own."""
_ENGINES = {"lance": "LanceDB", "milvus": "Milvus"}


def choose(kind: str, place: Path | str, similarity: Similarity) -> str:
    """The kind of store for a new index: Milvus's under an address of it, else LanceDB's where it has the similarity.

    Raises:
        UserError: If the kind that a user asks for cannot do it: an object store takes LanceDB's only, which has not
            every similarity.

    >>> from rungwise.similarity import Cosine, Order
    >>> choose("auto", Path("pets"), Cosine()), choose("auto", Path("pets"), Order())
    ('lance', 'exact')
    """
    if kind != AUTO:
        check_kind(kind)
    if is_milvus(place) != (kind == "milvus"):
        if kind not in (AUTO, *OURS):
            _refuse_address(kind, place)
            return kind
        if kind != AUTO:
            other = "milvus" if is_milvus(place) else f"{kind}, at milvus://HOST:PORT/NAME"
            raise UserError(f"{address_of(place) or place}: not the place of a store {kind}; choose the store {other}")
        kind = "milvus"
    if kind == AUTO:
        kind = "exact" if similarity.metric is None and not address_of(place) else "lance"
    if kind == "exact" and address_of(place):
        raise UserError(f"{place}: an exact store is a folder; keep the index there, or choose the store lance")
    if kind != "exact" and similarity.metric is None:
        raise UserError(
            f"{_ENGINES[kind]} does not compare by the similarity {getattr(similarity, 'kind', similarity)!r}; choose"
            " the store exact, in a folder"
        )
    return kind


def create_store(
    kind: str,
    folder: Path | str,
    name: str,
    dimension: int,
    similarity: Similarity,
    side: Side,
    *,
    half: bool = False,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Store:
    """Make an empty store in the folder of an index.

    Args:
        kind: Kind of store: one of :data:`OURS`, or that of an imported
            :class:`~rungwise.index.stores.NamedStore`.
        folder: Folder of the index; an address such as ``s3://bucket/prefix`` for LanceDB, or
            ``milvus://HOST:PORT/NAME``.
        name: Name of the store: pictures or captions.
        dimension: D, the length of a vector.
        similarity: How queries and rows are compared.
        side: Side of the similarity that the rows are.
        half: Keep vectors in half precision.
        columns: Entries that the records will have, each with its type; Milvus gives them fields of their own.

    Raises:
        UserError: If one stands there already, the kind cannot do what is asked, or the place cannot be written.
    """
    if kind == "lance":
        return LanceStore.create(folder, name, dimension, similarity, side, half=half)
    if half:
        raise UserError(f"a store {kind} keeps vectors in full precision; choose the store lance for half of it")
    if kind == "milvus":
        return MilvusStore.create(folder, name, dimension, similarity, side, columns=columns)
    if kind == "exact":
        return ExactStore.create(Path(folder) / name, dimension, similarity, side)
    _refuse_address(kind, folder)
    return STORES.named(kind).create(Path(folder) / OWN_FOLDER.format(name), dimension, similarity, side)


def open_store(kind: str, folder: Path | str, name: str, *, all_vectors: bool = False) -> Store:
    """Open a store, of pictures or captions, in the folder of an index or at its address.

    ``all_vectors`` compares the checksums of large files of vectors too, where the store has any.

    Raises:
        UserError: If there is none, it is damaged or was altered, or the kind is unknown.
    """
    if kind == "lance":
        return LanceStore.open(folder, name)
    if kind == "milvus":
        return MilvusStore.open(folder, name)
    if kind == "exact":
        return ExactStore.open(Path(folder) / name, all_vectors=all_vectors)
    check_kind(kind)
    return STORES.named(kind).open(Path(folder) / OWN_FOLDER.format(name))


def check_kind(kind: str) -> None:
    """Refuse the name of a store that there is not.

    >>> check_kind("punched_cards")
    Traceback (most recent call last):
    rungwise.core.UserError: there is no store 'punched_cards'; there are auto, exact, lance, milvus
    """
    if kind not in (AUTO, *OURS) and not STORES.has(kind):
        raise STORES.unknown(kind, [AUTO, *OURS, *STORES.names()])


def _refuse_address(kind: str, place: Path | str) -> None:
    if address := address_of(place):
        raise UserError(f"{address}: a store {kind} lies in the folder of an index; name a folder")
