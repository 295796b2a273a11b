"""The collection to learn from, and its splits."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.core import STRICT
from rungwise.data.layouts import Key


@dataclass(frozen=True)
class CollectionConfig:
    """The pictures and captions to learn from.

    Attributes:
        path: Folder or file of the data, in any layout that rungwise inspect recognises.
        train: Splits to learn from.
        validation: Split that chooses between models.
        key: Members of tar archives go together by their names to the first dot, or (stem) to the last.
        layout: Read the data as this layout, whatever else lies there; empty recognises it.
        join_restval: Count COCO's restval pictures as training pictures.
    """

    __pydantic_config__ = STRICT

    path: str = ""
    train: tuple[str, ...] = ("train",)
    validation: str = "val"
    key: Key = "dot"
    layout: str = ""
    join_restval: bool = False
