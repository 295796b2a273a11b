"""Reading an index: its pictures by id, what is alike, and which model made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError
from rungwise.core.output import facts_html, frame_of, in_few_lines, one_line, quoted, some_of
from rungwise.data import CollectionSource, Issue
from rungwise.data.pictures import thumbnail
from rungwise.index._answers import Hit, hits_of
from rungwise.index._items import CAPTIONS, Item, added_folder, from_record, ids_of_texts, path_of_stored, source_of
from rungwise.index.filters import (
    ColumnKind,
    Condition,
    Either,
    KindError,
    UnderstoodWhere,
    Where,
    check_columns,
    columns_of,
    kinds_of,
    understood,
)
from rungwise.index.layout import Grades, read_grades, read_queries, store_pair
from rungwise.index.layout import manifest as storage
from rungwise.index.stores import Record, Store, checked_queries, damaged, named
from rungwise.index.update import SIDE, Skipped, Thumbnails
from rungwise.similarity import Similarity

if TYPE_CHECKING:
    import pandas

    from rungwise.calibration import Calibration
    from rungwise.models import IndexEncoder


_ROWS_LOOKED_AT = 1000
"""Number of pictures by which it is known what the columns hold, unless a filter does not fit to them."""
_TIMES = ("taken", "modified")
"""Columns by which pictures are new: the first one that a picture has."""
_TEXTS_AT_ONCE = 64
"""Number of conditions in one filter; engines take some hundreds and end the process at thousands."""


@dataclass(frozen=True)
class _Columns:
    """What is known of the columns of one version of a store; more is read when a filter needs it.

    Attributes:
        kinds: Kinds of columns: by the first pictures, or by all values of a column that was read.
    """

    store: Store
    kinds: dict[str, ColumnKind]
    whole: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store) -> _Columns:
        """Look at the first pictures."""
        return cls(store, kinds_of(record for _, record in islice(store.records(), _ROWS_LOOKED_AT)))

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all columns."""
        return self.store.columns_beside(self.kinds).union(self.kinds)

    def read(self, names: Iterable[str]) -> None:
        """Find out the kinds of columns by all their values."""
        for name in set(names) - self.whole:
            self.kinds.update(kinds_of({name: one} for one in self.store.values(name)))
            self.whole.add(name)

    def examples(self, name: str) -> list[object]:
        """Some values of a column."""
        return list(islice(self.store.values(name), _ROWS_LOOKED_AT))


