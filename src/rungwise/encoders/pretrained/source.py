"""Where a published model is: ``hf:``, ``open_clip:`` or ``st:``, and a folder of this machine or a name on the hub.

Nothing is fetched twice, and nothing that could be unpickled. Where a model is neither here nor to be had, one line
says what to fetch, with which command, and where to put it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rungwise.core.errors import UserError
from rungwise.core.hub import hub_folder
from rungwise.encoders.pretrained.towers import ImageHalf, TextHalf, require

Library = Literal["hf", "open_clip", "st"]
_EXTRAS: dict[str, tuple[str, str, str]] = {
    "hf": ("transformers", "hf", "a model of transformers"),
    "st": ("transformers", "hf", "a model of sentence-transformers"),
    "open_clip": ("open_clip", "open-clip", "a model of open_clip"),
}


@dataclass(frozen=True)
class Source:
    """A published model.

    Attributes:
        library: Whose format it has.
        place: A folder, or a name.

    >>> Source.parse("hf:google/siglip2-base-patch32-256")
    Source(library='hf', place='google/siglip2-base-patch32-256')
    >>> Source.parse("run/model") is None
    True
    """

    library: Library
    place: str

    @classmethod
    def parse(cls, text: str) -> Source | None:
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
    def of_folder(cls, folder: Path) -> Source | None:
        """The library whose files a folder holds, told by looking; None for a folder of none."""
        if (folder / "open_clip_config.json").is_file():
            return cls("open_clip", str(folder))
        if (folder / "modules.json").is_file():
            return cls("st", str(folder))
        if (folder / "preprocessor_config.json").is_file() or (folder / "processor_config.json").is_file():
            return cls("hf", str(folder))
        return None

    def __str__(self) -> str:
        return f"{self.library}:{self.place}"

    @property
    def folder(self) -> Path | None:
        """Where it is on this machine, if a folder is meant."""
        path = Path(self.place).expanduser()
        return path if path.is_dir() else None

    def resolved(self) -> Source:
        """The same for a program that runs in another folder; names stay as they are."""
        return self if self.folder is None else Source(self.library, str(self.folder.resolve()))


def open_image(source: str) -> ImageHalf:
    """The image side of a published model.

    Raises:
        UserError: If it cannot be had, is damaged or incomplete, or asks for what is not allowed.
    """
    where = _parsed(source)
    if where.library == "open_clip":
        from rungwise.encoders.pretrained import open_clip

        return open_clip.open_image(where.place)
    from rungwise.encoders.pretrained import sentence_transformers, transformers

    if where.library == "st":
        return transformers.open_image(sentence_transformers.inner(_fetched(where, sentence_transformers.PATTERNS)).folder)
    return transformers.open_image(_fetched(where, transformers.PATTERNS))


def open_text(source: str) -> TextHalf:
    """The text side of a published model, likewise."""
    where = _parsed(source)
    if where.library == "open_clip":
        from rungwise.encoders.pretrained import open_clip

        return open_clip.open_text(where.place)
    from rungwise.encoders.pretrained import sentence_transformers, transformers

    if where.library == "st":
        inner = sentence_transformers.inner(_fetched(where, sentence_transformers.PATTERNS))
        return sentence_transformers.open_text(inner)
    return transformers.open_text(_fetched(where, transformers.PATTERNS))


def _parsed(source: str) -> Source:
    found = Source.parse(source)
    if found is None:
        raise UserError(f"source {source!r}: write hf:, open_clip: or st:, and a folder or a name after it")
    require(*_EXTRAS[found.library])
    return found


def _fetched(source: Source, patterns: tuple[str, ...]) -> Path:
    """The folder of a model, which is fetched if it is a name."""
    return source.folder or hub_folder(source.place, patterns, prefix=f"{source.library}:")
