"""A small collection for tests of the page, and a model that sees where in a picture which colour is."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.data.pictures import load_picture
from rungwise.models import DualEncoder, EncodedImages
from rungwise.models._contracts import Pictures
from rungwise.similarity import Cosine

COLOURS = {
    "red": (214, 69, 65),
    "green": (78, 154, 100),
    "blue": (58, 110, 200),
    "yellow": (240, 200, 70),
    "white": (240, 240, 235),
    "black": (35, 38, 42),
}
GRID = 6
SIZES = ((160, 120), (120, 160), (140, 140), (240, 100), (160, 120))
FILLERS = ("a", "on", "square", "circle", "above", "below", "and", "of")
KINDS = ("poster", "card", "stamp")
LONG = "a red square on blue " + "that goes on and on without an end in sight " * 40
ODD_ID = 'odd/näme & 100% "b"?#+.png'


class PaletteModel(DualEncoder):
    """A picture is the colours of a grid of places, a text the last colour that it names with some of the first."""

    dimension = 3 * GRID * GRID
    fingerprint = "fee1ce" * 10
    similarity = Cosine()

    def encode_image(
        self, pictures: Pictures, *, progress: Callable[[int], None] | None = None, cache: Path | None = None
    ) -> EncodedImages:
        if isinstance(pictures, FeatureRows):
            rows = np.asarray(pictures[:], np.float32)
            return EncodedImages(_unit(rows), np.arange(len(rows)))
        vectors, kept, issues = [], [], []
        for position, picture in enumerate(pictures):
            try:
                pixels = load_picture(picture).float()
            except UserError as error:
                issues.append(Issue("unreadable picture", "", str(error)))
                continue
            places = torch.nn.functional.adaptive_avg_pool2d(pixels, GRID).permute(1, 2, 0)
            vectors.append(places.reshape(-1).numpy() - 128)
            kept.append(position)
        rows = np.array(vectors, np.float32).reshape(-1, self.dimension)
        return EncodedImages(_unit(rows), np.array(kept, np.int64), tuple(issues))

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = []
        for text in texts:
            named = [COLOURS[word] for word in text.lower().split() if word in COLOURS] or [(130, 129, 128)]
            mixed = 0.88 * np.array(named[-1]) + 0.12 * np.array(named[0])
            rows.append(np.tile(mixed - 128, GRID * GRID))
        return _unit(np.array(rows, np.float32).reshape(-1, self.dimension))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in text.split() if word.lower() not in self.known_words))

    @property
    def known_words(self) -> Collection[str]:
        return frozenset((*COLOURS, *FILLERS))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def collection(folder: Path, count: int = 130) -> ImageCaptions:
    """Squares on grounds, in several shapes, with columns; some captions are odd, and two pictures nearly the same."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    ids, paths, captions, owners = [], [], [], []
    names = list(COLOURS)
    for number in range(count):
        ground, square = names[number % 6], names[(number + 1 + number // 6 % 5) % 6]
        ids.append(f"{number:03}")
        paths.append(folder / f"{number:03}.png")
        size = SIZES[number % len(SIZES)]
        picture = Image.new("RGB", size, COLOURS[ground])
        draw = ImageDraw.Draw(picture)
        left, top = (int(random.integers(0, side - 50)) for side in size)
        draw.rectangle((left, top, left + 45, top + 45), COLOURS[square])
        picture.save(paths[-1])
        captions.append(f"a {square} square on {ground}")
        owners.append(number)
    ids[0] = ODD_ID
    captions[1] = LONG
    captions[2] = "مربع أحمر على خلفية زرقاء"
    captions[3] = "青い背景に赤い四角形"
    captions += ["squares of two colours", "one more caption"]
    owners += [0, 0]
    Image.open(paths[7]).save(folder / "twin.png")  # the same picture twice
    ids.append("twin")
    paths.append(folder / "twin.png")
    for number, path in enumerate(paths):
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # the last one is the newest
    columns = {
        "title": tuple(f"No. {number}" for number in range(len(ids))),
        "year": tuple(2000 + number % 24 for number in range(len(ids))),
        "kind": tuple(KINDS[number % 3] for number in range(len(ids))),
        "tags": tuple(("flat", "warm") if number % 2 else ("flat",) for number in range(len(ids))),
        "for sale": tuple(number % 4 == 0 for number in range(len(ids))),
        "day": tuple(f"2020-{1 + number % 12:02}-15" for number in range(len(ids))),
    }
    return ImageCaptions(
        tuple(ids), tuple(captions), np.array(owners), paths=tuple(paths), columns=columns, name="squares"
    )


def rows_of_features(count: int = 8) -> ImageCaptions:
    """Vectors without files and captions."""
    rows = np.random.default_rng(1).normal(size=(count, PaletteModel.dimension)).astype(np.float32)
    return ImageCaptions(tuple(f"row-{number}" for number in range(count)), (), np.zeros(0), features=FeatureRows(rows))
