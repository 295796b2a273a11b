"""The best model of a run: written as a folder at once, or, where that costs too much, kept small until the end.

A model with frozen encoders is mostly weights that never change, and a run may improve twenty times. Where the frozen
weights are large, only the trained tensors of the best epoch are kept, in the checkpoint, and the folder is written
once, when the run ends or stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from rungwise.core.formats.tensors import digest_of_tensors
from rungwise.data.collection import ImageCaptions
from rungwise.models import SavedModel
from rungwise.models.contracts import CHOSEN_BY
from rungwise.training.config.snapshots import Choice
from rungwise.training.engine.checkpoint import trained_tensors

LARGE = 32 << 20
"""Bytes of frozen weights from which on the folder is written once: 100 MB take most of a second, every time."""


def provenance(
    data: ImageCaptions, seed: int, choice: Choice, validation: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """What the card of a run's best model says of where it comes from.

    Args:
        data: What it learnt from.
        seed: Of the run.
        choice: What chose it.
        validation: The history's line of the one that was chosen.
        more: Facts that runs of its kind have besides.
    """
    return {
        "data": data.name,
        "data_hash": data.content_hash(),
        "seed": seed,
        **more,
        CHOSEN_BY: choice.name,
        "validation": validation,
    }


class Snapshots:
    """Keeps the best model of a run.

    Args:
        model: In training; its parameters that ask for no gradient are frozen.
        folder: Of the best model.

    Attributes:
        pending: Trained tensors of the best epoch that no folder holds yet; None where there are none.
    """

    def __init__(self, model: SavedModel, folder: Path) -> None:
        self.model = model
        self.folder = folder
        self.pending: dict[str, Tensor] | None = None
        trained, every = trained_tensors(model), model.state_dict()
        self._frozen = {name: tensor for name, tensor in every.items() if name not in trained}
        self._late = sum(one.numel() * one.element_size() for one in self._frozen.values()) > LARGE

    @property
    def frozen_hash(self) -> str:
        """Hash of the frozen weights, which no checkpoint holds; empty where all are trained."""
        if not self._frozen:
            return ""
        return digest_of_tensors(self._frozen)

    def keep(self, provenance: dict[str, Any]) -> None:
        """The model as it is now is the best so far.

        Args:
            provenance: What its card should say.

        Raises:
            UserError: If the folder cannot be written.
        """
        if self._late:
            self.pending = {name: tensor.detach().cpu().clone() for name, tensor in trained_tensors(self.model).items()}
        else:
            self.model.save_pretrained(self.folder, provenance)

    def finish(self, provenance: dict[str, Any]) -> None:
        """Write the folder of the best model, if that is still to be done; the model itself becomes the best.

        Args:
            provenance: What its card should say.

        Raises:
            UserError: If the folder cannot be written.
        """
        if self.pending is None:
            return
        self.model.load_state_dict(self.pending, strict=False)
        self.model.save_pretrained(self.folder, provenance)
        self.pending = None
