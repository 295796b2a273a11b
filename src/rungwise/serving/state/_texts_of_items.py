"""Texts of pictures in which a page looks for phrases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rungwise.index import FACTS, Item


def texts_of(items: Iterable[Item]) -> tuple[list[Sequence[str]], ...]:
    """Texts in which phrases are looked for, of each picture: captions; texts of the user's columns; names of folders.

    Names of files are none of them.
    """
    captions: list[Sequence[str]] = []
    columns: list[Sequence[str]] = []
    folders: list[Sequence[str]] = []
    for item in items:
        captions.append(item.captions)
        own = [value for name, value in item.columns.items() if name not in FACTS]
        columns.append([text for value in own if isinstance(value, str | tuple) for text in _each(value)])
        folders.append(str(item.columns.get("folder", "")).split("/"))
    return captions, columns, folders


def _each(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
