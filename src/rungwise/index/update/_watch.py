"""Noticing that files below some folders were made, changed or removed, and following them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rungwise.core import UserError, with_options
from rungwise.core.output import printable
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import IGNORE_FILE
from rungwise.index.update._update import Changes

_GROUPED_MS, _QUIET_MS, _WAIT_MS = 2000, 200, 2000
_LOOKS_BETWEEN = 30
"""Number of waits after which something may have changed, where the system's watch ends at a name that is no text."""

_log = logging.getLogger(__name__)


def follow(
    folders: Sequence[Path],
    without: Path,
    update: Callable[[], tuple[ImageCaptions, Changes]],
    say: Callable[[str], object],
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Update an index whenever something changes below some folders, until ``ended`` says so or an exception ends it.

    What goes wrong, what is withheld from removal, and what is newly left out of the collection is said once.

    Args:
        folders: Folders that are watched with all that is below them.
        without: Folder of the index, whose changes do not count.
        update: Brings the index up to date; gives the collection, and what was changed.
        say: Called with a line for each set of changes, and for each new error.
        ended: Asked every few seconds.
    """
    due, complaint = True, ""  # what changed before the watch began is looked for first
    told: set[Issue] | None = None
    for changed in changes_below(folders, without):
        if ended():
            return
        if not (due or changed):
            continue
        try:
            data, changes = update()
        except (UserError, OSError) as error:
            due = True
            if str(error) != complaint:
                complaint = str(error)
                say(with_options(error) if isinstance(error, UserError) else complaint)
            continue
        due = False
        if changes:
            unread = f", {len(changes.issues)} cannot be read" if changes.issues else ""
            say(f"{changes} ({changes.encoded} encoded){unread}")
        for issue in data.issues:
            if told is not None and issue not in told:
                say(f"{issue.kind}: {issue.where} ({issue.detail})" if issue.detail else f"{issue.kind}: {issue.where}")
        told = set(data.issues)
        kept = changes.withheld_line() if changes.withheld else ""
        if kept and kept != complaint:
            say(kept)
        complaint = kept


def changes_below(
    folders: Sequence[Path],
    without: Path,
    *,
    watch: Callable[..., Iterable[set[Any]]] | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[bool]:
    """True whenever something changed, False now and then where nothing did, until the caller stops.

    Changes that come together are told together, and changes while the caller is busy afterwards. Hidden files do not
    count, except those that say what is left out. A folder that goes away is watched again once it is back. Where a
    name below is no text, which ends the watch, something may have changed about every minute.

    Args:
        folders: Folders that are watched with all that is below them.
        without: A file or folder whose changes do not count, such as the index that the caller writes.
        watch: Gives changes as ``watchfiles.watch`` does, which it is if None.
        pause: Waits the given seconds before folders that are all away are looked for again.
    """
    watch = watch or _watch()
    roots, ours = [Path(os.path.realpath(one)) for one in folders], Path(os.path.realpath(without))

    def counts(_: Any, name: str) -> bool:
        path = Path(name)
        inner = next((path.relative_to(one).parts for one in roots if path.is_relative_to(one)), path.parts[-1:])
        hidden = any(part.startswith(".") for part in inner) and path.name != IGNORE_FILE
        return not (path.is_relative_to(ours) or hidden)

    again = blind = False
    while True:
        there = [one for one in roots if one.is_dir()]
        try:
            if not there:
                raise FileNotFoundError
            for changes in watch(
                *there,
                watch_filter=counts,
                debounce=_GROUPED_MS,
                step=_QUIET_MS,
                rust_timeout=_WAIT_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield again or bool(changes)
                # A folder that was moved is no longer watched, also where it has come back meanwhile.
                moved = any(Path(name) in roots for _, name in changes)
                again = moved or [one for one in roots if one.is_dir()] != there
                if again:
                    break
        except FileNotFoundError:
            again = True
            pause(_WAIT_MS / 1000)
            yield False
        except RuntimeError as error:  # of watchfiles, for a name below that is no text
            if not blind:
                _log.warning("%s; changes are looked for now and then instead", printable(str(error)))
            blind = True
            for _ in range(_LOOKS_BETWEEN):
                pause(_WAIT_MS / 1000)
                yield False
            yield True


def _watch() -> Callable[..., Iterable[set[Any]]]:
    from watchfiles import watch  # which few commands need

    return watch
