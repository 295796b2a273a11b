"""The calibration of a model: ``calibration.json`` in its folder, under the folder's seal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import UserError, is_regular
from rungwise.core.disk import add_to_seal, has_seal
from rungwise.core.disk.locks import writing_alone
from rungwise.models.io._folder import CALIBRATION, CONFIG

if TYPE_CHECKING:
    from rungwise.calibration import Calibration


def keep_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write the calibration of a model's scores into its folder, in place of an earlier one; returns the file.

    A model that is loaded from the folder has it as ``calibration_file``. A search uses it where the index has no
    calibration of its own.

    Args:
        folder: Folder of a saved or exported model.
        calibration: Calibration that was fitted for this model, which the caller has checked.

    Raises:
        UserError: If there is no model, or the folder cannot be written.
    """
    if not is_regular(folder / CONFIG):
        raise UserError(f"{folder}: no model here ({CONFIG} is missing); give the folder of a saved model")
    path = folder / CALIBRATION
    with writing_alone(folder):
        calibration.save(path)
        if has_seal(folder):
            add_to_seal(folder, CALIBRATION)
    return path
