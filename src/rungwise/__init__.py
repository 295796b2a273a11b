"""rungwise: image-text retrieval by degrees of relevance."""

from __future__ import annotations

from rungwise.core.network import switch_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rungwise.core.version import __version__
    from rungwise.data import ImageCaptions as Collection
    from rungwise.data import read
    from rungwise.evaluation import Comparison, Result
    from rungwise.index import Answer, Index
    from rungwise.jobs import (
        Run,
        build_index,
        calibrate,
        compare,
        degrees,
        evaluate,
        load,
        open_index,
        plot,
        search,
        study,
        table,
        train,
    )

_PLACES = {
    "__version__": ("core.version", "__version__"),
    "Answer": ("index", "Answer"),
    "Collection": ("data", "ImageCaptions"),
    "Comparison": ("evaluation", "Comparison"),
    "Index": ("index", "Index"),
    "Result": ("evaluation", "Result"),
    "Run": ("jobs", "Run"),
    "build_index": ("jobs", "build_index"),
    "calibrate": ("jobs", "calibrate"),
    "compare": ("jobs", "compare"),
    "degrees": ("jobs", "degrees"),
    "evaluate": ("jobs", "evaluate"),
    "load": ("jobs", "load"),
    "open_index": ("jobs", "open_index"),
    "plot": ("jobs", "plot"),
    "read": ("data", "read"),
    "search": ("jobs", "search"),
    "study": ("jobs", "study"),
    "table": ("jobs", "table"),
    "train": ("jobs", "train"),
}
"""Room and name there of what the package exports."""

__all__ = [  # noqa: PLE0604, RUF100 - a list that type checkers read
    "Answer",
    "Collection",
    "Comparison",
    "Index",
    "Result",
    "Run",
    "__version__",
    "build_index",
    "calibrate",
    "compare",
    "degrees",
    "evaluate",
    "load",
    "open_index",
    "plot",
    "read",
    "search",
    "study",
    "table",
    "train",
]

switch_off()


def __getattr__(name: str) -> Any:
    # Most of this loads torch or a store; a look at the version should not wait for it. The command line is loaded
    # through here, and can answer an interrupt only once that is done.
    if name not in _PLACES:
        raise AttributeError(f"module 'rungwise' has no attribute {name!r}")
    from importlib import import_module

    room, there = _PLACES[name]
    return getattr(import_module(f"rungwise.{room}"), there)


def __dir__() -> list[str]:
    return sorted(__all__)
