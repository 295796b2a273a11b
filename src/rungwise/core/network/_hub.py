"""Models of the Hugging Face hub as folders of this machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from rungwise.core._errors import UserError

_PATIENCE = 10.0
"""Seconds within which the hub must answer."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def hub_folder(name: str, patterns: Sequence[str], prefix: str = "") -> Path:
    """The local folder of a repository of the hub; missing files are fetched.

    Args:
        name: Name of the repository, such as ``"someone/model"``.
        patterns: Patterns of the wanted files, as shells write them; no others are fetched.
        prefix: Prefix that marks such a folder, as in ``hf:FOLDER``; for messages.

    Raises:
        UserError: If no repository can have that name, or the files cannot be fetched. A name that looks like a path of
            this machine is refused without asking the network.

    >>> hub_folder("./runs/model", ["*.json"])
    Traceback (most recent call last):
    rungwise.core.UserError: ./runs/model: no such folder; correct the path
    """
    if _looks_like_a_path(name):
        raise UserError(f"{prefix}{name}: no such folder; correct the path")
    from huggingface_hub import HfApi, snapshot_download  # slow to load, and folders do not need it

    wanted = list(patterns)
    try:
        try:
            # The download asks the same, but has no patience that ends: where a wall swallows packets it waits minutes.
            newest = HfApi().repo_info(name, timeout=_PATIENCE).sha
        except Exception as error:
            return _kept(name, wanted, error)
        return Path(snapshot_download(name, allow_patterns=wanted, revision=newest))
    except MemoryError:
        raise
    except Exception as error:  # of the hub, of the network and of whichever library speaks to it
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].removeprefix("Got: ").rstrip(".")[:200]
        raise UserError(
            f"{prefix}{name}: no such folder, and no model of that name could be fetched ({reason}); on a connected"
            f" machine run: {fetching(name, patterns)}; then copy that folder here and give it as"
            f" {prefix}{folder_of(name)}"
        ) from error


def _kept(name: str, patterns: list[str], error: Exception) -> Path:
    """The local copy of a repository, where the hub does not answer; without one, the error is raised."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=True))
    except Exception:
        raise error from None


def fetching(name: str, patterns: Sequence[str]) -> str:
    """The command that fetches a repository into a folder.

    >>> fetching("someone/model", ["*.json"])
    "hf download someone/model --include '*.json' --local-dir model"
    """
    wanted = "".join(f" --include {shlex.quote(pattern)}" for pattern in patterns)
    return f"hf download {name}{wanted} --local-dir {folder_of(name)}"


def folder_of(name: str) -> str:
    """Folder name in the command of :func:`fetching`."""
    return name.rsplit("/", 1)[-1]


def _looks_like_a_path(name: str) -> bool:
    """Whether no repository can have such a name, or its first part is a folder here."""
    first = name.split("/")[0]
    return not _NAME.fullmatch(name) or ("/" in name and Path(first).is_dir())
