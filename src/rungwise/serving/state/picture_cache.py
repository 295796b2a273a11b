"""Pictures of the index that were shown lately: most searches find some that others have found before."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from rungwise.index import Index, Item

_MOST = 20_000


class PictureCache:
    """Looks pictures up in one version of an index, and keeps those that were looked up.

    Args:
        index: Which one; it does not change.
        most: Pictures that are kept; those that came first go first.

    >>> PictureCache.__call__.__doc__.split(".")[0]
    'The pictures with these ids, in the order asked; ids that no picture has are left out'
    """

    def __init__(self, index: Index, most: int = _MOST) -> None:
        self._index = index
        self._most = most
        self._lock = Lock()
        self._items: dict[str, Item] = {}

    def __call__(self, ids: Sequence[str]) -> dict[str, Item]:
        """The pictures with these ids, in the order asked; ids that no picture has are left out."""
        known = {one: self._items.get(one) for one in ids}
        if missing := [one for one, item in known.items() if item is None]:
            found = self._index.found(missing)
            known.update(found)
            with self._lock:
                self._items.update(found)
                while len(self._items) > self._most:
                    del self._items[next(iter(self._items))]
        return {one: item for one, item in known.items() if item is not None}
