"""A sheet of pictures with their captions, drawn in whatever font of this system has the captions' characters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.output import whole_characters
from rungwise.data._collection import ImageCaptions
from rungwise.data.pictures._decoding import small_image

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_LONGEST = 1000
_SIDE, _MARGIN, _TEXT_HEIGHT, _FONT_SIZE, _LINES = 200, 10, 66, 13, 4

# Files that Pillow finds by name where Linux, macOS or Windows keep their fonts; those of many scripts come first.
_FONT_FILES = (
    "DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf", "arial.ttf", "Arial.ttf",
    "LiberationSans-Regular.ttf", "FreeSans.ttf", "NotoSansCJK-Regular.ttc", "PingFang.ttc", "msyh.ttc",
)  # fmt: skip
# Never assigned to a character, so every font draws its sign for a missing one.
_UNASSIGNED = "\U0010ffff"


def contact_sheet(data: ImageCaptions, path: Path | str, *, columns: int = 6, rows: int = 4, seed: int = 0) -> int:
    """Write a PNG with some pictures of a collection and the first caption of each (its id where it has none).

    The font is DejaVu Sans or another one of this system that has the characters of the captions, else Pillow's own,
    which has English letters only.

    Args:
        data: The collection.
        path: File to write.
        columns: Number of pictures side by side.
        rows: Number of rows of pictures.
        seed: Seed of the choice of pictures, which keep the collection's order.

    Returns:
        Number of different characters of the captions shown that the font lacks; a box stands for each.
    """
    if not data.paths:
        raise UserError(f"{data.name}: has no picture files to show; a contact sheet needs a collection with pictures")
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(len(data), min(len(data), columns * rows), replace=False))
    of_image = data.captions_of_image
    texts = [
        _shown(data.captions[of_image[image][0]] if of_image[image].size else data.image_ids[image]) for image in chosen
    ]
    font, lacking = _font_for("".join(texts))
    across, down = _SIDE + _MARGIN, _SIDE + _TEXT_HEIGHT + _MARGIN
    used = -(-len(chosen) // columns)
    sheet = Image.new("RGB", (columns * across + _MARGIN, used * down + _MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    for place, (image, text) in enumerate(zip(chosen.tolist(), texts, strict=True)):
        left, top = _MARGIN + place % columns * across, _MARGIN + place // columns * down
        try:
            picture = small_image(data.paths[image], _SIDE)
            sheet.paste(picture, (left + (_SIDE - picture.width) // 2, top + (_SIDE - picture.height) // 2))
        except UserError:
            draw.rectangle((left, top, left + _SIDE, top + _SIDE), fill="lightgrey")
            draw.text((left + _SIDE / 2, top + _SIDE / 2), "unreadable", "black", font, anchor="mm")
        draw.multiline_text((left, top + _SIDE + 3), "\n".join(_wrapped(text, font)), "black", font, spacing=2)
    with replacing(Path(path)) as draft:
        sheet.save(draft, "PNG")
    return lacking


def _shown(text: str) -> str:
    """The part of a text that can fit, without characters that a font cannot take."""
    return whole_characters(" ".join(text[:_LONGEST].replace("\0", " ").split()))


def _font_for(text: str) -> tuple[Font, int]:
    """The installed font that lacks the fewest characters of a text, and the number of those."""
    characters = {character for character in text if not character.isspace()}
    fewest: tuple[Font, int] | None = None
    for font in _fonts():
        missing = bytes(font.getmask(_UNASSIGNED))
        lacking = sum(bytes(font.getmask(character)) == missing for character in characters)
        if fewest is None or lacking < fewest[1]:
            fewest = font, lacking
        if not lacking:
            break
    assert fewest is not None
    return fewest


def _fonts() -> Iterator[Font]:
    files: list[str | Path] = [*_FONT_FILES, *_font_of_matplotlib()]
    for file in files:
        # Pillow raises this for a font that this system does not have.
        with suppress(OSError):
            yield ImageFont.truetype(file, _FONT_SIZE)
    yield ImageFont.load_default(_FONT_SIZE)


def _font_of_matplotlib() -> list[Path]:
    package = find_spec("matplotlib")
    if package is None or package.origin is None:
        return []
    return [Path(package.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"]


def _wrapped(text: str, font: Font) -> list[str]:
    """Lines no wider than a picture, as many as fit; an ellipsis ends a text that is cut."""
    fitting = max(1, int(_SIDE / max(font.getlength(text) / max(len(text), 1), 1)))
    while True:
        lines = textwrap.wrap(text, fitting, max_lines=_LINES, placeholder=" …")
        if fitting <= 2 or all(font.getlength(line) <= _SIDE for line in lines):
            return lines
        fitting -= 1
