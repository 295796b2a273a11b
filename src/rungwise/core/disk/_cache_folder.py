"""The cache folder."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

from rungwise.core._errors import RungwiseWarning, UserError
from rungwise.core.disk.folders import require_writable_folder

_NAMED = "RUNGWISE_CACHE"


def default_cache() -> Path:
    """The folder of everything that is cached: ``RUNGWISE_CACHE``, or the system's cache folder."""
    return Path(os.environ.get(_NAMED) or user_cache_path("rungwise"))


def user_cache_path(name: str) -> Path:
    """The folder where a program of this name caches, by the customs of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / name / "Cache"
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser() / name
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache").expanduser() / name


def usable_cache(named: Path | None = None) -> Path:
    """A cache folder that can be written: the named one, or the default one.

    A folder that the user named, here or by ``RUNGWISE_CACHE``, is used or refused. Where the system's cannot be
    written, a temporary folder takes its place, with a warning, and is removed when the process ends.

    Raises:
        UserError: If the folder that was named cannot be written.

    >>> usable_cache(Path("/proc/cache"))
    Traceback (most recent call last):
    rungwise.core.UserError: /proc/cache: cannot be written here (No such file or directory); choose another...
    """
    if named is not None:
        _try(named)
        return named
    default = default_cache()
    if os.environ.get(_NAMED):
        try:
            _try(default)
        except UserError as error:
            raise UserError(f"{_NAMED}={error}, or unset {_NAMED}") from error
        return default
    try:
        if not default.is_absolute():  # where nobody knows the user's home
            raise UserError(f"{default}: there is no home folder")
        _try(default)
    except UserError as error:
        return _instead(str(error).partition(";")[0])
    return default


@cache
def _try(folder: Path) -> None:
    """Check that a folder can be written, once for each folder."""
    require_writable_folder(folder)


@cache
def _instead(why: str) -> Path:
    """A temporary folder that is removed when the process ends; made, with a warning, once."""
    global _temporary
    line = f"{why}; nothing is cached beyond this run; {_NAMED} names another folder"
    warnings.warn(line, RungwiseWarning, stacklevel=3)
    _temporary = tempfile.TemporaryDirectory(prefix="rungwise-cache-", ignore_cleanup_errors=True)
    return Path(_temporary.name)


_temporary: tempfile.TemporaryDirectory[str] | None = None
