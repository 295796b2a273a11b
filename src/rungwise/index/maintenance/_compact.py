"""Compacting an index: what it frees, and what the place that it still takes is for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rungwise.core.disk import names_below
from rungwise.core.network import address_of, bytes_below
from rungwise.core.output import short_repr
from rungwise.index._index import Index
from rungwise.index.stores import StoreSpace, is_milvus
from rungwise.index.stores.milvus import catalog


@dataclass(frozen=True)
class Compaction:
    """What compacting an index has done.

    Attributes:
        pictures: Number of pictures of the index.
        before: Bytes that the index took before; None where its place does not tell.
        after: Bytes that it takes now; None where its place does not tell.
        spaces: What the bytes of its stores are for, as far as they tell.
        removed: Earlier generations that were removed from Milvus.
        drafts: Generations in Milvus that somebody writes to now, which stay.
    """

    pictures: int
    before: int | None = None
    after: int | None = None
    spaces: tuple[StoreSpace, ...] = ()
    removed: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def earlier(self) -> int:
        """Bytes of versions from before, which readers may still have open."""
        return sum(one.earlier for one in self.spaces)

    @property
    def free_after(self) -> datetime | None:
        """Time from which on compacting frees the earlier versions; None where there are none."""
        return max((one.free_after for one in self.spaces if one.free_after), default=None)

    def lines(self) -> list[str]:
        """Lines for a person: the bytes before and now and what they are for, as far as they are known.

        >>> space = StoreSpace(90 << 20, indexes=19 << 20, earlier=79 << 20, free_after=datetime(2026, 1, 1, 21, 3))
        >>> for line in Compaction(7, 109 << 20, 188 << 20, (space,)).lines():
        ...     print(line)
        109.0 MiB before, 188.0 MiB now
        of these, 90.0 MiB are rows, 19.0 MiB indexes of words, filters and vectors
        79.0 MiB are versions that readers may still have open: compact after 21:03
        """
        said = []
        if self.before is not None and self.after is not None:
            said.append(f"{_size(self.before)} before, {_size(self.after)} now")
        indexes = sum(one.indexes for one in self.spaces)
        if self.spaces:
            also = f", {_size(indexes)} indexes of words, filters and vectors" if indexes else ""
            said.append(f"of these, {_size(sum(one.rows for one in self.spaces))} are rows{also}")
        if self.earlier and self.free_after:
            when = f"{self.free_after:%H:%M}"
            said.append(f"{_size(self.earlier)} are versions that readers may still have open: compact after {when}")
        elif self.earlier:
            said.append(f"{_size(self.earlier)} are files of no version that can be opened")
        if self.removed:
            said.append(f"removed from Milvus, earlier generations: {', '.join(self.removed)}")
        if self.drafts:
            said.append(f"left in Milvus, as somebody writes to it now: {', '.join(self.drafts)}")
        return said


def compact_index(place: Path) -> Compaction:
    """Free the space of what is gone from an index, and order what speeds up a search.

    In Milvus, all generations are removed but the one that the index's name leads to, and drafts to which somebody
    wrote within the last hour. Whoever still searches a removed one opens the index anew.

    Raises:
        UserError: If there is no index, or the place cannot be written.
    """
    index = Index.open(place)
    before = _bytes(place)
    index.compact()
    spaces = [one.space() for one in (index.picture_store, index.caption_store)]
    swept = catalog.sweep(place) if is_milvus(place) else catalog.Swept()
    known = tuple(one for one in spaces if one is not None)
    return Compaction(len(index), before, _bytes(place), known, swept.removed, swept.drafts)


def _bytes(place: Path) -> int | None:
    """Bytes of the files of an index; None in Milvus, which does not tell."""
    if is_milvus(place):
        return None
    if address := address_of(place):
        return bytes_below(address)
    return sum((place / name).lstat().st_size for name in names_below(place))


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
