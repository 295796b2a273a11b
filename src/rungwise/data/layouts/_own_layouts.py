"""Layouts of a person's own: readers by the name of their layout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rungwise.core import UserError
from rungwise.data._collection import ImageCaptions
from rungwise.data.layouts._folder import folder_name
from rungwise.parts import Registry, concrete_below


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
        UserError: If there is no such layout, or what its reader gives is no collection.
    """
    data = READERS.named(layout)().read(path)
    if not isinstance(data, ImageCaptions):
        raise UserError(f"{path}: the reader of the layout {layout!r} gives {type(data).__name__}, not ImageCaptions")
    return replace(data, layout=layout, name=data.name if data.name != _UNNAMED else folder_name(path))


def recognised_as(path: Path) -> str | None:
    """Name of the imported layout of a folder or file that none of ours recognises; None where none does either."""
    return next((name for name, reader in READERS.known().items() if reader().recognises(path)), None)


_UNNAMED = ImageCaptions.name
