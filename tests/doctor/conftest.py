"""Clean scenes, whose copies get the faults."""

from pathlib import Path

import pytest

from rungwise.data import ImageCaptions
from rungwise.scenes import SceneConfig, generate


@pytest.fixture(scope="session")
def scenes_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated scenes: 160 to train on, 20 each to validate and to test, about."""
    folder = tmp_path_factory.mktemp("doctor") / "scenes"
    generate(folder, SceneConfig(pictures=200, side=96, val_share=0.1, test_share=0.1))
    return folder


@pytest.fixture(scope="session")
def scenes(scenes_folder: Path) -> ImageCaptions:
    """The same, read."""
    from rungwise.data import read

    return read(scenes_folder)
