"""A model without weights for tests of search: a picture is its colours, a text the colours it names."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.data.pictures import load_picture

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 170, 70),
    "blue": (40, 80, 220),
    "yellow": (230, 210, 40),
    "rot": (220, 40, 40),
    "赤": (220, 40, 40),
}


@dataclass(frozen=True)
class Encoded:
    vectors: NDArray[np.float32]
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...]


@dataclass
class ColourModel:
    fingerprint: str = "c0ffee" * 10
    dimension: int = 3

    def encode_image(
        self, pictures: Sequence[Path | bytes], *, progress: Callable[[int], None] | None = None
    ) -> Encoded:
        vectors, kept, issues = [], [], []
        for position, picture in enumerate(pictures):
            try:
                pixels = load_picture(picture).float()
            except UserError as error:
                issues.append(Issue("unreadable picture", "", str(error)))
            else:
                vectors.append(pixels.mean(dim=(1, 2)).numpy() - 128)
                kept.append(position)
            if progress is not None:
                progress(1)
        rows = np.array(vectors, np.float32).reshape(-1, 3)
        return Encoded(rows, np.array(kept, np.int64), tuple(issues))

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        named = [[COLOURS[word] for word in text.split() if word in COLOURS] for text in texts]
        return np.array([np.mean(some, axis=0) - 128 if some else (1, 1, 1) for some in named], np.float32)

    def similarity(self, images: NDArray[np.float32], texts: NDArray[np.float32]) -> NDArray[np.float32]:
        lengths = np.linalg.norm(images, axis=1)[:, None] * np.linalg.norm(texts, axis=1)
        return np.asarray(images @ texts.T / np.maximum(lengths, 1e-9), np.float32)


def picture_bytes(colour: tuple[int, int, int], form: str = "PNG", size: tuple[int, int] = (40, 30)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, form)
    return file.getvalue()


def colour_pictures(folder: Path, colours: Sequence[str], *, captions: bool = True) -> ImageCaptions:
    """One plain picture for each colour, called ``"0-red"`` and so on, captioned ``"a red square"``."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = tuple(f"{number}-{colour}" for number, colour in enumerate(colours))
    paths = tuple(folder / f"{image_id}.png" for image_id in ids)
    for path, colour in zip(paths, colours, strict=True):
        path.write_bytes(picture_bytes(COLOURS[colour]))
    texts = tuple(f"a {colour} square" for colour in colours) if captions else ()
    return ImageCaptions(ids, texts, np.arange(len(texts)), paths=paths, name="colours")
