"""The queries with which an index is checked: its own captions or pictures, or texts that people would type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.index import Index
from rungwise.index.filters import Where
from rungwise.index.stores import Metric, Store, Vectors

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

QueryKind = Literal["captions", "pictures", "texts"]


@dataclass(frozen=True)
class Queries:
    """Queries as vectors.

    Attributes:
        kind: Captions of the index, pictures of the index, or texts from outside.
        names: (queries,) the captions or texts themselves, or the ids of the pictures.
        vectors: (queries, D) float32.
        owners: (queries,) id of the picture that a query is, or was written for; empty for texts from outside.
    """

    kind: QueryKind
    names: tuple[str, ...]
    vectors: Vectors
    owners: tuple[str, ...] = ()

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.names)

    @property
    def metric(self) -> Metric | None:
        """Metric of the search: cosine for pictures, the model's similarity (None) for texts."""
        return "cosine" if self.kind == "pictures" else None

    def where(self, number: int, where: Where | None) -> Where | None:
        """The filter of one query: a picture is not looked for among pictures like it."""
        if self.kind != "pictures":
            return where
        return (where or Where()).and_without(frozenset((self.names[number],)))

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """(queries,) number of the picture that each belongs to: queries of one picture are not independent."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(one, len(numbers)) for one in self.owners or self.names], np.int64)


def own_captions(index: Index, number: int, seed: int = 0) -> Queries:
    """Draw ``number`` captions of the index, or take all; no model is needed, since the index has their vectors.

    Raises:
        UserError: If no picture of the index has a caption.
    """
    texts = _drawn(list(index.captions()), number, seed)
    bearers = index.ids_with_captions(texts) if texts else {}
    texts = [text for text in texts if text in bearers]
    if not texts:
        raise UserError("the index has no captions to take as queries; take its pictures, or texts of your own")
    return Queries("captions", tuple(texts), _vectors(index.caption_store, texts), tuple(bearers[t][0] for t in texts))


def own_pictures(index: Index, number: int, seed: int = 0) -> Queries:
    """Draw ``number`` pictures of the index, or take all, each of which looks for others like it; no model is needed.

    Raises:
        UserError: If the index has fewer than two pictures.
    """
    ids = list(index.picture_store.ids())
    if len(ids) < 2:
        raise UserError(
            f"the index has {len(ids)} picture{'' if len(ids) == 1 else 's'}: there is no other to find; add pictures"
        )
    drawn = _drawn(ids, number, seed)
    return Queries("pictures", tuple(drawn), _vectors(index.picture_store, drawn), tuple(drawn))


def given_texts(index: Index, model: DualEncoder, texts: Sequence[str], number: int, seed: int = 0) -> Queries:
    """Encode distinct texts that are not blank; of more than ``number``, so many are drawn.

    Raises:
        UserError: If there is none, or another model than ``model`` built the index.
    """
    index.check(model)
    distinct = list(dict.fromkeys(text.strip() for text in texts if text.strip()))
    if not distinct:
        raise UserError("there are no queries; write one a line")
    drawn = _drawn(distinct, number, seed)
    return Queries("texts", tuple(drawn), np.asarray(model.encode_text(drawn), np.float32))


def _drawn(names: list[str], number: int, seed: int) -> list[str]:
    """Draw ``number`` names, which stay in their order."""
    if number < 1:
        raise UserError(f"{number} queries were asked for; take at least 1")
    if len(names) <= number:
        return names
    chosen = np.random.default_rng(seed).choice(len(names), number, replace=False)
    return [names[place] for place in np.sort(chosen)]


def _vectors(store: Store, ids: Sequence[str]) -> Vectors:
    rows = store.get(ids)
    return np.stack([rows[one].vector for one in ids]).astype(np.float32)
