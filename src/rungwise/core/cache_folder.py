"""Where things that are computed once are kept."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def default_cache() -> Path:
    """The folder of everything that is cached: ``RUNGWISE_CACHE``, or the system's cache folder.

    >>> default_cache().is_absolute()
    True
    """
    return Path(os.environ.get("RUNGWISE_CACHE") or user_cache_path("rungwise"))
