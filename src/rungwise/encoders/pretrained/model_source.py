"""What names a published model: ``hf:``, ``open_clip:`` or ``st:``, and a folder or a name on the hub."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rungwise.core.errors import UserError
from rungwise.core.network.hub import hub_folder
from rungwise.core.untrusted_files import is_regular, read_json

Library = Literal["hf", "open_clip", "st"]

_PATTERNS = ("*.json", "*.txt", "*.model", "model*.safetensors")
"""What is fetched of a repository of transformers; of sentence-transformers, in the folder of its first module too."""

_EXTRAS: dict[str, tuple[str, str]] = {
    "hf": ("transformers", "hf"),
    "st": ("transformers", "hf"),
    "open_clip": ("open_clip", "open-clip"),
}
"""Which library makes the networks, and the extra that installs it."""


@dataclass(frozen=True)
class ModelSource:
    """A published model.

    Attributes:
        library: Whose format it has.
        place: A folder, or a name.

    >>> ModelSource.parse("hf:google/siglip2-base-patch32-256")
    ModelSource(library='hf', place='google/siglip2-base-patch32-256')
    >>> ModelSource.parse("run/model") is None
    True
    """

    library: Library
    place: str

    @classmethod
    def parse(cls, text: str) -> ModelSource | None:
        """What a text with one of the prefixes means; None for any other text.

        Raises:
            UserError: If nothing follows the prefix.
        """
        prefix, colon, place = text.partition(":")
        for library in get_args(Library):
            if colon and prefix == library:
                if not place:
                    raise UserError(f"{text}: name a folder or a model after {prefix}:")
                return cls(library, place)
        return None

    @classmethod
    def named(cls, text: Path | str) -> ModelSource | None:
        """What a text means as a model: one of the prefixes, or a folder of one of the libraries; None for others.

        >>> ModelSource.named("open_clip:ViT-B-32/laion2b_s34b_b79k")
        ModelSource(library='open_clip', place='ViT-B-32/laion2b_s34b_b79k')
        """
        return cls.parse(str(text)) or (cls.of_folder(Path(text)) if Path(text).is_dir() else None)

    @classmethod
    def of_folder(cls, folder: Path) -> ModelSource | None:
        """A folder without a prefix, whose files tell the library; None for a folder of none of them."""
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
        """Where it is on this machine, if a folder is meant."""
        path = Path(self.place).expanduser()
        return path if path.is_dir() else None

    def fetched(self) -> Path:
        """The folder of a model of transformers or sentence-transformers, which is fetched if it is a name.

        Raises:
            UserError: If it cannot be had.
        """
        if (here := self.folder) is not None:
            return here
        prefix = f"{self.library}:"
        if self.library != "st":
            return hub_folder(self.place, _PATTERNS, prefix=prefix)
        own = re.fullmatch(r"[\w.-]+", self.place) and self.place[0] != "."
        name = f"sentence-transformers/{self.place}" if own else self.place  # as that library takes short names
        return hub_folder(name, (*_PATTERNS, *(f"0_*/{one}" for one in _PATTERNS)), prefix=prefix)

    def require_library(self) -> None:
        """Refuse to go on where the library that makes its networks is not installed.

        Raises:
            UserError: Saying what to install.
        """
        require(*_EXTRAS[self.library], f"{self}")

    def resolved(self) -> ModelSource:
        """The same for a program that runs in another folder; names stay as they are."""
        return self if self.folder is None else ModelSource(self.library, str(self.folder.resolve()))


def require(module: str, extra: str, what: str) -> None:
    """Refuse to go on without a library.

    Raises:
        UserError: Saying what to install.

    >>> require("no_such_library", "hf", "a model of transformers")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: a model of transformers needs no_such_library; run: pip install 'rungwise[hf]'
    """
    if importlib.util.find_spec(module) is None:
        raise UserError(f"{what} needs {module}; run: pip install 'rungwise[{extra}]'")
