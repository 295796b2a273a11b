"""An index of drawn rows, whose searches cost what those of so many real ones do."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index
from rungwise.models import DualEncoder, EncodedImages
from rungwise.similarity import Cosine, unit_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS = 10_000
_WORDS_OF_CAPTION = 12


class DrawnModel(DualEncoder):
    """A model whose texts have drawn vectors, the same for the same text; pictures are given as rows of features.

    Args:
        dimension: Dimension D of its vectors.
    """

    similarity = Cosine()
    fingerprint = "d1ce" * 16
    dimension = 0

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
        """The rows of features, with length one."""
        vectors = unit_rows(np.asarray(pictures[:], np.float32))
        if progress:
            progress(len(vectors))
        return EncodedImages(vectors, np.arange(len(vectors)))

    def encode_text(self, texts: Any) -> NDArray[np.float32]:
        """(texts, D) drawn vectors."""
        draws = (np.random.default_rng(zlib.crc32(text.encode())) for text in texts)
        return unit_rows(np.stack([draw.standard_normal(self.dimension, np.float32) for draw in draws]))


def drawn_index(folder: Path, pictures: int, captions: float, dimension: int) -> tuple[Index, DrawnModel]:
    """Make an index of drawn vectors and captions, in LanceDB's store.

    Args:
        folder: Folder of the index.
        pictures: Number of pictures.
        captions: Number of captions of a picture, in the mean.
        dimension: Dimension D of the vectors.

    Returns:
        The index, and the model that searches it.
    """
    draw = np.random.default_rng(0)
    model = DrawnModel(dimension)
    count = round(pictures * captions)
    data = ImageCaptions(
        tuple(f"{number}.jpg" for number in range(pictures)),
        drawn_texts(count),
        np.sort(draw.integers(0, pictures, count)),
        features=FeatureRows(draw.standard_normal((pictures, dimension), np.float32)),
        name="drawn",
    )
    return Index.build(data, model, folder, store="lance"), model


def drawn_texts(count: int, seed: int = 1) -> tuple[str, ...]:
    """Texts of a dozen drawn words, some of which are frequent and most rare, as in a language."""
    draw = np.random.default_rng(seed)
    numbers = np.minimum(draw.zipf(1.2, (count, _WORDS_OF_CAPTION)), _WORDS)
    return tuple(" ".join(f"w{number}" for number in row) for row in numbers.tolist())
