"""Maintenance of an index without its model: ``rungwise index`` with compact, export, backup or restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import tyro

from rungwise.cli.frame import IndexFolder, parse
from rungwise.core import UserError, summary
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER, require_writable_folder
from rungwise.core.network import address_of
from rungwise.core.text import idle_beside
from rungwise.jobs import say


@dataclass
class CompactIndex:
    """Free the place of pictures that are gone, and put in order what speeds up a search.

    Versions that somebody may still read stay for an hour, which is said. In Milvus, earlier generations of the index
    go, too.
    """

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


@dataclass
class BackupIndex:
    """Copy an index, with grades, favourites and calibration, into a folder.

    The index may be searched, served and updated meanwhile: the backup is of one state of it. It can be restored to a
    store of any kind. Copy it to another machine, and try it: rungwise index restore BACKUP --check.

    Attributes:
        out: Folder of the backup. It appears once it is whole.
        overwrite: Replace the backup that stands there, once the new one is whole.
    """

    index: IndexFolder
    out: Path = field(metadata=WRITTEN_FOLDER)
    overwrite: bool = False


@dataclass
class RestoreIndex:
    """Make an index of a backup that rungwise index backup wrote.

    Attributes:
        backup: Folder of the backup.
        out: Folder or address of the index. It appears once it is whole.
        store: Which store keeps the rows. auto takes the kind of the backup, where the place can have it; others are
            lance, exact, milvus, and stores of your own.
        overwrite: Replace the index that stands there, once the new one is whole.
        check: Compare checksums and read all rows, and write nothing.
    """

    backup: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="BACKUP")]
    out: Path | None = field(default=None, metadata=WRITTEN_FOLDER)
    store: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    overwrite: bool = False
    check: bool = False

    IDLE = (idle_beside("out store overwrite", "check", remedy="leave one of them out: {check} writes nothing"),)


def compact(arguments: list[str]) -> int:
    """Compact an index, and print the freed space."""
    asked = parse(CompactIndex, arguments, "rungwise index compact", examples=("rungwise index compact photos.index",))
    from rungwise.index import Index
    from rungwise.index.maintenance import compact_index

    if not address_of(asked.index):
        require_writable_folder(asked.index)
    done = compact_index(asked.index)
    say(f"{done.pictures} pictures: {asked.index}")
    for line in done.lines():
        say(line)
    facts = Index.open(asked.index).picture_store.about()
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


def backup(arguments: list[str]) -> int:
    """Back an index up, and print what the backup holds."""
    asked = parse(
        BackupIndex,
        arguments,
        "rungwise index backup",
        examples=("rungwise index backup photos.index --out backups/monday",),
    )
    from rungwise.index.maintenance import backup_index

    done = backup_index(asked.index, asked.out, overwrite=asked.overwrite)
    say(f"{done.pictures} pictures, {done.captions} captions, as they were at {done.taken}: {asked.out}")
    if done.thumbnails:
        say(f"{done.thumbnails} small copies of pictures")
    say(f"next: rungwise index restore {asked.out} --check")
    return 0


def restore(arguments: list[str]) -> int:
    """Restore an index from its backup, or check the backup, and print what was done."""
    asked = parse(
        RestoreIndex,
        arguments,
        "rungwise index restore",
        examples=(
            "rungwise index restore backups/monday --out photos.index",
            "rungwise index restore backups/monday --check",
        ),
    )
    from rungwise.index.maintenance import restore_index, verify_backup

    if asked.check:
        found = list(verify_backup(asked.backup))
        for check in found:
            say(str(check))
        say(summary(found))
        return 2 if any(check.wrong for check in found) else 0
    if asked.out is None:
        raise UserError("name the place of the index: --out; or --check, which writes nothing")
    done = restore_index(asked.backup, asked.out, store=asked.store, overwrite=asked.overwrite)
    say(f"{done.pictures} pictures, {done.captions} captions restored to a store {done.store}: {asked.out}")
    if done.moved:
        say("the pictures are looked for where they were; the next update reads each of them once, and encodes none")
    if done.left:
        say(f"kept in folders only, and so left in the backup: {', '.join(done.left)}")
    return 0


COMMANDS: Mapping[str, Callable[[list[str]], int]] = MappingProxyType(
    {"backup": backup, "compact": compact, "export": export, "restore": restore}
)
"""Functions by the word after ``rungwise index``; a folder of such a name is given as ``./compact``."""
