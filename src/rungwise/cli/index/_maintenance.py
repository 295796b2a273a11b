"""``rungwise index compact`` and ``rungwise index export``: maintenance of an index without its model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from rungwise.cli.frame import IndexFolder, parse, say
from rungwise.core.disk.folders import WRITTEN_FILE, require_writable_folder
from rungwise.core.network import address_of


@dataclass
class CompactIndex:
    """Free the place of pictures that are gone, and put in order what speeds up a search."""

    index: IndexFolder


@dataclass
class ExportIndex:
    """Write ids, paths, captions, columns and vectors of all pictures into one file.

    Attributes:
        out: File to write: .parquet or .npy. An .npy file holds the vectors alone, and a .jsonl file beside it the
            rest, a line for each.
    """

    index: IndexFolder
    out: Path = field(metadata=WRITTEN_FILE)


def compact(arguments: list[str]) -> int:
    """Compact an index, and print the freed space."""
    asked = parse(CompactIndex, arguments, "rungwise index compact", examples=("rungwise index compact photos.index",))
    from rungwise.index import Index

    if not address_of(asked.index):
        require_writable_folder(asked.index)
    index = Index.open(asked.index)
    before = _bytes_below(asked.index)
    index.compact()
    after = _bytes_below(asked.index)
    facts = index.picture_store.about()
    say(f"{len(index)} pictures, {before / 2**20:.1f} MiB before, {after / 2**20:.1f} MiB now: {asked.index}")
    say(f"store: {facts.kind}, {'exact' if facts.exact else 'approximate'}: {facts.why}")
    return 0


def export(arguments: list[str]) -> int:
    """Export an index, and print the number of rows."""
    asked = parse(
        ExportIndex,
        arguments,
        "rungwise index export",
        examples=("rungwise index export photos.index --out photos.parquet",),
    )
    from rungwise.index import Index
    from rungwise.index.maintenance import export as export_rows
    from rungwise.index.maintenance import require_writable_export

    require_writable_export(asked.out)
    index = Index.open(asked.index)
    count = export_rows(index, asked.out)
    say(f"{count} pictures, vectors of dimension {index.manifest.dimension}: {asked.out}")
    return 0


COMMANDS: Mapping[str, Callable[[list[str]], int]] = MappingProxyType({"compact": compact, "export": export})
"""Functions by the word after ``rungwise index``; a folder of such a name is given as ``./compact``."""


def _bytes_below(folder: Path) -> int:
    return sum((Path(place) / name).stat().st_size for place, _, names in os.walk(folder) for name in names)
