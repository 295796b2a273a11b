"""Cache of pictures of the index that were shown lately: most searches find some that others have found before."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from rungwise.index import Index, Item

_MOST = 20_000


class PictureCache:
    """Looks up pictures in an index, which does not change, and keeps ``most``, dropping those that came first."""

    def __init__(self, index: Index, most: int = _MOST) -> None:
        self._index = index
        self._most = most
        self._lock = Lock()
        self._items: dict[str, Item] = {}

    def __call__(self, ids: Sequence[str]) -> dict[str, Item]:
        """Pictures by these ids, in the given order; ids without a picture are left out."""
        known = {one: self._items.get(one) for one in ids}
        if missing := [one for one, item in known.items() if item is None]:
            found = self._index.found(missing)
            known.update(found)
            with self._lock:
                self._items.update(found)
                while len(self._items) > self._most:
                    del self._items[next(iter(self._items))]
        return {one: item for one, item in known.items() if item is not None}
