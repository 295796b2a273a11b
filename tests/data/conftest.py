"""Small real picture files for the tests of this room."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MakePicture = Callable[..., Path]


@pytest.fixture
def picture(tmp_path: Path) -> MakePicture:
    """Writes a picture below ``tmp_path``; different seeds give different pixels."""

    def make(name: str, seed: int = 0, size: tuple[int, int] = (24, 16)) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path, quality=90)
        return path

    return make
