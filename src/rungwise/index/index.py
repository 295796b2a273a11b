"""An index: the pictures and captions of a collection in two stores, and the model that encoded them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core.errors import UserError
from rungwise.core.locks import writing_alone
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.index import storage, stores
from rungwise.index.encoding import Progress, encoded_pictures, encoded_texts, one_line, require_pictures
from rungwise.index.files import damaged, write_lines
from rungwise.index.hits import Hit, hits_of
from rungwise.index.items import CAPTIONS, Item, from_record, ids_of_texts
from rungwise.index.store import Record, Store, checked_queries
from rungwise.index.version1 import bring_up_to_date, open_stores
from rungwise.index.where import Condition, Either, Where
from rungwise.similarity import Similarity

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder


class Index:
    """Pictures that can be found by text, by picture, or by one of their own.

    Pictures are ranked for a text by the model's similarity and for a picture by the cosine of their vectors. Equal
    scores stand in the order of the index. Make one in a folder with :meth:`build`, open it with :meth:`open`, and
    search it with texts and pictures through a :class:`~rungwise.index.Searcher`. The constructor puts one on stores of
    any kind.

    Args:
        manifest: What it holds and which model made it.
        picture_store: A row for each picture.
        caption_store: A row for each distinct caption, under the caption itself; its side is ``"text"``.
        folder: Where the index is; None if only its stores know.
        issues: The pictures that were left out when the index was built, and why.

    Attributes:
        manifest: As given.
        picture_store: As given.
        caption_store: As given.
        folder: As given.
        issues: As given.

    >>> import tempfile
    >>> from rungwise.index.exact import ExactStore
    >>> from rungwise.similarity import Cosine
    >>> place = Path(tempfile.mkdtemp())
    >>> pictures = ExactStore.create(place / "pictures", 2, Cosine())
    >>> pictures.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [4, 3]], [{"path": None, "captions": []}] * 3)
    >>> captions = ExactStore.create(place / "captions", 2, Cosine(), side="text")
    >>> index = Index(storage.Manifest("pets", "9a3f", "", dimension=2), pictures, captions)
    >>> index.similar("dog", k=1)
    [Hit(id='wolf', score=0.800000...)]
    >>> [hit.id for hit in index.search([[0, 2]], k=2)[0]]
    ['cat', 'wolf']
    >>> Index.open(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no index here; build one with Index.build or `rungwise index`
    """

    def __init__(
        self,
        manifest: storage.Manifest,
        picture_store: Store,
        caption_store: Store,
        folder: Path | None = None,
        issues: tuple[Issue, ...] = (),
    ) -> None:
        self.manifest = manifest
        self.picture_store = picture_store
        self.caption_store = caption_store
        self.folder = folder
        self.issues = issues
        self._stamps: storage.Stamps | None = None

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
        store: stores.Kind = "exact",
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
            store: Which kind of store keeps the rows.

        Raises:
            UserError: If no picture can be read, the folder is taken, or the disk is full.
        """
        folder = Path(folder)
        with (
            writing_alone(folder) if storage.is_index(folder) else nullcontext(),
            storage.replacing_folder(folder, overwrite=overwrite) as draft,
        ):
            require_pictures(data)
            manifest, both = _created(draft, data.name, model, model_location, store)
            index = cls(manifest, *both, folder)
            issues = index._encode(data, model, progress)
            if not len(index):
                first = f"; the first: {one_line(issues[0])}" if issues else ""
                raise UserError(f"{data.name}: none of {len(data)} pictures could be read{first}")
            issues_sha256 = write_lines(draft / storage.ISSUES, (asdict(issue) for issue in issues))
            skipped = len(data) - len(index)
            storage.write_manifest(draft, replace(manifest, skipped=skipped, issues_sha256=issues_sha256))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, *, all_vectors: bool = False) -> Index:
        """Open a stored index. What is opened stays as it is, whatever others do to the folder meanwhile.

        Everything is of one version of the index, and compared with its checksums; vectors then stay on disk until they
        are needed. Checksums of files of vectors that are larger than the limit ``checked_bytes`` (see
        :class:`rungwise.core.limits.Limits`) are left out.

        Args:
            folder: Of the index.
            all_vectors: Compare those of large files too.

        Raises:
            UserError: If there is none, it is damaged or was altered, or another version of rungwise made it.
        """
        folder = Path(folder)
        while True:
            stamps = storage.stamps(folder)
            try:
                index = cls._opened(folder, all_vectors)
            except UserError:
                # Another process may have replaced or changed the index between two files.
                if storage.stamps(folder) == stamps:
                    raise
                continue
            # Whatever was opened between two looks at one and the same index.json belongs to it.
            if storage.stamps(folder)[0] == stamps[0]:
                index._stamps = stamps
                return index

    @classmethod
    def _opened(cls, folder: Path, all_vectors: bool) -> Index:
        manifest = storage.read_manifest(folder)
        both = _open_stores(folder, manifest, all_vectors)
        return cls(manifest, *both, folder, storage.read_issues(folder, manifest))

    def is_replaced(self) -> bool:
        """Whether the folder now holds another index than the one that was opened, or a newer state of it.

        No file is read for it. An index that is not in a folder is never replaced, nor is one whose folder is gone.

        >>> Index.open(Path("nowhere")).is_replaced()
        Traceback (most recent call last):
        rungwise.core.errors.UserError: nowhere: no index here; build one with Index.build or `rungwise index`
        """
        if self.folder is None or self._stamps is None:
            return False
        now = storage.stamps(self.folder)
        return now[0] is not None and now != self._stamps

    def __len__(self) -> int:
        """Number of pictures."""
        return self.picture_store.count()

    @property
    def similarity(self) -> Similarity:
        """Of a picture and a text."""
        return self.picture_store.similarity

    def items(self, where: Where | None = None) -> Iterator[Item]:
        """The pictures, or those that a filter lets through, in the order in which they were written."""
        for one, record in self.picture_store.records(where):
            yield self._item(one, record)

    def found(self, ids: Sequence[str]) -> dict[str, Item]:
        """The pictures with these ids, in the order asked; ids that no picture has are left out."""
        return {one: self._item(one, row.record) for one, row in self.picture_store.get(ids).items()}

    def item(self, item_id: str) -> Item:
        """The picture with this id.

        Raises:
            UserError: If no picture has it.
        """
        if item := self.found([item_id]).get(item_id):
            return item
        raise UserError(f"{self._where}: no picture with id {item_id!r}; ids are as in the collection")

    def captions(self) -> Iterator[str]:
        """The distinct captions of the collection."""
        return (text for text, _ in self.caption_store.records())

    def ids_with_captions(self, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Ids of the pictures that have each of these captions; captions that no picture has are left out."""
        if self.manifest.version < storage.FILTERED:
            bearers = ids_of_texts(self.items())
        else:
            any_of = Where((Either(tuple(Condition(CAPTIONS, "has", text) for text in texts)),))
            bearers = ids_of_texts(self.items(any_of))
        return {text: bearers[text] for text in texts if text in bearers}

    def check(self, model: DualEncoder) -> None:
        """Refuse a model that did not make this index: its vectors would mean something else.

        An exported model stands for the model from which it was exported, and the other way round: their vectors were
        compared at the export. This computes the model's fingerprint from all of its weights. A
        :class:`~rungwise.index.Searcher` does it once for any number of searches.

        Raises:
            UserError: Naming both models and the remedy.
        """
        ours, theirs = self.manifest, model.fingerprint
        if ours.dimension != model.dimension or not ours.models & {theirs, model.stands_for}:
            raise UserError(
                f"{self._where}: built by model {ours.model_fingerprint[:12]} (dimension {ours.dimension}), not by"
                f" {theirs[:12]} (dimension {model.dimension}); search with the model that built it, or build the"
                " index again with this one"
            )

    def stand_in(self, model: DualEncoder) -> str:
        """One line about a model that :meth:`check` takes in place of the one that built the index; empty for that one.

        The fingerprint of a model that was not exported is not computed.
        """
        ours, compare = self.manifest, "rungwise verify compares its vectors with those of the index"
        if not model.stands_for:
            return f"the index was built by an export of this model; {compare}" if ours.model_stands_for else ""
        if ours.model_fingerprint == model.fingerprint or model.stands_for not in ours.models:
            return ""
        return f"an export stands in for the model that built the index; {compare}"

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        exclude: Iterable[str] = (),
        exact: bool = False,
    ) -> list[list[Hit]]:
        """The k pictures with the highest cosine to each vector, best first.

        Args:
            vectors: (queries, D), or one (D,).
            k: More than there are means all.
            where: Which pictures may be found; all if not given.
            exclude: Ids to leave out.
            exact: Compare every picture, also where the store has an approximate index.

        Raises:
            UserError: If the vectors are of another dimension or not finite, or k is less than 1.
        """
        queries = checked_queries(np.atleast_2d(np.asarray(vectors, np.float32)), self.manifest.dimension, k)
        where = (where or Where()).and_without(frozenset(exclude))
        return hits_of(self.picture_store.search(queries, k, where, metric="cosine", exact=exact))

    def similar(self, item_id: str, k: int = 10, where: Where | None = None) -> list[Hit]:
        """The k pictures most similar to one of the index, without itself, best first; needs no model.

        Raises:
            UserError: If no picture has this id.
        """
        rows = self.picture_store.get([item_id])
        if item_id not in rows:
            raise UserError(f"{self._where}: no picture with id {item_id!r}; ids are as in the collection")
        return self.search(rows[item_id].vector, k, where, exclude=(item_id,))[0]

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
        require_pictures(data)
        with self._changing():
            return self._encode(data, model, progress)

    def remove(self, ids: Sequence[str]) -> int:
        """Remove pictures, and captions that no other picture has; gives how many pictures there were.

        Raises:
            UserError: If the place cannot be written.
        """
        with self._changing():
            orphans = [text for item in self.found(ids).values() for text in item.captions]
            removed = self.picture_store.delete(ids)
            self._settle(orphans)
        return removed

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
            if not stored.is_of(self.manifest):
                raise UserError(f"{self.folder}: another index stands here now than was opened; open it again")
            storage.sweep(self.folder)
            bring_up_to_date(self.folder)
            before, self.manifest = self.manifest, storage.read_manifest(self.folder)
            if before.version == 1:
                self.picture_store, self.caption_store = _open_stores(self.folder, self.manifest)
            self.picture_store.refresh()
            self.caption_store.refresh()
            try:
                yield
            finally:
                self._stamps = storage.stamps(self.folder)

    def _encode(self, data: ImageCaptions, model: DualEncoder, progress: Progress | None) -> tuple[Issue, ...]:
        """Write pictures and captions; captions first, since no search finds those that no picture has."""
        known = {text for text, _ in self.caption_store.records()}
        texts = [text for text in dict.fromkeys(data.captions) if text.strip() and text not in known]
        rows = None
        if data.text_features is not None:
            first = {text: position for position, text in reversed(list(enumerate(data.captions)))}
            rows = data.text_features.take([first[text] for text in texts])
        self.caption_store.upsert_batches(encoded_texts(texts, model, rows))
        issues: list[Issue] = []
        orphans = [text for item in self.found(data.image_ids).values() for text in item.captions]
        self.picture_store.upsert_batches(encoded_pictures(data, model, self.folder, progress, issues))
        self._settle([*orphans, *texts])
        return tuple(issues)

    def _settle(self, texts: Iterable[str]) -> None:
        """After pictures have changed: remove those of these captions that no picture has."""
        distinct = [text for text in dict.fromkeys(texts) if text.strip()]
        borne = self.ids_with_captions(distinct) if distinct else {}
        if orphans := [text for text in distinct if text not in borne]:
            self.caption_store.delete(orphans)

    def _item(self, item_id: str, record: Record) -> Item:
        try:
            return from_record(item_id, record, self.folder)
        except (KeyError, TypeError) as error:
            raise damaged(self._where, f"the picture {item_id!r} lacks path or captions") from error


def _created(
    folder: Path, name: str, model: DualEncoder, model_location: str, kind: stores.Kind
) -> tuple[storage.Manifest, tuple[Store, Store]]:
    """The two empty stores of a new index, and what ``index.json`` is to say."""
    both = (
        stores.create_store(kind, folder, storage.PICTURES, model.dimension, model.similarity, "image"),
        stores.create_store(kind, folder, storage.CAPTIONS, model.dimension, model.similarity, "text"),
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
    )
    return manifest, both


def _open_stores(folder: Path, manifest: storage.Manifest, all_vectors: bool = False) -> tuple[Store, Store]:
    both: tuple[Store, Store]
    if manifest.version == 1:
        both = open_stores(folder)
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
