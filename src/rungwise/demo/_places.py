"""Folders and files of the demo, and its settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rungwise.core import UserError
from rungwise.core.disk.folders import entries, require_writable_folder
from rungwise.scenes import SceneConfig

Name = Literal["triplet", "degrees"]
NAMES: tuple[Name, ...] = get_args(Name)
"""The two models: the one that learns right and wrong, and the one that learns degrees."""

TITLES: dict[Name, str] = {
    "triplet": "Trained with right and wrong",
    "degrees": "Trained with degrees",
}
"""Titles of the models for people."""

RECIPES: dict[Name, str] = {"triplet": "scenes_triplet", "degrees": "scenes"}
"""Preset of each model."""

SCENES = SceneConfig(pictures=12_000, side=64, val_share=0.03, test_share=0.05)
"""Settings of the generated scenes."""

FEW_SCENES = SceneConfig(pictures=120, side=64, val_share=0.2, test_share=0.4)
"""Settings of the scenes where the demo only has to show that everything works."""

RELEVANT_FROM = 0.75
"""Degree from which a picture is relevant: three quarters of what a query says is true of it."""


_IN_A_DEMO = ("collection", "results.json", *NAMES)
_OF_A_MODEL = ("run", "index")


@dataclass(frozen=True)
class Places:
    """Paths of the demo's parts."""

    folder: Path

    @property
    def scenes(self) -> Path:
        """Folder of pictures, captions and what they state."""
        return self.folder / "collection"

    @property
    def results(self) -> Path:
        """File of the measured results."""
        return self.folder / "results.json"

    def run(self, name: Name) -> Path:
        """Folder of the training run of a model."""
        return self.folder / name / "run"

    def model(self, name: Name) -> Path:
        """Folder of the trained model."""
        return self.run(name) / "model"

    def index(self, name: Name) -> Path:
        """Folder of the index of the test pictures."""
        return self.folder / name / "index"


def refuse_others(places: Places) -> None:
    """Refuse a folder that holds anything but a demo, or that cannot be written; deeper folders are not checked."""
    require_writable_folder(places.folder)
    for folder, known in ((places.folder, _IN_A_DEMO), *((places.folder / name, _OF_A_MODEL) for name in NAMES)):
        strangers = sorted(set(entries(folder)) - {*known})
        if strangers:
            raise UserError(f"{folder}: holds {strangers[0]!r}, which is no part of a demo; name a new or empty folder")
    if os.path.lexists(places.results) and not os.path.lexists(places.scenes):
        raise UserError(f"{places.results}: of no demo, which would have its pictures beside it; name another folder")