class ReadableIndex:
    """The part of :class:`rungwise.index.Index` that changes nothing."""

    def __init__(
        self,
        manifest: storage.Manifest,
        picture_store: Store,
        caption_store: Store,
        folder: Path | None = None,
        left_out: tuple[Skipped, ...] = (),
    ) -> None:
        self.manifest = manifest
        self.picture_store = picture_store
        self.caption_store = caption_store
        self.folder = folder
        self.left_out = left_out
        self._stamps: storage.Stamps | None = None
        self._columns: _Columns | None = None
        self._checked: IndexEncoder | None = None
        self._calibration: tuple[Calibration | None] | None = None
        self._place = None if folder is None else folder.resolve()
        self._where = manifest.name if folder is None else named(folder)

    @classmethod
    def open(cls, folder: Path, *, all_vectors: bool = False) -> Self:
        """Open a stored index. The opened state stays as it is, whatever others do to the folder meanwhile.

        All files are of one version of the index and compared with their checksums; vectors then stay on disk until
        they are needed. Checksums of files of vectors that are larger than the limit ``checked_bytes`` (see
        :class:`rungwise.core.Limits`) are left out, unless ``all_vectors`` asks for them.

        Raises:
            UserError: If there is none, it is damaged or was altered, or another version of rungwise made it.
        """
        folder = Path(folder)
        while True:
            stamps = storage.stamps(folder)
            try:
                manifest = storage.read_manifest(folder)
                both = store_pair.open_stores(folder, manifest, all_vectors=all_vectors)
                index = cls(manifest, *both, folder, storage.read_issues(folder, manifest))
            except UserError:
                # Another process may have replaced or changed the index between two files.
                if storage.stamps(folder) == stamps:
                    raise
                continue
            # Whatever was opened between two looks at one and the same index.json belongs to it.
            if storage.stamps(folder)[0] == stamps[0]:
                index._stamps = stamps
                return index

    def is_replaced(self) -> bool:
        """Whether the folder now holds another index than the one that was opened, or a newer state of it.

        Only stamps of files are compared. An index that is not in a folder is never replaced, nor is one whose folder
        is gone.
        """
        if self.folder is None or self._stamps is None:
            return False
        now = storage.stamps(self.folder)
        return now[0] is not None and now != self._stamps

    @property
    def added(self) -> Path | None:
        """Folder of the pictures that clients of a server added; None of an index that is in no folder."""
        return None if self._place is None else added_folder(self._place)

    @property
    def source(self) -> CollectionSource | None:
        """Where the collection was read from, and as what; None where no reader made it."""
        if (kept := self.manifest.source) is None:
            return None
        paths = tuple(str(path_of_stored(one, self._place)) for one in kept.paths)
        return replace(kept, paths=paths, captions=kept.captions and str(path_of_stored(kept.captions, self._place)))

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Why each picture in :attr:`left_out` is not in the index."""
        return tuple(one.issue for one in self.left_out)

    def __repr__(self) -> str:
        return in_few_lines(f"{type(self).__name__} {one_line(self.manifest.name, 60)!r}", self._facts())

    def _repr_html_(self) -> str:
        return facts_html(f"{type(self).__name__} {one_line(self.manifest.name, 60)!r}", self._facts())

    def to_frame(self, where: Where | None = None) -> pandas.DataFrame:
        """A row for each picture by its id, in the order in which they were written: its file, captions and columns.

        Args:
            where: Filter of the pictures; all if None.

        Raises:
            UserError: If pandas is not installed, or the filter is refused (see :meth:`understood`).
        """
        items = list(self.items(where))
        names = list(dict.fromkeys(name for one in items for name in one.columns))
        return frame_of(
            {
                "id": [one.id for one in items],
                "path": [None if one.path is None else str(one.path) for one in items],
                "captions": [list(one.captions) for one in items],
                **{name: [one.columns.get(name) for one in items] for name in names if name != CAPTIONS},
            },
            "id",
        )

    def _facts(self) -> list[tuple[str, str]]:
        """What people ask of an index first; no store is opened for it, and one that is gone says so."""
        ours, source = self.manifest, self.source
        try:
            counts = f"{len(self):,} pictures, {self.caption_store.count():,} captions"
        except UserError as error:
            counts = f"cannot be read: {one_line(str(error), 80)}"
        model = f"{ours.model_fingerprint[:12]}, dimension {ours.dimension}"
        kept = f"{ours.store}, {getattr(self.similarity, 'kind', repr(self.similarity))}"
        facts = [
            ("holds", counts),
            ("left out", f"{len(self.left_out):,} that cannot be read" if self.left_out else ""),
            ("model", f"{model}, from {one_line(ours.model_location, 60)}" if ours.model_location else model),
            ("store", kept + (", with small copies of the pictures" if ours.thumbnails else "")),
            ("folder", "" if self.folder is None else one_line(str(self.folder), 90)),
            ("read from", "" if source is None else some_of(source.paths)),
        ]
        return [(name, text) for name, text in facts if text]

    def __len__(self) -> int:
        """Number of pictures."""
        return self.picture_store.count()

    @property
    def similarity(self) -> Similarity:
        """Similarity of a picture and a text."""
        return self.picture_store.similarity

    def items(self, where: Where | None = None) -> Iterator[Item]:
        """The pictures, or those that a filter lets through, in the order in which they were written."""
        rows = self.picture_store.records(None if where is None else self.understood(where))
        return (self._item(one, record) for one, record in rows)

    def newest(self, count: int, offset: int = 0, where: Where | None = None) -> tuple[str, ...]:
        """Ids of the newest pictures, or of the newest that a filter lets through, the newest first.

        A picture is as new as its ``taken`` says, or without one its ``modified``; those without either come last, and
        those of one time stand in the order of their ids.

        Args:
            count: Number of ids at most.
            offset: Number of newer pictures to pass over.
            where: Filter of the pictures; all if None.
        """
        understood = None if where is None else self.understood(where)
        return self.picture_store.newest(count, offset, understood, by=_TIMES)

    def understood(self, where: Where) -> UnderstoodWhere:
        """The filter that people mean by this one: a date covers its day, and a folder those below it.

        Methods of an index do this themselves; a store takes a filter by the letter. Columns hold dates where all
        values that were looked at are dates: those of the first thousand pictures, and all values of the columns that a
        filter names before it is refused, or where it names one that the first pictures lack.

        Raises:
            UserError: If no picture has a column that the filter names, or one is compared with a value of another
                kind than it holds, or that could be several dates.
        """
        if isinstance(where, UnderstoodWhere) or not where.conditions:
            return understood(where, {})
        columns = self._columns = self._columns or _Columns.of(self.picture_store)
        named = columns_of(where)
        if columns.kinds.keys() >= set(named):
            with suppress(KindError):
                return understood(where, columns.kinds, columns.examples)
        else:
            check_columns(where, columns.names)
        columns.read(named)
        return understood(where, columns.kinds, columns.examples)

    def found(self, ids: Sequence[str]) -> dict[str, Item]:
        """The pictures with these ids, in the order asked; ids that no picture has are left out."""
        return {one: self._item(one, row.record) for one, row in self.picture_store.get(ids).items()}

    def item(self, item_id: str) -> Item:
        """The picture with this id; a UserError says that no picture has it."""
        if item := self.found([item_id]).get(item_id):
            return item
        raise UserError(f"{self._where}: no picture with id {quoted(item_id)}; ids are as in the collection")

    def captions(self) -> Iterator[str]:
        """The distinct captions of the collection."""
        return self.caption_store.ids()

    def ids_with_captions(self, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Ids of the pictures that have each of these captions; captions that no picture has are left out."""
        bearers: dict[str, tuple[str, ...]] = {}
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[start : start + _TEXTS_AT_ONCE]
            any_of = Either(tuple(Condition(CAPTIONS, "has", text) for text in some))
            found = ids_of_texts(self.items(understood(Where((any_of,)), {})))
            bearers |= {text: found[text] for text in some if text in found}
        return {text: bearers[text] for text in texts if text in bearers}

    def check(self, model: IndexEncoder) -> None:
        """Refuse a model that did not make this index: its vectors would mean something else.

        An exported model stands for the model from which it was exported, and the other way round: their vectors were
        compared at the export. The model must also compare vectors as the index does. The fingerprint is computed from
        all weights, which takes long; a :class:`~rungwise.index.Searcher` does it once for any number of searches.
        """
        ours, theirs = self.manifest, model.fingerprint  # which takes long
        if not ours.is_of(model, theirs):
            raise UserError(
                f"{self._where}: built by model {ours.model_fingerprint[:12]} (dimension {ours.dimension}), not by"
                f" {theirs[:12]} (dimension {model.dimension}); search with the model that built it, or build the"
                " index again with this one"
            )
        # Of a model that is not open yet, the fingerprint alone is known; it covers the similarity.
        given = getattr(model, "similarity", self.similarity)
        if given != self.similarity:
            names = [getattr(one, "kind", repr(one)) for one in (self.similarity, given)]
            raise UserError(
                f"{self._where}: its vectors are compared by {names[0]}, and the model compares by {names[1]}: it was"
                " altered; search with the model that built the index, or build the index again with this one"
            )

    @property
    def calibration(self) -> Calibration | None:
        """The index's own calibration, which judges its hits; None if it has none. A damaged one is refused."""
        if self._calibration is None:
            self._calibration = (None if self.folder is None else storage.read_calibration(self.folder),)
        return self._calibration[0]

    def check_calibration(self, calibration: Calibration) -> None:
        """Refuse a calibration that was fitted for another model."""
        fitted = calibration.model_fingerprint
        if fitted and fitted not in self.manifest.models:
            raise UserError(
                f"{self._where}: the calibration was fitted for model {fitted[:12]}, and the index is of model"
                f" {self.manifest.model_fingerprint[:12]}; fit it again with `rungwise calibrate`"
            )

    def grades(self) -> Grades:
        """People's grades of hits of this index, oldest first; none where it is not in a folder."""
        return Grades(()) if self.folder is None else read_grades(self.folder)

    def asked_queries(self) -> Mapping[str, int]:
        """Queries that people typed and a server kept, with how often they were asked; the most asked first.

        Empty where no server was asked to keep any. Damaged lines are left out, and `rungwise verify` lists them.
        """
        return {one.text: one.times for one in read_queries(self.folder).kept}

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
            k: Number of hits of each query; more than there are means all.
            where: Filter of the pictures that may be found; all if None.
            exclude: Ids to leave out.
            exact: Compare every picture, also where the store has an approximate index.

        Raises:
            UserError: If the vectors are of another dimension or not finite, k is less than 1, or the filter is
                refused (see :meth:`understood`).
        """
        queries = checked_queries(np.atleast_2d(np.asarray(vectors, np.float32)), self.manifest.dimension, k)
        chosen = self.understood(where or Where()).and_without(frozenset(exclude))
        return hits_of(self.picture_store.search(queries, k, chosen, metric="cosine", exact=exact))

    def similar(self, item_id: str, k: int = 10, where: Where | None = None) -> list[Hit]:
        """The k pictures most similar to one of the index, without itself, best first; needs no model.

        Raises:
            UserError: If no picture has this id.
        """
        rows = self.picture_store.get([item_id])
        if item_id not in rows:
            raise UserError(f"{self._where}: no picture with id {quoted(item_id)}; ids are as in the collection")
        return self.search(rows[item_id].vector, k, where, exclude=(item_id,))[0]

    def thumbnail(self, item_id: str) -> bytes | None:
        """A small JPEG of a picture, where the index keeps them and has this one."""
        row = self.picture_store.get([item_id]).get(item_id) if self._thumbnails else None
        source = None if row is None else source_of(row.record)
        return self._thumbnails.read(source.content) if self._thumbnails and source is not None else None

    def small_picture(self, item_id: str) -> bytes | None:
        """A small JPEG of a picture, kept or made of its file; None where neither can be read."""
        if (kept := self.thumbnail(item_id)) is not None:
            return kept
        item = self.found([item_id]).get(item_id)
        try:
            return None if item is None or item.path is None else thumbnail(item.path, SIDE)
        except UserError:
            return None

    @property
    def _thumbnails(self) -> Thumbnails | None:
        return Thumbnails(self.folder) if self.folder is not None and self.manifest.thumbnails else None

    def _item(self, item_id: str, record: Record) -> Item:
        try:
            return from_record(item_id, record, self._place)
        except (KeyError, TypeError) as error:
            raise damaged(self._where, f"the picture {item_id!r} lacks path or captions") from error
