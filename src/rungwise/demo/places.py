"""What the demo makes, and where it lies in its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rungwise.core.disk.folders import entries, require_writable_folder
from rungwise.core.errors import UserError
from rungwise.scenes.sampling import SceneConfig

Name = Literal["triplet", "degrees"]
NAMES: tuple[Name, ...] = get_args(Name)
"""The two models: the one that learns right and wrong, and the one that learns degrees."""

TITLES: dict[Name, str] = {
    "triplet": "Trained with right and wrong",
    "degrees": "Trained with degrees",
}
"""What people read."""

RECIPES: dict[Name, str] = {"triplet": "scenes_triplet", "degrees": "scenes"}
"""The preset of each."""

SCENES = SceneConfig(pictures=12_000, side=64, val_share=0.03, test_share=0.05)
"""What the demo generates."""

FEW_SCENES = SceneConfig(pictures=120, side=64, val_share=0.2, test_share=0.4)
"""What it generates when it only has to show that all of it works."""

RELEVANT_FROM = 0.75
"""The degree from which a picture counts as relevant: three quarters of what a query says is true of it."""


_IN_A_DEMO = ("collection", "results.json", *NAMES)
_OF_A_MODEL = ("run", "index")


@dataclass(frozen=True)
class Places:
    """Where the parts lie.

    >>> Places(Path("demo")).model("degrees").as_posix()
    'demo/degrees/run/model'
    """

    folder: Path

    @property
    def scenes(self) -> Path:
        """Pictures, captions and what they state."""
        return self.folder / "collection"

    @property
    def results(self) -> Path:
        """What was measured."""
        return self.folder / "results.json"

    def run(self, name: Name) -> Path:
        """The training run of a model."""
        return self.folder / name / "run"

    def model(self, name: Name) -> Path:
        """The model that it left."""
        return self.run(name) / "model"

    def index(self, name: Name) -> Path:
        """The index of the test pictures."""
        return self.folder / name / "index"


def refuse_others(places: Places) -> None:
    """Refuse a folder that holds anything but a demo, or that cannot be written.

    What lies deeper is refused by whoever writes there.

    Raises:
        UserError: Naming the entry.

    >>> refuse_others(Places(Path("nowhere")))
    """
    require_writable_folder(places.folder)
    for folder, known in ((places.folder, _IN_A_DEMO), *((places.folder / name, _OF_A_MODEL) for name in NAMES)):
        strangers = sorted(set(entries(folder)) - {*known})
        if strangers:
            raise UserError(f"{folder}: holds {strangers[0]!r}, which is no part of a demo; name a new or empty folder")
    if os.path.lexists(places.results) and not os.path.lexists(places.scenes):
        raise UserError(f"{places.results}: of no demo, which would have its pictures beside it; name another folder")
