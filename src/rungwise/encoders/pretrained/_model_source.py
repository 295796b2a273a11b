"""Names of published models: ``hf:``, ``open_clip:`` or ``st:``, and a folder or a name on the hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rungwise.core import UserError, is_regular, read_json, require
from rungwise.core.network import hub_folder

Library = Literal["hf", "open_clip", "st"]

_PATTERNS = ("*.json", "*.txt", "*.model", "model*.safetensors")
"""Files that are downloaded from a repository; for sentence-transformers, from the folder of its first module too."""

_EXTRAS: dict[str, tuple[str, str]] = {
    "hf": ("transformers", "hf"),
    "st": ("transformers", "hf"),
    "open_clip": ("open_clip", "open-clip"),
}
"""Library that builds the networks, and the extra that installs it."""


@dataclass(frozen=True)
class ModelSource:
    """A published model.

    Attributes:
        library: Library whose format the model has.
        place: A folder, or a name on the hub.

    >>> ModelSource.parse("hf:google/siglip2-base-patch32-256")
    ModelSource(library='hf', place='google/siglip2-base-patch32-256')
    """

    library: Library
    place: str

    @classmethod
    def parse(cls, text: str) -> ModelSource | None:
        """Parse a text with one of the prefixes; None for any other text."""
        prefix, colon, place = text.partition(":")
        for library in get_args(Library):
            if colon and prefix == library:
                if not place:
                    raise UserError(f"{text}: name a folder or a model after {prefix}:")
                return cls(library, place)
        return None

    @classmethod
    def named(cls, text: Path | str) -> ModelSource | None:
        """Parse a text with a prefix, or the path of a folder of one of the libraries; None for others."""
        return cls.parse(str(text)) or (cls.of_folder(Path(text)) if Path(text).is_dir() else None)

    @classmethod
    def of_folder(cls, folder: Path) -> ModelSource | None:
        """Recognise the library of a folder by its files; None for a folder of none of them."""
        if is_regular(folder / "open_clip_config.json"):
            return cls("open_clip", str(folder))
        if is_regular(folder / "modules.json"):
            return cls("st", str(folder))
        config = folder / "config.json"
        try:
            said = read_json(config) if is_regular(config) else None
        except UserError:  # which whoever reads the folder for good will say
            return None
        return cls("hf", str(folder)) if isinstance(said, dict) and "model_type" in said else None

    def __str__(self) -> str:
        return f"{self.library}:{self.place}"

    @property
    def folder(self) -> Path | None:
        """Local folder of the model; None for a name on the hub."""
        path = Path(self.place).expanduser()
        return path if path.is_dir() else None

    def fetched(self) -> Path:
        """The folder of a model of transformers or sentence-transformers, downloaded if ``place`` is a name."""
        if (here := self.folder) is not None:
            return here
        prefix = f"{self.library}:"
        if self.library != "st":
            return hub_folder(self.place, _PATTERNS, prefix=prefix)
        own = re.fullmatch(r"[\w.-]+", self.place) and self.place[0] != "."
        name = f"sentence-transformers/{self.place}" if own else self.place  # as that library takes short names
        return hub_folder(name, (*_PATTERNS, *(f"0_*/{one}" for one in _PATTERNS)), prefix=prefix)

    def require_library(self) -> None:
        """Raise UserError, naming what to install, if the library that builds the networks is missing."""
        library, extra = _EXTRAS[self.library]
        require(library, f"{self}", extra=extra)

    def resolved(self) -> ModelSource:
        """The source for a program that runs in another folder; names are unchanged."""
        return self if self.folder is None else ModelSource(self.library, str(self.folder.resolve()))
