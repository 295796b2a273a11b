"""Readers of layouts of one's own, by the names of these layouts."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rungwise.core import UserError
from rungwise.data._collection import ImageCaptions
from rungwise.data.layouts import folder_name
from rungwise.parts import Registry, concrete_below, failures_of


class CollectionReader(ABC):
    """Base of readers of a layout of your own, which is named once its module is imported.

    A reader takes no arguments when it is made. It is asked for by name (``layout=``, ``--layout``, ``data.layout``).
    Without a name, an imported reader may recognise what none of ours recognises: a folder that is not even one of
    captions, or a file of an unknown kind.

    Attributes:
        layout: Name of the layout, which :attr:`rungwise.data.ImageCaptions.layout` then says.

    >>> class Listed(CollectionReader):
    ...     layout = "listed"
    ...     def read(self, path):
    ...         rows = [line.split("|") for line in (path / "list.txt").read_text().splitlines()]
    ...         paths, captions = zip(*rows)
    ...         return ImageCaptions(paths, captions, range(len(rows)), paths=[path / one for one in paths])
    >>> "listed" in READERS.names()
    True
    """

    layout: ClassVar[str] = ""

    @abstractmethod
    def read(self, path: Path) -> ImageCaptions:
        """The collection of a folder or file.

        Args:
            path: The folder or file, which is there. Text of strangers is read by
                :func:`rungwise.data.files.read_lines`.

        Raises:
            UserError: If it cannot be read as this layout.
        """

    def recognises(self, path: Path) -> bool:
        """Whether a folder or file that none of our layouts recognises is of this layout; by default never."""
        return False


READERS: Registry[CollectionReader] = Registry(
    "readers", "layout", lambda: concrete_below(CollectionReader), lambda reader: reader.layout
)
"""Readers of people's own by the names of their layouts."""


def read_own(layout: str, path: Path) -> ImageCaptions:
    """Read a folder or file as a layout that is none of ours.

    Raises:
        UserError: If there is no such layout, its reader fails, or what it gives is no collection.
    """
    reader = READERS.named(layout)
    with _failures(reader, path):
        data = reader().read(path)
    if not isinstance(data, ImageCaptions):
        raise UserError(f"{path}: the reader of the layout {layout!r} gives {type(data).__name__}, not ImageCaptions")
    return replace(data, layout=layout, name=data.name if data.name != ImageCaptions.name else folder_name(path))


def recognised_as(path: Path) -> str | None:
    """Name of the imported layout of a folder or file that none of ours recognises; None where none does either."""
    for name, reader in READERS.known().items():
        with _failures(reader, path):
            if reader().recognises(path):
                return name
    return None


def _failures(reader: type[CollectionReader], path: Path) -> AbstractContextManager[None]:
    """Context in which an error of a reader's code is one line, so that whoever watches a folder goes on."""
    file = getattr(sys.modules.get(reader.__module__), "__file__", None)
    return failures_of(f"{path}: the reader of the layout {reader.layout!r}", file)
