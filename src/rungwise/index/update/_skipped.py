"""Pictures that could not be read: why, and which file it was, so that it is tried again only when it is another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rungwise.data import Issue
from rungwise.index._items import ItemSource

_TEXTS = {"id", "kind", "where", "detail"}


@dataclass(frozen=True)
class Skipped:
    """A picture of the collection that is not in the index: its id, why, and the file as it was when it was tried."""

    id: str
    issue: Issue
    source: ItemSource

    def to_plain(self) -> dict[str, Any]:
        """Fields of one line of ``issues.jsonl``."""
        return asdict(self.issue) | {"id": self.id, "source": [self.source.size, self.source.modified]}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Skipped:
        """Read the fields that :meth:`to_plain` gave; a TypeError says that they are others."""
        texts = dict(plain)
        source = texts.pop("source", None)
        is_source = isinstance(source, list) and [type(one) for one in source] == [int, int]
        if not is_source or texts.keys() != _TEXTS or not all(isinstance(one, str) for one in texts.values()):
            raise TypeError("it does not say id, kind, where, detail and source")
        return cls(texts.pop("id"), Issue(**texts), ItemSource(source[0], source[1], ""))
