"""Families of models that are kept in folders, found by the ``kind`` that ``config.json`` names.

Only the family that is asked for is imported, so that one that needs no torch is read without it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from rungwise.core import UserError
from rungwise.core.disk import SEAL
from rungwise.models._contracts import PairScorer
from rungwise.models.io._folder import CONFIG, FORMAT, AlteredModelError, ModelFolder
from rungwise.parts import recorded_in

FITTED = ("cca", "scm", "gmlda", "gmmfa", "mvda", "mlcca", "lcfs", "lgcfl")
"""Kinds of models that are fitted to features, and not trained in steps."""

REGIONS = ("scan", "sgr", "saf", "vsrn", "cvse")
"""Kinds of models that read regions."""

_MODULES = {
    "onnx": "rungwise.models.export._onnx_model",
    "vse": "rungwise.models.joint._joint_embedding",
    "scan": "rungwise.models.regions._scan",
    "vsrn": "rungwise.models.regions._vsrn",
    "sgr": "rungwise.models.regions.alignment._sgr",
    "saf": "rungwise.models.regions.alignment._saf",
    "cvse": "rungwise.models.regions.consensus._cvse",
    **{kind: f"rungwise.models.subspace.methods._{kind}" for kind in FITTED},
}
"""Module of each family of this package, imported when the family is asked for."""


class StoredModel(PairScorer):
    """A pair scorer that is kept in a folder; importing its class registers its ``kind``."""

    @classmethod
    @abstractmethod
    def from_folder(cls, folder: ModelFolder, device: str | None) -> Self:
        """Read a model from a folder whose ``config.json`` names this kind, in evaluation mode.

        Args:
            folder: The opened folder.
            device: Device such as ``"cpu"``; None leaves the choice to the family.

        Raises:
            UserError: If files are missing or do not fit each other, or the model cannot run on the device.
            AlteredModelError: If a file is not as it was saved.
        """

    @property
    @abstractmethod
    def contents(self) -> str:
        """What was read, in words, such as ``"12 tensors"``."""

    def try_out(self) -> str:
        """Run what opening the model does not check, and say in words what was run; empty if nothing is left to check.

        Raises:
            UserError: If the model cannot be run, or its numbers are not finite.
        """
        return ""


def read_stored(source: Path | str, device: str | None, *, altered: bool = False) -> StoredModel:
    """Read a model from a folder, or from a hub repository of that name.

    ``altered`` takes the files without comparing them with the folder's seal.

    Raises:
        UserError: If there is no model, its files do not fit each other, or it cannot run on the device.
        AlteredModelError: If a file is not as it was saved.
    """
    folder = ModelFolder.open(source, altered=altered)
    while True:
        try:
            model = _kind_of(folder, altered).from_folder(folder, device)
            model.calibration_file = folder.calibration_file
            return model
        except AlteredModelError:
            now = ModelFolder.open(source, altered=altered)
            if now == folder:
                raise
            folder = now  # another model took this one's place while it was read


def _kind_of(folder: ModelFolder, altered: bool) -> type[StoredModel]:
    facts, where = folder.json(CONFIG), str(folder.path / CONFIG)
    if facts.get("format") != FORMAT:
        raise UserError(
            f"{where}: model format {facts.get('format')!r}, this version reads {FORMAT}; use the rungwise version that"
            " wrote it"
        )
    if folder.seal is None and not altered:
        raise AlteredModelError(f"{folder.path / SEAL}: missing, so nobody knows whether the model is as it was saved")
    try:
        return family(facts.get("kind"))
    except ValueError as error:
        lacking = recorded_in(facts).missing
        raise UserError(f"{where}: kind: {error}{f'; {lacking}' if lacking else ''}") from None


def family(kind: object) -> type[StoredModel]:
    """The class of a kind of models: one of this package, or one that the program defines.

    Raises:
        ValueError: If there is none; the message names the known kinds.
    """
    if isinstance(kind, str) and kind in _MODULES:
        import_module(_MODULES[kind])
    # A class that only derives from a family is none of its own.
    known = {one.kind: one for one in _below(StoredModel) if vars(one).get("kind")}
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"no model family {kind!r}; there are {', '.join(sorted({*_MODULES, *known}))}")
    return known[kind]


def _below(one: Any) -> Iterator[type[StoredModel]]:
    for sub in one.__subclasses__():
        yield sub
        yield from _below(sub)
