"""An index: the pictures and captions of a collection in two stores, and the model that encoded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.core.locks import writing_alone
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.index import storage, version1
from rungwise.index.exact import ExactStore
from rungwise.index.files import damaged, read_lines, write_lines
from rungwise.index.hits import Hit, Hits
from rungwise.index.items import Item, from_record, items_at, positions_of_texts, to_record
from rungwise.index.store import Batch, Found, Store, checked_queries
from rungwise.index.where import Where
from rungwise.similarity import Similarity

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder

_PICTURES_AT_ONCE = 4096
_TEXTS_AT_ONCE = 4096

Progress = Callable[[int], None]


@dataclass(frozen=True)
class _Contents:
    """The pictures of an index at one moment, by position, and the store of their captions."""

    items: tuple[Item, ...]
    caption_store: Store

    @cached_property
    def position_of_id(self) -> dict[str, int]:
        return {item.id: position for position, item in enumerate(self.items)}

    @cached_property
    def positions_of_texts(self) -> dict[str, tuple[int, ...]]:
        return positions_of_texts(self.items)

    @cached_property
    def captions_without_picture(self) -> tuple[str, ...]:
        return tuple(text for text, _ in self.caption_store.records() if text not in self.positions_of_texts)


class Index:
    """Pictures that can be found by text, by picture, or by one of their own.

    Pictures are ranked for a text by the model's similarity and for a picture by the cosine of their vectors. Equal
    scores stand in the order of the index. Make one in a folder with :meth:`build`, open it with :meth:`open`, and
    search it with texts and pictures through a :class:`~rungwise.index.Searcher`. The constructor puts one on stores of
    any kind.

    Args:
        manifest: What it holds and which model made it.
        picture_store: A row for each picture. Every query must be answered with equally many rows.
        caption_store: A row for each distinct caption, under the caption itself; its side is ``"text"``.
        folder: Where the index is; None if only its stores know.

    Attributes:
        manifest: As given.
        picture_store: As given.
        caption_store: As given.
        folder: As given.

    >>> import tempfile
    >>> from rungwise.similarity import Cosine
    >>> place = Path(tempfile.mkdtemp())
    >>> pictures = ExactStore.create(place / "pictures", 2, Cosine())
    >>> pictures.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [4, 3]], [{"path": None, "captions": []}] * 3)
    >>> captions = ExactStore.create(place / "captions", 2, Cosine(), side="text")
    >>> index = Index(storage.Manifest("pets", "9a3f", "", dimension=2), pictures, captions)
    >>> index.similar("dog", k=1)
    [Hit(position=2, id='wolf', score=0.800000...)]
    >>> index.search([[0, 2]], k=2).ids
    (('cat', 'wolf'),)
    >>> Index.open(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no index here; build one with Index.build or `rungwise index`
    """

    def __init__(
        self, manifest: storage.Manifest, picture_store: Store, caption_store: Store, folder: Path | None = None
    ) -> None:
        self.manifest = manifest
        self.picture_store = picture_store
        self.caption_store = caption_store
        self.folder = folder
        self._contents = self._read()

    @classmethod
    def build(
        cls,
        data: ImageCaptions,
        model: DualEncoder,
        folder: Path,
        *,
        model_location: str = "",
        progress: Progress | None = None,
        overwrite: bool = False,
    ) -> Index:
        """Encode and store a collection's pictures and captions; all of it appears in ``folder`` at once.

        Pictures that cannot be read are left out, counted, and listed in :attr:`issues`. Paths of pictures that lie
        in the same folder as the index, or below it, are stored relative to it: both can be moved together.

        Args:
            data: Pictures as files or rows of features, and captions if there are any.
            model: Encodes them; only this model can search the index later.
            folder: Made, together with its parents.
            model_location: Where the model came from, for those who open the index.
            progress: Called with how many more pictures are done.
            overwrite: Replace an index that stands there already.

        Raises:
            UserError: If no picture can be read, the folder is taken, or the disk is full.
        """
        folder = Path(folder)
        with (
            writing_alone(folder) if storage.is_index(folder) else nullcontext(),
            storage.replacing_folder(folder, overwrite=overwrite) as draft,
        ):
            _require_pictures(data)
            stores = (
                ExactStore.create(draft / storage.PICTURES, model.dimension, model.similarity),
                ExactStore.create(draft / storage.CAPTIONS, model.dimension, model.similarity, side="text"),
            )
            manifest = storage.Manifest(data.name, model.fingerprint, model_location, model.dimension)
            index = cls(manifest, *stores, folder)
            issues = index._encode(data, model, progress)
            if not len(index):
                first = f"; the first: {one_line(issues[0])}" if issues else ""
                raise UserError(f"{data.name}: none of {len(data)} pictures could be read{first}")
            write_lines(draft / storage.ISSUES, (asdict(issue) for issue in issues))
            storage.write_manifest(draft, replace(manifest, skipped=len(data) - len(index)))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Index:
        """Open a stored index; vectors stay on disk until they are needed.

        Raises:
            UserError: If there is none, it is damaged, or another version of rungwise made it.
        """
        folder = Path(folder)
        while True:
            manifest = storage.read_manifest(folder)
            try:
                return cls(manifest, *_open_stores(folder, manifest), folder)
            except UserError:
                # Another process may have replaced the folder between two files.
                if storage.read_manifest(folder) == manifest:
                    raise

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.items)

    @property
    def items(self) -> tuple[Item, ...]:
        """The pictures by position."""
        return self._contents.items

    @property
    def similarity(self) -> Similarity:
        """Of a picture and a text."""
        return self.picture_store.similarity

    @cached_property
    def issues(self) -> tuple[Issue, ...]:
        """The pictures that were left out when the index was built, and why."""
        if self.folder is None:
            return ()
        return tuple(Issue(**record) for record in read_lines(self.folder / storage.ISSUES))

    @property
    def captions(self) -> tuple[str, ...]:
        """The distinct captions of the collection, in order of first appearance."""
        return tuple(self._contents.positions_of_texts)

    def position(self, item_id: str) -> int:
        """The position of the picture with this id.

        Raises:
            UserError: If no picture has it.
        """
        try:
            return self._contents.position_of_id[item_id]
        except KeyError:
            raise UserError(f"{self._where}: no picture with id {item_id!r}; ids are as in the collection") from None

    def positions_with_caption(self, text: str) -> tuple[int, ...]:
        """Positions of the pictures that have a caption; none if no picture does."""
        return self._contents.positions_of_texts.get(text, ())

    def check(self, model: DualEncoder) -> None:
        """Refuse a model that did not make this index: its vectors would mean something else.

        This computes the model's fingerprint from all of its weights. A :class:`~rungwise.index.Searcher` does it once
        for any number of searches.

        Raises:
            UserError: Naming both models and the remedy.
        """
        ours, theirs = self.manifest.model_fingerprint, model.fingerprint
        if (ours, self.manifest.dimension) != (theirs, model.dimension):
            raise UserError(
                f"{self._where}: built by model {ours[:12]} (dimension {self.manifest.dimension}), not by"
                f" {theirs[:12]} (dimension {model.dimension}); search with the model that built it, or build the"
                " index again with this one"
            )

    def search(self, vectors: ArrayLike, k: int = 10, exclude: Sequence[int] = ()) -> Hits:
        """The k pictures with the highest cosine to each vector.

        Args:
            vectors: (queries, D), or one (D,).
            k: More than the index holds means all of it.
            exclude: Positions to leave out.

        Raises:
            UserError: If the vectors are of another dimension or not finite, or k is less than 1.
        """
        queries = checked_queries(np.atleast_2d(np.asarray(vectors, np.float32)), self.manifest.dimension, k)
        where = Where(without=frozenset(self.items[position].id for position in exclude)) if exclude else None
        return self.hits(self.picture_store.search(queries, k, where, metric="cosine"))

    def similar(self, item_id: str, k: int = 10) -> list[Hit]:
        """The k pictures most similar to one of the index, without itself, best first; needs no model.

        Raises:
            UserError: If no picture has this id.
        """
        position = self.position(item_id)
        return self.search(self.picture_store.get([item_id])[item_id].vector, k, exclude=(position,))[0]

    def upsert(self, data: ImageCaptions, model: DualEncoder, *, progress: Progress | None = None) -> tuple[Issue, ...]:
        """Add pictures with their captions, or put them in place of those with the same ids, which then stand last.

        Pictures that cannot be read are left as they were in the index. A process that dies on the way leaves all
        pictures as they were or as they should be.

        Args:
            data: As for :meth:`build`.
            model: That built the index.
            progress: Called with how many more pictures are done.

        Returns:
            One issue for each picture that cannot be read.

        Raises:
            UserError: If another model built the index, or the place cannot be written.
        """
        self.check(model)
        _require_pictures(data)
        with self._changing():
            return self._encode(data, model, progress)

    def remove(self, ids: Sequence[str]) -> int:
        """Remove pictures, and captions that no other picture has; gives how many pictures there were.

        Raises:
            UserError: If the place cannot be written.
        """
        with self._changing():
            removed = self.picture_store.delete(ids)
            self._settle()
        return removed

    @property
    def captions_without_picture(self) -> tuple[str, ...]:
        """Captions in the store that no picture has, because a process died between the two stores."""
        return self._contents.captions_without_picture

    def hits(self, found: Found) -> Hits:
        """What :attr:`picture_store` found, with positions in this index."""
        of_id = self._contents.position_of_id
        positions = np.array([[of_id[one] for one in row] for row in found.ids], np.int64)
        scores = np.array(list(found.scores), np.float32)
        shape = len(found.ids), len(found.ids[0]) if found.ids else 0
        return Hits(positions.reshape(shape), scores.reshape(shape), found.ids)

    @property
    def _where(self) -> str:
        return self.manifest.name if self.folder is None else str(self.folder)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Alone among those that change the index, from its newest state."""
        if self.folder is None:
            yield
            return
        with writing_alone(self.folder):
            stored = storage.read_manifest(self.folder)
            if replace(stored, version=storage.VERSION) != replace(self.manifest, version=storage.VERSION):
                raise UserError(f"{self.folder}: another index stands here now than was opened; open it again")
            version1.bring_up_to_date(self.folder)
            if self.manifest.version == 1:
                self.manifest = replace(stored, version=storage.VERSION)
                self.picture_store, self.caption_store = _open_stores(self.folder, self.manifest)
            self.picture_store.refresh()
            self.caption_store.refresh()
            self._contents = self._read()
            yield

    def _encode(self, data: ImageCaptions, model: DualEncoder, progress: Progress | None) -> tuple[Issue, ...]:
        """Write pictures and captions; captions first, since no search finds those that no picture has."""
        known = {text for text, _ in self.caption_store.records()}
        texts = [text for text in dict.fromkeys(data.captions) if text.strip() and text not in known]
        self.caption_store.upsert_batches(_encoded_texts(texts, model))
        issues: list[Issue] = []
        self.picture_store.upsert_batches(self._encoded_pictures(data, model, progress, issues))
        self._settle()
        return tuple(issues)

    def _encoded_pictures(
        self, data: ImageCaptions, model: DualEncoder, progress: Progress | None, issues: list[Issue]
    ) -> Iterator[Batch]:
        for start in range(0, len(data), _PICTURES_AT_ONCE):
            some = data.select(range(start, min(start + _PICTURES_AT_ONCE, len(data))))
            encoded = model.encode_image(some.pictures, progress=progress)
            items = items_at(some, encoded.kept.tolist())
            _require_finite(encoded.vectors, [str(item.path or item.id) for item in items])
            issues.extend(encoded.issues)
            yield Batch([item.id for item in items], encoded.vectors, [to_record(item, self.folder) for item in items])

    def _settle(self) -> None:
        """After pictures have changed: remove the captions that no picture has any more."""
        self._contents = self._read()
        if self.captions_without_picture:
            self.caption_store.delete(self.captions_without_picture)
            self._contents = replace(self._contents)

    def _read(self) -> _Contents:
        try:
            items = tuple(from_record(one, record, self.folder) for one, record in self.picture_store.records())
            return _Contents(items, self.caption_store)
        except (KeyError, TypeError) as error:
            raise damaged(self._where, "a picture lacks path or captions") from error


def _open_stores(folder: Path, manifest: storage.Manifest) -> tuple[Store, Store]:
    stores: tuple[Store, Store]
    if manifest.version == 1:
        stores = version1.open_stores(folder)
    else:
        stores = ExactStore.open(folder / storage.PICTURES), ExactStore.open(folder / storage.CAPTIONS)
    for store in stores:
        if store.dimension != manifest.dimension:
            raise damaged(folder, f"dimension {store.dimension} where index.json says {manifest.dimension}")
    return stores


def _require_pictures(data: ImageCaptions) -> None:
    if not data.has_pictures:
        raise UserError(f"{data.name}: no picture files and no features to index; name a collection that has them")


def _encoded_texts(texts: Sequence[str], model: DualEncoder) -> Iterator[Batch]:
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        _require_finite(vectors := model.encode_text(some), some)
        yield Batch(some, vectors)


def _require_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if odd.size:
        raise UserError(f"{names[odd[0]]}: the model gives NaN or infinity for it; the model's weights are damaged")


def one_line(issue: Issue) -> str:
    """Why a picture could not be read.

    >>> one_line(Issue("cut off", "a.jpg"))
    'a.jpg: cut off'
    """
    return ": ".join(part for part in (issue.where, issue.kind, issue.detail) if part)
