"""What a room exports: the names that its ``__init__.pyi`` lists, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

explainers: list[Callable[[ImportError, str], ImportError | None]] = []
"""What makes a sentence of a failed import of a name; the ground floor adds it, since this module may not import it."""


def exporting(room: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__all__``, the ``__getattr__`` and the ``__dir__`` of a room.

    So a room exports what needs torch without loading torch. The list stands in one place, which type checkers read
    too. A name is looked up in its module each time, so that one that is replaced there is found replaced.

    Args:
        room: Dotted name of the room.
        file: Path of its ``__init__.py``. Beside it lies ``__init__.pyi``, each line of which reads
            ``from ._items import Item as Item``.
    """
    lines = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    places = {words[5]: (words[1], words[3]) for words in map(str.split, lines)}
    names = sorted(places)

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, there = places[name]
        try:
            return getattr(import_module(module, room), there)
        except ModuleNotFoundError as error:
            for explain in explainers:
                if (said := explain(error, f"{room}.{name}")) is not None:
                    raise said from error
            raise

    return names, load, lambda: names
