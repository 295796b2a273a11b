"""The best model of a run: written as a folder at once, or, where that is too slow, kept as tensors until the end.

A model with frozen encoders is mostly weights that never change, and a run may improve twenty times. Where the frozen
weights are large, only the trained tensors of the best epoch are kept, in the checkpoint, and the folder is written
once, when the run ends or stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from rungwise.core.formats import digest_of_tensors
from rungwise.data import ImageCaptions
from rungwise.models import CHOSEN_BY, SavedModel
from rungwise.training.config import Choice
from rungwise.training.engine._checkpoint import trained_tensors

LARGE = 32 << 20
"""Bytes of frozen weights from which on the folder is written once: writing 100 MB takes most of a second."""


def provenance(
    data: ImageCaptions, seed: int, choice: Choice, validation: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Facts for the card of a run's best model; ``more`` are further facts of this kind of run.

    ``validation`` is the history's entry of the epoch or combination that was chosen by ``choice``.
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

    Parameters without gradients are frozen. ``pending`` holds the trained tensors of the best epoch that no folder
    holds yet; None where there are none.
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
        """Hash of the frozen weights, which are not in a checkpoint; empty where all are trained."""
        if not self._frozen:
            return ""
        return digest_of_tensors(self._frozen)

    def keep(self, provenance: dict[str, Any]) -> None:
        """Keep the present model as the best so far, with these facts for its card."""
        if self._late:
            self.pending = {name: tensor.detach().cpu().clone() for name, tensor in trained_tensors(self.model).items()}
        else:
            self.model.save_pretrained(self.folder, provenance)

    def finish(self, provenance: dict[str, Any]) -> None:
        """Write the folder of the best model, if that is still to be done; the model then has its weights."""
        if self.pending is None:
            return
        self.model.load_state_dict(self.pending, strict=False)
        self.model.save_pretrained(self.folder, provenance)
        self.pending = None
