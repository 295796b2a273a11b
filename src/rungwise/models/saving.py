"""Models as folders: ``config.json`` names the family, and the family reads the rest.

A folder holds ``config.json`` (kind, configuration, provenance), the family's own text files (such as
``tokenizer.json``), ``model.safetensors``, a card, and a seal of all of them. Nothing in it is run or unpickled, and
what its values ask for is checked before it is built.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import PlainValidator, TypeAdapter
from torch import Tensor, nn

from rungwise.core.configuration import STRICT, from_plain, to_plain
from rungwise.core.devices import choose_device
from rungwise.core.errors import UserError
from rungwise.core.folders import replacing_folder
from rungwise.core.seals import SEAL
from rungwise.core.tensors import add_tensors, write_tensors
from rungwise.core.version import __version__
from rungwise.models.card import model_card
from rungwise.models.contracts import DualEncoder, PairScorer
from rungwise.models.folder import CARD, CONFIG, FORMAT, UNSEALED, WEIGHTS, AlteredModelError, ModelFolder

FIRST_KIND = "vse"
"""Of folders that were saved before there were kinds."""

_MODULES = {"vse": "rungwise.models.vse"}
"""Where the families of this package are, which are imported when one of them is asked for."""


@dataclass(frozen=True)
class ModelConfig:
    """Base of the families' configurations.

    Attributes:
        kind: The family's name; each family gives it as the default.
    """

    __pydantic_config__ = STRICT

    kind: str = ""


class SavedModel(nn.Module, PairScorer):
    """A pair scorer, as a torch module, that is kept in a folder.

    A family names its ``kind`` and its ``config_type``, says which text files it needs (:meth:`files`), and how it is
    built from its configuration and them (:meth:`restore`); weights are its ``state_dict``. It is found by its kind as
    soon as its class has been imported.

    Attributes:
        config_type: The family's configuration, a frozen dataclass.
        config: This model's.
        provenance: Facts about data, training and results that are saved with it.
    """

    config_type: ClassVar[type[ModelConfig]] = ModelConfig

    config: Any
    provenance: dict[str, Any]

    def files(self) -> Mapping[str, str]:
        """Name and text of every file beside configuration, weights and card."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Hash of kind, configuration, files and weights."""
        known = [self.kind, to_plain(self.config), dict(self.files())]
        digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
        add_tensors(digest, self.state_dict())
        return digest.hexdigest()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @classmethod
    @abstractmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """The model without its weights.

        Args:
            config: Of type :attr:`config_type`.
            folder: Where :meth:`files` are.

        Raises:
            UserError: If a file does not fit.
        """

    def save_pretrained(self, folder: Path | str, provenance: dict[str, Any] | None = None) -> None:
        """Write the model as a folder of safetensors and JSON, with a model card; it appears whole or not at all.

        Args:
            folder: Made if missing; a model that stands there is replaced.
            provenance: What the card should say of data, training and results; kept when the model is loaded.

        Raises:
            UserError: If the folder holds anything but a model, the disk is full, or the place may not be written.
        """
        folder = Path(folder)
        if provenance is not None:
            self.provenance = provenance
        facts = {
            "format": FORMAT,
            "kind": self.kind,
            "rungwise": __version__,
            "model": to_plain(self.config),
        }
        if self.provenance:
            facts["provenance"] = self.provenance
        own = self.files()
        texts = {CONFIG: json.dumps(facts, indent=2), **own}
        texts[CARD] = model_card({"model": facts["model"], **_readable(own), **self.provenance})
        known = {*texts, WEIGHTS} if (folder / CONFIG).is_file() else ()
        with replacing_folder(folder, known, "a model") as draft:
            for name, text in texts.items():
                (draft / name).write_text(text, encoding="utf-8")
            write_tensors(draft / WEIGHTS, self.state_dict())

    @classmethod
    def from_pretrained(cls, source: Path | str, device: str | None = None, *, altered: bool = False) -> Self:
        """Read a model of this family from a folder, or from a hub repository of that name.

        Args:
            source: The folder, or the repository.
            device: Where it computes; None takes ``cuda`` where there is one.
            altered: Take the files as they are, whatever the folder's seal says.

        Raises:
            UserError: If files are missing or do not fit each other, or the folder holds another family.
        """
        model = load(source, device, altered=altered)
        if not isinstance(model, cls):
            raise UserError(f"{source}: a model of kind {model.kind!r}, not {cls.kind!r}; use rungwise.models.load")
        return model


def load(source: Path | str, device: str | None = None, *, altered: bool = False) -> SavedModel:
    """A model from a folder, or from a hub repository of that name; ``config.json`` says which family it is.

    Args:
        source: The folder that training wrote (``run/model``), or the repository.
        device: Where it computes, such as ``"cpu"``; None takes ``cuda`` where there is one.
        altered: Take the files as they are, whatever the folder's seal says; what they ask for is checked all the same.

    Returns:
        A :class:`~rungwise.models.PairScorer` in evaluation mode, which is a :class:`~rungwise.models.DualEncoder` too
        where it gives vectors.

    Raises:
        UserError: If files are missing or do not fit each other, the kind is unknown, or weights are no finite numbers.
        AlteredModelError: If a file is not as it was saved.
    """
    place = choose_device(device)
    folder = ModelFolder.open(source, altered=altered)
    while True:
        try:
            return _loaded(folder, altered).to(torch.device(place)).eval()
        except AlteredModelError:
            now = ModelFolder.open(source, altered=altered)
            if now == folder:
                raise
            folder = now  # another model took this one's place while it was read


