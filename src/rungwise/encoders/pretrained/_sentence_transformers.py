"""Folders of sentence-transformers whose first module reads pictures and texts: a CLIP or SigLIP of transformers.

The library adds to such a model how texts are cut and padded, and which modules follow. Settings that would change a
vector in an unknown way are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rungwise.core import UserError, read_json
from rungwise.encoders.pretrained import _transformers as transformers
from rungwise.encoders.pretrained._towers import TextHalf
from rungwise.language import stays_inside

MODULES = "modules.json"
_READERS = ("CLIPModel", "Transformer")
_FOLLOWERS = ("Normalize",)
_PACKAGE = "sentence_transformers."
_SETTINGS = "sentence_bert_config.json"
_OTHER = "give another model, or the folder of its first module as hf:"
_NO_MATTER = {"transformer_task", "module_output_name", "do_lower_case", "unpad_inputs"}
_METHODS = {"text": "get_text_features", "image": "get_image_features"}


@dataclass(frozen=True)
class InnerModel:
    """The part of a model that reads pictures and texts.

    Attributes:
        folder: Folder of the transformers model.
        longest: A context length below that of the network, if there is one.
        padded: Whether texts are padded to the context length.
    """

    folder: Path
    longest: int | None = None
    padded: bool = False


def inner(folder: Path) -> InnerModel:
    """The first module of a folder of sentence-transformers.

    Raises:
        UserError: If it has other modules, or settings that are not understood.
    """
    file = folder / MODULES
    if not file.exists():
        raise UserError(f"{folder}: no model of sentence-transformers here ({MODULES} is missing); correct the path")
    kinds, places = _modules(file)
    if kinds[0] not in _READERS or any(kind not in _FOLLOWERS for kind in kinds[1:]):
        raise UserError(
            f"{file}: modules {', '.join(kinds)}; read are {' or '.join(_READERS)}, with {_FOLLOWERS[0]} after it or"
            " nothing"
        )
    _check_model(folder)
    return _settings(folder / places[0])


def open_text(found: InnerModel) -> TextHalf:
    """Open the text side, cut and padded as sentence-transformers does.

    Raises:
        UserError: If the folder is incomplete or damaged, or vectors of texts would depend on their neighbours.
    """
    half = transformers.open_text(found.folder, found.longest)
    if half.rules.padded and not found.padded:
        raise UserError(
            f"{found.folder / _SETTINGS}: texts are filled up to the longest of each batch, so that a vector depends on"
            f" its neighbours; the model was trained on texts filled up to the context length: give hf:{found.folder}"
        )
    return replace(half, rules=replace(half.rules, padded=found.padded))


def _modules(file: Path) -> tuple[list[str], list[str]]:
    """Type and folder of each module."""
    said = read_json(file)
    if not isinstance(said, list) or not said:
        raise UserError(f"{file}: expected a list of modules; save the model anew")
    kinds, places = [], []
    for one in said:
        kind, place = (one.get("type"), one.get("path")) if isinstance(one, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(place, str) or not stays_inside(place):
            raise UserError(f"{file}: a module needs a type, and a path in the folder; save the model anew")
        kinds.append(kind.rsplit(".", 1)[-1] if kind.startswith(_PACKAGE) else kind[:100])
        places.append(place)
    return kinds, places


def _check_model(folder: Path) -> None:
    file = folder / "config_sentence_transformers.json"
    said = read_json(file) if file.exists() else {}
    if not isinstance(said, dict):
        raise UserError(f"{file}: expected a JSON object; save the model anew")
    if said.get("default_prompt_name"):
        raise UserError(
            f"{file}: default_prompt_name {str(said['default_prompt_name'])[:60]!r}: prompts are not read; {_OTHER}"
        )
    if said.get("similarity_fn_name") not in (None, "cosine"):
        raise UserError(
            f"{file}: similarity_fn_name {str(said['similarity_fn_name'])[:60]!r}: only cosine is read; {_OTHER}"
        )


def _settings(folder: Path) -> InnerModel:
    file = folder / _SETTINGS
    said: Any = read_json(file) if file.exists() else {}
    if not isinstance(said, dict):
        raise UserError(f"{file}: expected a JSON object; save the model anew")
    longest, padded = said.get("max_seq_length"), False
    if longest is not None and (not isinstance(longest, int) or isinstance(longest, bool) or longest < 2):
        raise UserError(
            f"{file}: max_seq_length {str(longest)[:60]!r} must be a whole number from 2; save the model anew"
        )
    for name, value in said.items():
        if name in _NO_MATTER or name == "max_seq_length" or not value:
            continue
        if name == "modality_config":
            _check_methods(value, file)
        elif name == "processing_kwargs" and value in _FILLED_UP:
            padded = True
        else:
            raise UserError(f"{file}: {name[:60]} {str(value)[:80]} is not understood; {_OTHER}")
    return InnerModel(folder, longest, padded)


_FILLED_UP: tuple[Mapping[str, Any], ...] = ({"text": {"padding": "max_length"}},)


def _check_methods(value: object, file: Path) -> None:
    """Refuse a model that does not use the towers' vectors in the joint space."""
    if not isinstance(value, dict) or not _METHODS.keys() <= value.keys():
        raise UserError(f"{file}: modality_config does not read pictures and texts; {_OTHER}")
    for name, method in _METHODS.items():
        said = value[name]
        if not isinstance(said, dict) or said.get("method") != method:
            raise UserError(f"{file}: modality_config: {name}: expected the method {method}; {_OTHER}")
