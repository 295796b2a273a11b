"""Models as folders: ``config.json`` names the family, which reads the rest.

A folder holds ``config.json`` (kind, configuration, provenance), the family's own text files (such as
``tokenizer.json``), ``model.safetensors``, a card, and a seal of all of them. Nothing in it is run or unpickled, and
what its values ask for is checked before it is built.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import PlainValidator
from torch import Tensor, nn

from rungwise.core import STRICT, Bounded, UserError, adapter, from_plain, to_plain, without_places
from rungwise.core.compute import choose_device
from rungwise.core.disk.folders import replacing_folder
from rungwise.core.disk.staging import sweep
from rungwise.core.formats import digest_of_tensors, tensor_form, write_tensors
from rungwise.core.version import __version__
from rungwise.models._contracts import DualEncoder
from rungwise.models.io._card import model_card
from rungwise.models.io._families import StoredModel, family, read_stored
from rungwise.models.io._folder import CALIBRATION, CARD, CONFIG, FORMAT, WEIGHTS, ModelFolder
from rungwise.models.io._hub_upload import push_to_hub
from rungwise.parts import origins_of, recorded, recorded_in


@dataclass(frozen=True)
class ModelConfig(Bounded):
    """Base of the families' configurations.

    Attributes:
        kind: Name of the family; each family gives it as the default.
    """

    __pydantic_config__ = STRICT

    kind: str = ""


class SavedModel(nn.Module, StoredModel):
    """A torch module that scores pairs and is kept in a folder.

    A family names its ``kind`` and its ``config_type``, its text files (:meth:`files`), and how it is built from
    configuration and files (:meth:`restore`); weights are its ``state_dict``. Importing the class registers its kind.

    Attributes:
        config_type: Class of the family's configuration, a frozen dataclass.
        is_fitted: Whether models are fitted to a collection at once, and not trained in steps.
        config: Configuration of this model.
        provenance: Facts about data, training and results that are saved with it.
    """

    config_type: ClassVar[type[ModelConfig]] = ModelConfig
    is_fitted: ClassVar[bool] = False

    config: Any
    provenance: dict[str, Any]

    def files(self) -> Mapping[str, str]:
        """Name and text of every file besides configuration, weights and card."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Hash of kind, configuration, files and weights."""
        known = [self.kind, to_plain(self.config), dict(self.files())]
        return digest_of_tensors(self.state_dict(), json.dumps(known, sort_keys=True))

    @property
    def contents(self) -> str:
        """What was read, in words: the number of tensors."""
        return f"{len(self.state_dict())} tensors"

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    @classmethod
    @abstractmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """Build the model without its weights, from its configuration and the text files of :meth:`files`."""

    @classmethod
    def from_folder(cls, folder: ModelFolder, device: str | None) -> Self:
        """Read configuration, files and weights; ``device`` None takes ``cuda`` where there is one."""
        place = choose_device(device)
        facts, where = folder.json(CONFIG), str(folder.path / CONFIG)
        with recorded(recorded_in(facts)):
            config = from_plain(cls.config_type, facts.get("model"), where)
        asked = _shapes(cls, config, folder)
        with folder.weights(asked) as tensors:
            if asked is not None:
                _refuse_other_tensors(folder.path / WEIGHTS, asked, tensors)
            try:
                model = cls.restore(config, folder)
            except (RuntimeError, MemoryError) as error:  # such as tensors that no memory holds
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                line = f"{where}: no model can be built as it says ({reason}); copy the folder anew"
                raise UserError(line) from error
            _refuse_other_tensors(folder.path / WEIGHTS, model.state_dict(), tensors)
            model.load_state_dict(tensors)
        _refuse_numbers_that_are_none(folder.path / WEIGHTS, model.state_dict())
        provenance = facts.get("provenance", {})
        model.provenance = provenance if isinstance(provenance, dict) else {}
        return model.to(torch.device(place)).eval()

    def save_pretrained(self, folder: Path | str, provenance: dict[str, Any] | None = None) -> None:
        """Write the model as a folder of safetensors, JSON and a model card; it appears whole or not at all.

        Args:
            folder: Folder to make; a model that stands there is replaced.
            provenance: Facts about data, training and results for the card; kept when the model is loaded.

        Raises:
            UserError: If the folder holds anything but a model, the disk is full, or the folder cannot be written.
        """
        folder = Path(folder)
        if provenance is not None:
            self.provenance = provenance
        facts = {
            "format": FORMAT,
            "kind": self.kind,
            "rungwise": __version__,
            "model": without_places(self.config),  # the folder may go to others
            **origins_of(type(self), self.config).to_plain(),
        }
        if self.provenance:
            facts["provenance"] = self.provenance
        own = self.files()
        texts = {CONFIG: json.dumps(facts, indent=2), **own}
        texts[CARD] = model_card(
            {"model": facts["model"], **_readable(own), **self.provenance},
            dimension=self.dimension if isinstance(self, DualEncoder) else None,
        )
        sweep(folder)  # what a killed run had moved aside comes back
        known = {*texts, WEIGHTS, CALIBRATION} if (folder / CONFIG).is_file() else ()
        with replacing_folder(folder, known, "a model", header=CONFIG) as draft:
            for name, text in texts.items():
                (draft / name).write_text(text, encoding="utf-8")
            write_tensors(draft / WEIGHTS, self.state_dict())

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model to the hub; arguments, result and errors are as in :func:`rungwise.models.push_to_hub`."""
        with TemporaryDirectory() as place:
            folder = Path(place) / "model"
            self.save_pretrained(folder)
            return push_to_hub(folder, repository, private=private, token=token)

    @classmethod
    def from_pretrained(cls, source: Path | str, device: str | None = None, *, altered: bool = False) -> Self:
        """Read a model of this family from a folder or a hub repository.

        Args:
            source: The folder, or the repository's name.
            device: Device such as ``"cpu"``; None takes ``cuda`` where there is one.
            altered: Whether to take the files without comparing them with the folder's seal.

        Raises:
            UserError: If files are missing or do not fit each other, or the folder holds another family.
        """
        model = read_stored(source, choose_device(device), altered=altered)
        if not isinstance(model, cls):
            raise UserError(f"{source}: a model of kind {model.kind!r}, not {cls.kind!r}; use rungwise.models.load")
        return model


def _parsed(value: Any, fitted: bool) -> Any:
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, ModelConfig | dict):
        raise ValueError("a model is a mapping of settings, or the name of a family")
    kind = value.get("kind", "vse") if isinstance(value, dict) else value.kind
    found: Any = family(kind)
    if not issubclass(found, SavedModel):
        raise ValueError(f"a model of kind {kind!r} is not trained; name another family")
    if found.is_fitted != fitted:
        how = "fitted, not trained in steps" if found.is_fitted else "trained in steps, not fitted"
        raise ValueError(f"a model of kind {kind!r} is {how}; its configurations have other settings")
    return adapter(found.config_type).validate_python(value) if isinstance(value, dict) else value


AnyModel = Annotated[ModelConfig, PlainValidator(partial(_parsed, fitted=False))]
"""Type of a field that holds the configuration of any trained family, chosen by ``kind``; the default is ``vse``."""

AnyFitted = Annotated[ModelConfig, PlainValidator(partial(_parsed, fitted=True))]
"""Type of a field that holds the configuration of any fitted family, chosen by ``kind``."""


def _shapes(found: type[SavedModel], config: Any, folder: ModelFolder) -> dict[str, Tensor] | None:
    """Names and shapes of the tensors that a configuration asks for, on torch's ``meta`` device, which takes no memory.

    None for a family that computes with numbers while it is built.
    """
    try:
        with torch.device("meta"):
            return dict(found.restore(config, folder).state_dict())
    except (RuntimeError, ValueError, TypeError):
        return None


def _refuse_numbers_that_are_none(file: Path, weights: Mapping[str, Tensor]) -> None:
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel():
            low, high = torch.aminmax(tensor)
            if not (torch.isfinite(low) and torch.isfinite(high)):
                raise UserError(
                    f"{file}: {name}: holds NaN or infinite numbers, which rank nothing; train again with a lower"
                    " learning rate"
                )


def _refuse_other_tensors(file: Path, wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    asked = {name: tensor_form(tensor) for name, tensor in wanted.items()}
    there = {name: tensor_form(tensor) for name, tensor in found.items()}
    for name in sorted(asked.keys() | there.keys()):
        if asked.get(name) != there.get(name):
            raise UserError(
                f"{file}: {name}: {there.get(name, 'no such tensor')}, but config.json asks"
                f" for {asked.get(name, 'no such tensor')}; the files belong to different models"
            )


def _readable(files: Mapping[str, str]) -> dict[str, Any]:
    """Small JSON files as facts for the card, by file name."""
    return {
        Path(name).stem: json.loads(text)
        for name, text in files.items()
        if name.endswith(".json") and len(text) < 10_000
    }