def _loaded(folder: ModelFolder, altered: bool) -> SavedModel:
    facts, where = folder.json(CONFIG), str(folder.path / CONFIG)
    if facts.get("format") not in (FORMAT, UNSEALED):
        raise UserError(
            f"{where}: model format {facts.get('format')!r}, this version reads {UNSEALED} and {FORMAT};"
            " use the rungwise version that wrote it"
        )
    if facts["format"] == FORMAT and folder.seal is None and not altered:
        raise AlteredModelError(f"{folder.path / SEAL}: missing, so nobody knows whether the model is as it was saved")
    kind = facts.get("kind", FIRST_KIND)
    try:
        found = family(kind)
    except ValueError as error:
        raise UserError(f"{where}: kind: {error}") from None
    config = from_plain(found.config_type, facts.get("model"), where)
    asked = _shapes(found, config, folder)
    with folder.weights(asked) as tensors:
        if asked is not None:
            _refuse_other_tensors(folder.path / WEIGHTS, asked, tensors)
        try:
            model = found.restore(config, folder)
        except (RuntimeError, MemoryError) as error:  # such as tensors that no memory holds
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{where}: no model can be built as it says ({reason}); copy the folder anew") from error
        _refuse_other_tensors(folder.path / WEIGHTS, model.state_dict(), tensors)
        model.load_state_dict(tensors)
    _refuse_numbers_that_are_none(folder.path / WEIGHTS, model.state_dict())
    provenance = facts.get("provenance", {})
    model.provenance = provenance if isinstance(provenance, dict) else {}
    return model


def load_dual_encoder(source: Path | str, device: str | None = None, *, altered: bool = False) -> DualEncoder:
    """:func:`load`, for what needs vectors.

    Raises:
        UserError: As :func:`load`, and if the model scores pairs without giving vectors.
    """
    model = load(source, device, altered=altered)
    if not isinstance(model, DualEncoder):
        raise UserError(
            f"{source}: a model of kind {model.kind!r} scores pairs and gives no vectors: it can be evaluated but"
            " not indexed; give a dual encoder"
        )
    return model


def family(kind: object) -> type[SavedModel]:
    """The class whose models are of this kind: one of this package, or one that the program defines.

    Raises:
        ValueError: If there is none; the message names those there are.

    >>> family("vse").__name__
    'JointEmbedding'
    >>> family("bag of words")
    Traceback (most recent call last):
    ValueError: no model family 'bag of words'; there are ...vse...
    """
    if isinstance(kind, str) and kind in _MODULES:
        import_module(_MODULES[kind])
    known = {one.kind: one for one in _below(SavedModel) if one.kind}
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"no model family {kind!r}; there are {', '.join(sorted({*_MODULES, *known}))}")
    return known[kind]


def _below(one: Any) -> Iterator[type[SavedModel]]:
    for sub in one.__subclasses__():
        yield sub
        yield from _below(sub)


def _parsed(value: Any) -> Any:
    if isinstance(value, ModelConfig):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict):
        raise ValueError("a model is a mapping of settings, or the name of a family")
    found: Any = family(value.get("kind", FIRST_KIND)).config_type
    return TypeAdapter(found).validate_python(value)


AnyModel = Annotated[ModelConfig, PlainValidator(_parsed)]
"""A field of a configuration: any family's, told by ``kind``; without one, of the family ``vse``."""


def _shapes(found: type[SavedModel], config: Any, folder: ModelFolder) -> dict[str, Tensor] | None:
    """What a configuration asks for, before any memory is taken: torch's device ``meta`` knows shapes and no numbers.

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
    asked = {name: _form(tensor) for name, tensor in wanted.items()}
    there = {name: _form(tensor) for name, tensor in found.items()}
    for name in sorted(asked.keys() | there.keys()):
        if asked.get(name) != there.get(name):
            raise UserError(
                f"{file}: {name}: {there.get(name, 'no such tensor')}, but config.json asks"
                f" for {asked.get(name, 'no such tensor')}; the files belong to different models"
            )


def _form(tensor: Tensor) -> str:
    """Shape, and whether it holds whole numbers; how exact the others are is free."""
    return f"{tuple(tensor.shape)}{'' if tensor.is_floating_point() else f' of {tensor.dtype}'}"


def _readable(files: Mapping[str, str]) -> dict[str, Any]:
    """Small JSON files as facts for the card, by the names of their files."""
    return {
        Path(name).stem: json.loads(text)
        for name, text in files.items()
        if name.endswith(".json") and len(text) < 10_000
    }
