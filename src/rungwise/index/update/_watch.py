"""Noticing that files below a folder were made, changed or removed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_GROUPED_MS, _QUIET_MS, _WAIT_MS = 2000, 200, 2000


def changes_below(
    folder: Path,
    without: Path,
    *,
    watch: Callable[..., Iterable[set[Any]]] | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[bool]:
    """True whenever something changed, False now and then where nothing did, until the caller stops.

    Changes that come together are told together, and changes while the caller is busy afterwards. Hidden files do not
    count, as no collection reads them. A folder that goes away is watched again once it is back.

    Args:
        folder: Folder that is watched with all that is below it.
        without: A file or folder whose changes do not count, such as the index that the caller writes.
        watch: Gives changes as ``watchfiles.watch`` does, which it is if None.
        pause: Waits the given seconds before a folder that is away is looked for again.
    """
    watch = watch or _watch()
    root, ours = Path(os.path.realpath(folder)), Path(os.path.realpath(without))

    def counts(_: Any, name: str) -> bool:
        path = Path(name)
        inner = path.relative_to(root).parts if path.is_relative_to(root) else path.parts[-1:]
        return not (path.is_relative_to(ours) or any(part.startswith(".") for part in inner))

    again = False
    while True:
        try:
            for changes in watch(
                root,
                watch_filter=counts,
                debounce=_GROUPED_MS,
                step=_QUIET_MS,
                rust_timeout=_WAIT_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield again or bool(changes)
                # A folder that was moved is no longer watched, also where it has come back meanwhile.
                again = any(Path(name) == root for _, name in changes) or not root.is_dir()
                if again:
                    break
        except FileNotFoundError:
            again = True
            pause(_WAIT_MS / 1000)
            yield False


def _watch() -> Callable[..., Iterable[set[Any]]]:
    from watchfiles import watch  # which few commands need

    return watch
