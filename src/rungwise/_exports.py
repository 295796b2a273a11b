"""What a room exports: the names that its ``__init__.pyi`` lists, each loaded when it is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def exporting(room: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """The ``__all__`` and the ``__getattr__`` of a room.

    So a room exports what needs torch without loading torch. The list stands in one place, which type checkers read
    too.

    Args:
        room: Its dotted name.
        file: Path of its ``__init__.py``. Beside it lies ``__init__.pyi`` with lines ``from ._items import Item as
            Item``.
    """
    lines = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    places = {words[5]: (words[1], words[3]) for words in map(str.split, lines)}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module, there = places[name]
        found = getattr(import_module(module, room), there)
        vars(sys.modules[room])[name] = found  # from now on it is found without this function
        return found

    return sorted(places), load
