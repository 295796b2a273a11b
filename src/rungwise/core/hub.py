"""Models of the Hugging Face hub as folders of this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rungwise.core.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def hub_folder(name: str, patterns: Sequence[str]) -> Path:
    """The folder where a repository of the hub is kept on this machine; what is missing there is fetched.

    Args:
        name: Of the repository, such as ``"someone/model"``.
        patterns: Of the files that are wanted, as shells write them; no others are fetched.

    Raises:
        UserError: If the name is that of no repository, or the files cannot be had. A name that looks like a path of
            this machine is refused without asking the network.

    >>> hub_folder("./runs/model", ["*.json"])
    Traceback (most recent call last):
    rungwise.core.errors.UserError: ./runs/model: no such folder; correct the path
    """
    if _looks_like_a_path(name):
        raise UserError(f"{name}: no such folder; correct the path")
    from huggingface_hub import snapshot_download  # slow to load, and folders do not need it
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(patterns)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{name}: no such folder, and no model of that name could be fetched ({reason})") from error


def _looks_like_a_path(name: str) -> bool:
    """Whether no repository has such a name, or its first part is a folder that stands here."""
    first = name.split("/")[0]
    return not _NAME.fullmatch(name) or ("/" in name and Path(first).is_dir())
