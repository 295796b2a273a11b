"""A pair scorer without weights whose attention is known: a word that names a colour points to it."""

from __future__ import annotations

import numpy as np

from rungwise.core import UserError
from rungwise.data.files import FeatureRows, Picture
from rungwise.data.pictures import load_array
from rungwise.models import PairScorer
from rungwise.models._contracts import Pictures, Texts, Vectors
from rungwise.similarity import Explanation

GRID = 4


class PointingModel(PairScorer):
    """Regions are a grid of mean colours; what a word has to do with a region is how near its colour comes.

    Args:
        colours: Words, and the (red, green, blue) that they mean.
        boxes: Whether it says where regions lie.
    """

    kind = "pointing"
    fingerprint = "90147" * 10

    def __init__(self, colours: dict[str, tuple[int, int, int]], *, boxes: bool = True) -> None:
        self.colours = colours
        self.boxes = boxes

    @property
    def explains(self) -> bool:
        return True

    def block(self, images: Pictures, captions: Texts) -> Vectors:
        found = [[self._score(self.explain(image, text)) for text in captions] for image in images]
        return np.array(found, np.float32).reshape(len(images), len(captions))

    @staticmethod
    def _score(found: Explanation) -> float:
        return float(found.answers @ found.shares)

    def explain(self, picture: Picture | bytes | FeatureRows, text: str) -> Explanation:
        if not text.strip():
            raise UserError("the text is empty")
        regions = self._regions(picture)
        words = ("", *text.split())
        near = np.array([self._nearness(word, regions) for word in words], np.float32)
        weights = np.exp(12 * near) / np.exp(12 * near).sum(axis=1, keepdims=True)
        answers = (weights * near).sum(axis=1)
        shares = np.exp(6 * answers) / np.exp(6 * answers).sum()
        steps = np.arange(GRID) / GRID
        boxes = np.array([(x, y, x + 1 / GRID, y + 1 / GRID) for y in steps for x in steps])
        return Explanation(
            words, weights.astype(np.float32), answers, shares.astype(np.float32), boxes if self.boxes else None
        )

    @staticmethod
    def _regions(picture: Picture | bytes | FeatureRows) -> np.ndarray:
        if isinstance(picture, FeatureRows):
            return np.asarray(picture[:])[0]
        pixels = load_array(picture).astype(np.float64)
        rows = (part.mean(axis=1) for part in np.array_split(pixels, GRID, axis=1))
        return np.array([part.mean(axis=1) for row in rows for part in np.array_split(row, GRID, axis=1)])

    def _nearness(self, word: str, regions: np.ndarray) -> np.ndarray:
        if word.strip(".,") not in self.colours:
            return np.zeros(len(regions))
        return 1 - np.abs(regions - np.array(self.colours[word.strip(".,")])).mean(axis=1) / 128
