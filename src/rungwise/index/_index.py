"""An index: the pictures and captions of a collection in two stores, and the model that encoded them."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.disk.locks import UPDATE_LOCK
from rungwise.core.network import address_of
from rungwise.core.text import person_name
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import MemoryPicture
from rungwise.index._items import path_of_stored, source_of, stored_path
from rungwise.index._reader import ReadableIndex
from rungwise.index.layout import Grade, GradeName, add_grade, carry_over, move_marks, now, store_pair, take_back
from rungwise.index.layout import manifest as storage
from rungwise.index.layout.location import alone, writing_alone
from rungwise.index.stores import Approximation
from rungwise.index.update import (
    Changes,
    FilesOfItems,
    Progress,
    Stored,
    Target,
    Thumbnails,
    Update,
    file_of,
    mounted_folders,
    one_line,
    require_ids,
    require_pictures,
)

if TYPE_CHECKING:
    from rungwise.calibration import Calibration
    from rungwise.data import CollectionSource
    from rungwise.models import DualEncoder, IndexEncoder


_IN_ORDER = 0.1
"""Share of rows written or removed from which on an update compacts the stores."""
_FEW_CAPTIONS = 256
"""Number of captions up to which the pictures that have them are looked for, rather than all pictures read."""
_TAKES_LONG = 20_000
"""Number of pictures from which on compaction takes more than a second or so."""


class Index(ReadableIndex):
    """Pictures that can be found by text, by picture, or by one of their own.

    Pictures are ranked for a text by the model's similarity and for a picture by the cosine of their vectors. Equal
    scores stand in the order of the index. :meth:`build` makes an index in a folder, :meth:`open` opens it, and a
    :class:`~rungwise.index.Searcher` searches it with texts and pictures. The constructor puts an index on stores of
    any kind. Methods that change the index raise a UserError if the place cannot be written.

    Attributes:
        manifest: What the index holds and which model made it.
        picture_store: Store with a row for each picture.
        caption_store: Store with a row for each distinct caption, whose id is the caption; its side is ``"text"``.
        folder: Folder of the index; None if it is in its stores alone.
        left_out: Pictures of the collection that cannot be read, and why.

    >>> import tempfile
    >>> from rungwise.index.stores.exact import ExactStore
    >>> from rungwise.similarity import Cosine
    >>> place = Path(tempfile.mkdtemp())
    >>> pictures = ExactStore.create(place / "pictures", 2, Cosine())
    >>> pictures.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [4, 3]])
    >>> captions = ExactStore.create(place / "captions", 2, Cosine(), side="text")
    >>> index = Index(storage.Manifest("pets", "9a3f", "", dimension=2), pictures, captions)
    >>> index.similar("dog", k=1)
    [Hit(id='wolf', score=0.800000...)]
    >>> [hit.id for hit in index.search([[0, 2]], k=2)[0]]
    ['cat', 'wolf']
    """

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
        store: str = "exact",
        half: bool = False,
        thumbnails: bool = False,
        files: FilesOfItems | None = None,
    ) -> Index:
        """Encode and store a collection's pictures and captions; all of it appears in ``folder`` at once.

        Pictures that cannot be read are left out, counted, and listed in :attr:`issues`. Paths of pictures that lie in
        the same folder as the index, or below it, are stored relative to it: both can be moved together.

        Args:
            data: Pictures as files or rows of features, and captions if there are any.
            model: Encoder of pictures and captions; only this model can search the index later.
            folder: Folder of the index, made together with its parents.
            model_location: Where the model came from, for those who open the index.
            progress: Called with the number of pictures that are done since the last call.
            overwrite: Replace an index that stands there already.
            store: Kind of store that keeps the rows; ``"auto"`` takes LanceDB's where it has the similarity.
            half: Keep vectors in half precision, which LanceDB's store can.
            thumbnails: Keep small copies of the pictures for :meth:`thumbnail`.
            files: Opens and encodes pictures in other processes; this process does it if None.

        Raises:
            UserError: If no picture can be read, the folder is taken, or the disk is full.
        """
        _refuse_memory(data)
        folder = Path(folder)
        with (
            writing_alone(folder) if storage.is_index(folder) else nullcontext(),
            storage.replacing_folder(folder, overwrite=overwrite) as draft,
        ):
            require_pictures(data)
            require_ids(data)
            manifest, both = store_pair.create_stores(
                draft, data.name, model, model_location, store, half=half, thumbnails=thumbnails, data=data
            )
            kept = Thumbnails(draft) if thumbnails else None
            target = Target(*both, folder.resolve(), nullcontext, kept)
            update = Update(target, data, model, progress=progress, files=files)
            _refuse_if_none(data, update.run())
            for one in both:
                one.compact()
            manifest = replace(manifest, rows_in_order=both[0].count(), **_collection(data, folder.resolve()))
            storage.write_issues(draft, manifest, update.left_out)
            carry_over(folder, draft)
        return cls.open(folder)

    @classmethod
    def create(
        cls,
        folder: Path,
        model: DualEncoder,
        *,
        name: str = "collection",
        model_location: str = "",
        store: str = "auto",
        half: bool = False,
        thumbnails: bool = False,
        data: ImageCaptions | None = None,
    ) -> Index:
        """Make an empty index of the collection ``name``, which :meth:`update` or :meth:`upsert` fills.

        A store may give the columns of ``data``, pictures that the index will hold, fields of their own. Other
        arguments are those of :meth:`build`.

        Raises:
            UserError: If the folder is taken, or cannot be written.
        """
        folder = Path(folder)
        with storage.replacing_folder(folder, overwrite=False) as draft:
            manifest, _ = store_pair.create_stores(
                draft, name, model, model_location, store, half=half, thumbnails=thumbnails, data=data
            )
            about = {} if data is None else _collection(data, folder.resolve())
            storage.write_issues(draft, replace(manifest, **about), ())
        index = cls.open(folder)
        index._checked = model
        return index

    def upsert(
        self, data: ImageCaptions, model: IndexEncoder, *, progress: Progress | None = None
    ) -> tuple[Issue, ...]:
        """Add pictures with their captions, or put them in place of those with the same ids, which then stand last.

        Pictures that cannot be read are left as they were in the index. A process that dies on the way leaves each
        picture as it was or as it should be. ``progress`` is called with the number of pictures done since the last
        call.

        Returns:
            One issue for each picture that cannot be read.

        Raises:
            UserError: If another model built the index, or the place cannot be written.
        """
        self.check(model)
        require_pictures(data)
        require_ids(data)
        with self._newest():
            update = Update(self._target(), data, model, whole=False, progress=progress)
            before = [text for item in self.found(data.image_ids).values() for text in item.captions]
        changes = update.run()
        with self._changing():
            self._settle([*before, *data.captions])
        return changes.issues

    def update(
        self,
        data: ImageCaptions,
        model: IndexEncoder,
        *,
        progress: Progress | None = None,
        stored: Stored | None = None,
        files: FilesOfItems | None = None,
        rehash: bool = False,
        allow_removals: bool = False,
        thumbnails: bool | None = None,
        say: Callable[[str], None] | None = None,
        listing: str = "",
    ) -> Changes:
        """Make the index hold a collection and nothing else, touching only what changed.

        A file whose size and time are as they were is not opened; of others the content decides. Pictures whose content
        is known, under any id, are not encoded again, and other captions or columns alone encode no picture. Rows come
        in batches, each of which can be searched and survives the end of the process once it is in; after the death of
        a process another update finishes the work.

        Grades and favourites of a picture that was renamed or moved go with it.

        Rows of pictures that are gone are removed at the end, except those whose file the system keeps away, as in a
        folder that cannot be read. If they are more than a tenth of the index and at least 20, if nothing is left, or
        if their folder was mounted and is no longer, nothing is removed, and :attr:`Changes.withheld` counts them.
        A picture that was renamed or moved is not lost, and does not count. Pictures that cannot be read are in
        :attr:`left_out`, and are not tried again while their file is the same.

        Args:
            data: Pictures as files or rows of features, and captions if there are any.
            model: The model that built the index. Its fingerprint is compared once, so that updates that follow each
                other do not read its weights again.
            progress: Called with the number of pictures that are done since the last call, out of all of the
                collection.
            stored: Called with the ids of each batch when it is in.
            files: Opens and encodes what is new in other processes, such as
                :class:`~rungwise.index.update.Workers`; this process does it if None.
            rehash: Compare the content of every file, whatever its size and time.
            allow_removals: Remove all that is gone, however much it is.
            thumbnails: Keep small copies of the pictures from now on, or no more; as before if None.
            say: Called with a line before something that may take long: where more than a tenth of the rows is new, the
                stores are compacted in the end.
            listing: What stood in the folders of the collection before it was read
                (:func:`rungwise.data.listing_of`), for :meth:`holds`.

        Raises:
            UserError: If another model built the index, another update is under way, no picture can be read, the
                collection is another one that has none of the pictures, or the place cannot be written.
        """
        _refuse_memory(data)
        if self._checked is not model:
            self.check(model)
            self._checked = model
        require_ids(data)
        own = 0

        @contextmanager
        def changing() -> Iterator[None]:
            nonlocal own
            with self._changing():
                yield
            own += 1

        with nullcontext() if self.folder is None else alone(self.folder, "an indexing run", UPDATE_LOCK):
            with self._newest():
                begun = self.manifest.revision
                if self.folder is not None and thumbnails not in (None, self.manifest.thumbnails):
                    store_pair.refuse_thumbnails(self.folder, bool(thumbnails))
                    self.manifest = replace(self.manifest, thumbnails=bool(thumbnails))
                    storage.write_manifest(self.folder, self.manifest)
                update = Update(
                    replace(self._target(), writing=changing),
                    data,
                    model,
                    left_out=self.left_out,
                    rehash=rehash,
                    allow_removals=allow_removals,
                    mounts=[path_of_stored(one, self._place) for one in self.manifest.mounts],
                    roots=() if self.source is None else self.source.folders,
                    progress=progress,
                    stored=stored,
                    files=files,
                )
            if not allow_removals:
                self._refuse_another(set(update.known), data)
            changes = update.run()
            if update.moved and self.folder is not None:
                move_marks(self.folder, update.moved)
            with self._newest():
                settled = self._settle(update.unclaimed)
                about = _collection(data, self._place, self.manifest.mounts if changes.withheld else ())
                # Of files elsewhere, which a table may name, a listing of the folders says nothing, nor does it tell of
                # a file that could not be read and now can be, or of rows that others changed meanwhile.
                known = listing and not (changes.withheld or rehash) and self.manifest.revision == begun + own
                known = known and _lies_in_its_folders(data) and _was_read(data) and update.is_settled
                manifest = replace(self.manifest, name=data.name, listing=listing if known else "", **about)
                told = update.left_out != self.left_out or (self.folder is not None and manifest != self.manifest)
                self.left_out = update.left_out
                if told and self.folder is not None:
                    self.manifest = storage.write_issues(self.folder, manifest, update.left_out)
                elif settled:
                    self._raise_revision(self.manifest.listing)
            if data.has_pictures and not len(self):
                _refuse_if_none(data, changes)
            rows, before = len(self), self.manifest.rows_in_order
            if abs(rows - before) + changes.changed > _IN_ORDER * rows:
                if say is not None and rows >= _TAKES_LONG:
                    say(f"putting the index of {rows} pictures in order")
                self.compact()
        return changes

    def holds(self, source: CollectionSource, listing: str) -> bool:
        """Whether the index is up to date with a collection that is read from there, as far as can be told unread.

        Args:
            source: Where the collection is read from, and as what.
            listing: What stands in its folders now (:func:`rungwise.data.listing_of`).
        """
        return bool(listing) and listing == self.manifest.listing and source == self.source

    def compact(self) -> None:
        """Free the space of rows that are gone, and order what speeds up a search."""
        with self._changing(rows=False):
            self._settle(self.caption_store.ids())  # of a process that died between pictures and captions
            self.picture_store.compact()
            self.caption_store.compact()
            if kept := self._thumbnails:
                contents = (source_of(record) for _, record in self.picture_store.records())
                kept.keep_only(source.content for source in contents if source is not None)
            self.manifest = replace(self.manifest, rows_in_order=len(self))

    def approximate(self, settings: Approximation) -> None:
        """Set how thoroughly the approximate search of pictures looks; refuses where every picture is compared."""
        with self._changing(rows=False):
            if (index := self.picture_store.approximate_index) is None:
                raise UserError(f"{self._where}: there is nothing to set: {self.picture_store.about().why}")
            index.keep(settings)

    def keep_calibration(self, calibration: Calibration) -> None:
        """Judge hits of this index by a calibration from now on, also when others open it.

        Raises:
            UserError: If it was fitted for another model.
        """
        self.check_calibration(calibration)
        with self._changing(rows=False):
            if self.folder is not None:
                storage.write_calibration(self.folder, calibration)
            self._calibration = (calibration,)

    def grade(self, query: str, item_id: str, grade: GradeName | None, who: str = "") -> None:
        """Keep a person's grade of a picture for a query, in place of that person's earlier grade.

        Args:
            query: The query as it was typed.
            item_id: Id of the picture.
            grade: ``"right"``, ``"close"`` or ``"wrong"``; None takes the grade back.
            who: Name of the person; empty for nobody in particular.

        Raises:
            UserError: If no picture has this id, the query is empty, the name has no visible character, or the index is
                in no folder.
        """
        if self.folder is None:
            raise UserError(f"{self._where}: this index is in no folder, where grades could be kept; build it in one")
        item_id = self.item(item_id).id
        who = person_name(who) if who.strip() else ""
        if grade is None:
            take_back(self.folder, query, item_id, who)
        else:
            add_grade(self.folder, Grade(query, item_id, grade, now(), who))

    def remove(self, ids: Sequence[str]) -> int:
        """Remove pictures, and captions that no other picture has; gives the number of pictures removed."""
        with self._changing():
            orphans = [text for item in self.found(ids).values() for text in item.captions]
            removed = self.picture_store.delete(ids)
            self._settle(orphans)
        return removed

    def _target(self) -> Target:
        return Target(self.picture_store, self.caption_store, self._place, self._changing, self._thumbnails)

    def _refuse_another(self, known: set[str], data: ImageCaptions) -> None:
        """Refuse a collection that has nothing to do with the index: it may be named by mistake."""
        if known and len(data) and data.name != self.manifest.name and known.isdisjoint(data.image_ids):
            raise UserError(
                f"{data.name}: has not one of the {len(known)} pictures of {self._where}, which is of"
                f" {self.manifest.name}; name another index, or replace this one with allow_removals=True",
                parameters={"allow_removals=True": "allow_removals"},
            )

    @contextmanager
    def _newest(self) -> Iterator[None]:
        """Hold the lock of those that change the index, and bring this object to the newest state."""
        if self.folder is None:
            try:
                yield
            finally:
                self._columns = None
            return
        with writing_alone(self.folder):
            stored = storage.read_manifest(self.folder)
            if stored.identity != self.manifest.identity:
                raise UserError(f"{self.folder}: another index stands here now than was opened; open it again")
            storage.sweep(self.folder)
            self.manifest = stored
            self.left_out = storage.read_issues(self.folder, self.manifest)
            self.picture_store.refresh()
            self.caption_store.refresh()
            try:
                yield
            finally:
                self._columns = None
                self._stamps = storage.stamps(self.folder)

    @contextmanager
    def _changing(self, *, rows: bool = True) -> Iterator[None]:
        """Do a change under :meth:`_newest`, and raise the revision by which others notice it.

        After a change of ``rows`` the index may hold another collection than the one in its folders.
        """
        with self._newest():
            if rows and self.manifest.listing and self.folder is not None:
                # Before the rows, as the process may die between them and the new revision.
                self.manifest = replace(self.manifest, listing="")
                storage.write_manifest(self.folder, self.manifest)
            yield
            self._raise_revision(self.manifest.listing)

    def _raise_revision(self, listing: str) -> None:
        if self.folder is not None:
            self.manifest = replace(self.manifest, revision=self.manifest.revision + 1, listing=listing)
            storage.write_manifest(self.folder, self.manifest)

    def _settle(self, texts: Iterable[str]) -> bool:
        """Remove those of these captions that no picture has; tells whether there were any."""
        distinct = [text for text in dict.fromkeys(texts) if text.strip()]
        if len(distinct) > _FEW_CAPTIONS:  # reading all pictures once is less than looking for each caption
            borne: Container[str] = {text for item in self.items() for text in item.captions}
        else:
            borne = self.ids_with_captions(distinct) if distinct else {}
        orphans = [text for text in distinct if text not in borne]
        if orphans:
            self.caption_store.delete(orphans)
        return bool(orphans)


def _collection(data: ImageCaptions, folder: Path | None, mounts: Sequence[str] = ()) -> dict[str, Any]:
    """Fields of a manifest that say where a collection was read from; ``mounts`` are those that stay known."""
    if data.source is None:
        return {}
    source = replace(
        data.source,
        paths=tuple(stored_path(Path(one), folder).as_posix() for one in data.source.paths),
        captions=data.source.captions and stored_path(Path(data.source.captions), folder).as_posix(),
    )
    # A folder is looked at once, and no Path is made for each of its pictures.
    parents = {os.path.dirname(file) for picture in data.paths if (file := file_of(picture)) is not None}  # noqa: PTH120
    found = mounted_folders(data.source.folders, [Path(one) for one in parents if not address_of(one)])
    return {
        "source": source,
        "mounts": tuple(sorted({*mounts, *(stored_path(one, folder).as_posix() for one in found)})),
    }


def _lies_in_its_folders(data: ImageCaptions) -> bool:
    """Whether all picture files of a collection lie in its folders, and none was sought elsewhere."""
    if data.source is None or not data.paths or data.looked_outside:
        return False
    folders = tuple(f"{os.path.abspath(one)}{os.sep}" for one in data.source.folders)  # noqa: PTH100
    files = (file_of(picture) for picture in data.paths)
    return all(file is not None and os.path.abspath(file).startswith(folders) for file in files)  # noqa: PTH100


def _was_read(data: ImageCaptions) -> bool:
    """Whether no file or folder was left out for a reason that may end while the file stays as it is."""
    return not any(one.kind.startswith("unreadable") or one.kind == "captions not read" for one in data.issues)


def _refuse_memory(data: ImageCaptions) -> None:
    """Refuse pictures that no other process finds again, such as a server, or the next update."""
    if any(isinstance(picture, MemoryPicture) for picture in data.paths):
        raise UserError(
            f"{data.name}: its pictures are in memory, and those of an index are opened again;"
            " save(FOLDER) writes them, and read(FOLDER) is what to index"
        )


def _refuse_if_none(data: ImageCaptions, changes: Changes) -> None:
    """Refuse an index of whose pictures not one could be read."""
    if not (changes.added or changes.changed or changes.unchanged):
        first = f"; the first: {one_line(changes.issues[0])}" if changes.issues else ""
        raise UserError(f"{data.name}: none of {len(data)} pictures could be read{first}")
