"""A model without weights for tests of search: a picture is its colours, a text the colours it names."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.data.pictures import load_picture
from rungwise.index import Index, Searcher
from rungwise.models import DualEncoder, EncodedImages
from rungwise.models._contracts import Pictures
from rungwise.similarity import Cosine, Similarity

COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 170, 70),
    "blue": (40, 80, 220),
    "yellow": (230, 210, 40),
    "rot": (220, 40, 40),
    "赤": (220, 40, 40),
}


class ColourModel(DualEncoder):
    """Counts in ``hashed`` how often its fingerprint was computed."""

    def __init__(
        self, fingerprint: str = "c0ffee" * 10, dimension: int = 3, similarity: Similarity | None = None
    ) -> None:
        self.identity = fingerprint
        self.hashed = 0
        self._dimension = dimension
        self._similarity = similarity or Cosine()

    @property
    def fingerprint(self) -> str:
        self.hashed += 1
        return self.identity

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def similarity(self) -> Similarity:
        return self._similarity

    def encode_image(
        self, pictures: Pictures, *, progress: Callable[[int], None] | None = None, cache: Path | None = None
    ) -> EncodedImages:
        if isinstance(pictures, FeatureRows):  # of colours
            rows = np.asarray(pictures[:], np.float32) - 128
            return EncodedImages(self._prepared(rows, self._similarity.images), np.arange(len(rows)))
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
        return EncodedImages(self._prepared(rows, self._similarity.images), np.array(kept, np.int64), tuple(issues))

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        named = [[COLOURS[word] for word in text.split() if word in COLOURS] for text in texts]
        rows = np.array([np.mean(some, axis=0) - 128 if some else (1, 1, 1) for some in named], np.float32)
        return self._prepared(rows.reshape(-1, 3), self._similarity.texts)

    @staticmethod
    def _prepared(rows: NDArray[np.float32], prepare: Callable[[Tensor], Tensor]) -> NDArray[np.float32]:
        prepared: NDArray[np.float32] = prepare(torch.from_numpy(rows)).numpy()
        return prepared


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


def colour_searcher(index: Index, fingerprint: str = "c0ffee" * 10) -> Searcher:
    """What a process beside a server calls."""
    return Searcher(index, ColourModel(fingerprint))
