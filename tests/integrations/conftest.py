"""A tiny index that every test may read, and the same index served, without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rungwise.data import ImageCaptions
from rungwise.index import Index
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.serving.conftest import TOKEN, patient_app
from tests.serving.wire import reached

SHOWN = ["red"] * 2 + ["green"] * 3 + ["blue"] * 3 + ["yellow"] * 4


def twelve(folder: Path) -> ImageCaptions:
    """Twelve plain pictures of near colours; the last one has no caption, and every other was taken in 2020."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = np.random.default_rng(0)
    ids = tuple(f"{number}-{colour}.png" for number, colour in enumerate(SHOWN))
    for one, colour in zip(ids, SHOWN, strict=True):
        pixel = np.clip(np.array(COLOURS[colour]) + drawn.integers(-30, 30, 3), 0, 255)
        (folder / one).write_bytes(picture_bytes(tuple(map(int, pixel))))
    return ImageCaptions(
        ids,
        tuple(f"a {colour} square" for colour in SHOWN[:-1]),
        np.arange(len(SHOWN) - 1),
        paths=tuple(folder / one for one in ids),
        columns={"year": tuple(2020 + place % 2 for place in range(len(SHOWN)))},
        name="colours",
    )


@pytest.fixture(scope="session")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index in a folder, beside its pictures."""
    home = tmp_path_factory.mktemp("colours")
    return Index.build(twelve(home / "photos"), ColourModel(), home / "index")


@pytest.fixture
def served(colours: Index) -> Iterator[str]:
    """Address of a server of that index; its token is ``TOKEN``."""
    with reached(patient_app(colours, ColourModel(), token=TOKEN)) as address:
        yield address
