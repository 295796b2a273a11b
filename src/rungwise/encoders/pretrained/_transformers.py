"""CLIP, SigLIP and SigLIP 2 in the folders of transformers.

Of a configuration, only the fields that these families' networks read are taken, by name and type. The tokenizer is the
library's for the folder, kept as its resulting rules.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from rungwise.core import UserError, read_json, require
from rungwise.encoders._preprocessing import Preprocessing
from rungwise.encoders.pretrained._preprocessing import patches_preprocessing, transformers_preprocessing
from rungwise.encoders.pretrained._towers import ImageHalf, ImageTower, NetworkDescription, TextHalf, TextTower
from rungwise.encoders.pretrained._weights import checkpoint_files, load_half
from rungwise.encoders.untrusted import (
    TokenRules,
    TransformerText,
    TransformerVision,
    check_special,
    check_vocabulary,
    plain_rules,
    read_settings,
)
from rungwise.language import check_files, check_rules
from rungwise.language.sentence_models import loading, without_reports

LIBRARY = "transformers"
CONFIG = "config.json"
FAMILIES = ("clip", "siglip", "siglip2")
"""Values of ``model_type``: SigLIP 2 at a fixed resolution is ``siglip``, and ``siglip2`` for pictures of any size."""
_CLASSES = {"clip": "CLIP", "siglip": "Siglip", "siglip2": "Siglip2"}
"""Prefixes of the names of a family's classes."""
_TOKENIZERS = {
    "BertTokenizer", "CLIPTokenizer", "GemmaTokenizer", "PreTrainedTokenizer", "RobertaTokenizer", "Siglip2Tokenizer",
    "SiglipTokenizer", "T5Tokenizer", "TokenizersBackend", "XLMRobertaTokenizer",
}  # fmt: skip
"""Classes of tokenizers made of rules and a vocabulary, with or without ``Fast`` at the end."""
_FORGOTTEN = (".position_ids",)
"""Suffixes of tensors in old checkpoints that networks compute themselves."""


def open_image(folder: Path) -> ImageHalf:
    """Open the image side of a folder.

    Raises:
        UserError: If the folder is incomplete, damaged, or of an unknown family.
    """
    family, config = _config(folder)
    settings = _vision(family, config, folder / CONFIG)
    if settings.image_size is None:
        preprocessing: Preprocessing = patches_preprocessing(folder, settings.patch_size)
    else:
        preprocessing = transformers_preprocessing(folder, settings.image_size)
    tower = load_half(
        lambda: image_tower(family, asdict(settings)),
        checkpoint_files(folder, ("model.safetensors",)),
        lambda name: _owned(name, ("vision_model.", "visual_projection.")),
        folder / CONFIG,
    )
    return ImageHalf(cast(ImageTower, tower), preprocessing)


def open_text(folder: Path, longest: int | None = None) -> TextHalf:
    """Open the text side of a folder; ``longest`` is a context length below the network's.

    Raises:
        UserError: If the folder is incomplete, damaged, of an unknown family, or has another model's tokenizer.
    """
    family, config = _config(folder)
    settings = _text(family, config, folder / CONFIG)
    tokenizer, rules = _tokenizer(folder, family, settings, longest)
    tower = load_half(
        lambda: text_tower(family, asdict(settings)),
        checkpoint_files(folder, ("model.safetensors",)),
        lambda name: _owned(name, ("text_model.", "text_projection.")),
        folder / CONFIG,
    )
    return TextHalf(cast(TextTower, tower), tokenizer, rules)


def image_tower(family: str, settings: Mapping[str, Any], where: str = CONFIG) -> ImageTower:
    """The image network of a family, without its weights."""
    require("transformers", "a model of transformers")
    return _VisionTower(_known(family, where), read_settings(TransformerVision, settings, where))


def text_tower(family: str, settings: Mapping[str, Any], where: str = CONFIG) -> TextTower:
    """The text network of a family, without its weights."""
    require("transformers", "a model of transformers")
    read = read_settings(TransformerText, settings, where)
    if family == "clip" and read.eos_token_id is None:
        raise UserError(f"{where}: eos_token_id is missing, whose state is the vector of a text; copy the folder anew")
    return _WordTower(_known(family, where), read)


class _VisionTower(ImageTower):
    def __init__(self, family: str, settings: TransformerVision) -> None:
        super().__init__()
        self.width = settings.projection
        self.description = NetworkDescription(LIBRARY, family, asdict(settings))
        library: Any = importlib.import_module("transformers")
        name = _CLASSES[family]
        given = {key: value for key, value in asdict(settings).items() if key != "projection" and value is not None}
        with _unset():
            self.vision_model = getattr(library, f"{name}VisionModel")(getattr(library, f"{name}VisionConfig")(**given))
        self.visual_projection: nn.Linear | None = None
        if family == "clip":
            self.visual_projection = nn.Linear(settings.hidden_size, settings.projection, bias=False)
        self.patches = settings.image_size is None

    def forward(self, pixels: Tensor) -> Tensor:
        if self.patches:  # of which the last row says how many there are down and across
            grids = pixels[:, -1, :2].long()
            there = torch.arange(pixels.shape[1] - 1, device=pixels.device) < grids.prod(dim=1, keepdim=True)
            pooled = self.vision_model(pixels[:, :-1], there.int(), grids).pooler_output
        else:
            pooled = self.vision_model(pixels).pooler_output
        return torch.as_tensor(pooled if self.visual_projection is None else self.visual_projection(pooled))


class _WordTower(TextTower):
    def __init__(self, family: str, settings: TransformerText) -> None:
        super().__init__()
        self.width = settings.projection
        self.rows = settings.vocab_size
        self.description = NetworkDescription(LIBRARY, family, asdict(settings))
        library: Any = importlib.import_module("transformers")
        # Numbers of tokens that a network of SigLIP never reads lie beyond small tables in its defaults.
        given = {"bos_token_id": None, "pad_token_id": None, **asdict(settings)}
        projection = given.pop("projection")
        if family != "clip":
            given["projection_size"] = projection
        name = _CLASSES[family]
        with _unset():
            self.text_model = getattr(library, f"{name}TextModel")(getattr(library, f"{name}TextConfig")(**given))
        self.text_projection: nn.Linear | None = None
        if family == "clip":
            self.text_projection = nn.Linear(settings.hidden_size, projection, bias=False)

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        pooled = self.text_model(input_ids=tokens, attention_mask=mask).pooler_output
        return torch.as_tensor(pooled if self.text_projection is None else self.text_projection(pooled))


def _unset() -> Any:
    """Context in which networks get no random weights, which would take longer than reading the right ones."""
    return importlib.import_module("transformers.initialization").no_init_weights()


def _config(folder: Path) -> tuple[str, dict[str, Any]]:
    """Family and configuration of a folder."""
    file = folder / CONFIG
    if not file.exists():
        raise UserError(f"{folder}: no model of transformers here ({CONFIG} is missing); correct the path")
    require("transformers", f"{folder}: a model of transformers")
    check_files(folder)
    config = read_json(file)
    if not isinstance(config, dict):
        raise UserError(f"{file}: expected a JSON object; copy the folder anew")
    return _known(config.get("model_type"), str(file)), config


def _known(family: object, where: str) -> str:
    if family not in FAMILIES:
        raise UserError(
            f"{where}: model_type {str(family)[:60]!r} is not read; those are {', '.join(FAMILIES)}; of other"
            " families there may be a copy for open_clip"
        )
    return str(family)


def _vision(family: str, config: Mapping[str, Any], where: Path) -> TransformerVision:
    library: Any = importlib.import_module("transformers")
    usual = getattr(library, f"{_CLASSES[family]}VisionConfig")
    values = _merged(config, "vision", usual, TransformerVision, where)
    if _part(config, "vision_config", where).get("vision_use_head", True) is not True:
        raise UserError(f"{where}: vision_config.vision_use_head is off: the model has no vector of a picture")
    values["projection"] = config.get("projection_dim", 512) if family == "clip" else values["hidden_size"]
    if family == "siglip2":
        values["image_size"] = None
    elif values["image_size"] is None:
        raise UserError(f"{where}: vision_config: image_size is missing; copy the folder anew")
    else:
        values["num_patches"] = None
    return read_settings(TransformerVision, values, f"{where}: vision_config")


def _text(family: str, config: Mapping[str, Any], where: Path) -> TransformerText:
    library: Any = importlib.import_module("transformers")
    usual = getattr(library, f"{_CLASSES[family]}TextConfig")
    values = _merged(config, "text", usual, TransformerText, where)
    if family == "clip":
        values["projection"] = config.get("projection_dim", 512)
        if values["eos_token_id"] is None:  # the text's vector is that of this token
            raise UserError(f"{where}: text_config: eos_token_id is missing; copy the folder anew")
    else:
        values["projection"] = _part(config, "text_config", where).get("projection_size") or values["hidden_size"]
        values["eos_token_id"] = None  # its vector is that of the last place, whatever stands there
    return read_settings(TransformerText, values, f"{where}: text_config")


def _merged(config: Mapping[str, Any], part: str, usual: Any, kind: type[Any], where: Path) -> dict[str, Any]:
    """Settings of a tower over the library's defaults; old files give them twice, and the second counts."""
    said = {**_part(config, f"{part}_config", where), **_part(config, f"{part}_config_dict", where)}
    listed = [field.name for field in fields(kind) if field.name != "projection"]
    return {name: said[name] if name in said else getattr(usual, name, None) for name in listed}


def _part(config: Mapping[str, Any], name: str, where: Path) -> dict[str, Any]:
    said = config.get(name)
    if said is not None and not isinstance(said, dict):
        raise UserError(f"{where}: {name}: expected a JSON object; copy the folder anew")
    return said or {}


def _owned(name: str, prefixes: tuple[str, ...]) -> str | None:
    return name if name.startswith(prefixes) and not name.endswith(_FORGOTTEN) else None


def _tokenizer(folder: Path, family: str, settings: TransformerText, longest: int | None) -> tuple[str, TokenRules]:
    """The rules of the folder's tokenizer, and how the model reads its tokens."""
    loaded = load_tokenizer(folder)
    where = folder / "tokenizer.json"
    if family == "clip" and loaded.padding_side != "right":
        raise UserError(f"{where}: fills up on the {loaded.padding_side}, which CLIP does not read; {_ANEW}")
    check_vocabulary(len(loaded), settings.vocab_size, where)
    if family == "clip":
        # The first models of OpenAI say 2 and mean the largest number of all.
        wanted = settings.vocab_size - 1 if settings.eos_token_id == 2 else settings.eos_token_id
        check_special({"eos": loaded.eos_token_id}, {"eos": wanted}, where)
    if loaded.pad_token_id is None:
        raise UserError(f"{where}: has no token to fill up with; {_ANEW}")
    lengths = [settings.max_position_embeddings, loaded.model_max_length, longest]
    if not all(one is None or (isinstance(one, int | float) and one > 0) for one in lengths):
        raise UserError(f"{where}: model_max_length is {str(loaded.model_max_length)[:40]!r}, no length; {_ANEW}")
    return rules_of(loaded, folder), TokenRules(
        longest=int(min(one for one in lengths if one)),
        pad=loaded.pad_token_id,
        padded=family != "clip",
        masked=family != "clip" and "attention_mask" in loaded.model_input_names,
        side=loaded.padding_side,
    )


_ANEW = "copy the tokenizer from where the model comes from"


def load_tokenizer(folder: Path) -> Any:
    """Load a folder's tokenizer with transformers.

    Raises:
        UserError: If there is none, or it asks for code.
    """
    file = folder / "tokenizer_config.json"
    if not file.exists() and not (folder / "tokenizer.json").exists():
        raise UserError(f"{folder}: has no tokenizer (tokenizer.json is missing); {_ANEW}")
    said = read_json(file) if file.exists() else {}
    kind = said.get("tokenizer_class") if isinstance(said, dict) else None
    if kind is not None and str(kind).removesuffix("Fast") not in _TOKENIZERS:
        raise UserError(f"{file}: tokenizer_class {str(kind)[:60]!r} is not read; those are {', '.join(_TOKENIZERS)}")
    if (folder / "tokenizer.json").exists():
        check_rules(read_json(folder / "tokenizer.json"), folder / "tokenizer.json")
    library: Any = importlib.import_module("transformers")
    # That of the first SigLIP is a Python program around a library that few have; its file says the same in rules.
    rules = kind == "SiglipTokenizer" and (folder / "tokenizer.json").exists()
    name = "PreTrainedTokenizerFast" if rules else "AutoTokenizer"
    # SigLIP 2 learned from lower case (Tschannen et al. 2025), but its published folders name Gemma's tokenizer, which
    # keeps capitals.
    name = "Siglip2Tokenizer" if kind in ("GemmaTokenizer", "GemmaTokenizerFast") else name
    maker = getattr(library, name, None)
    if maker is None:
        raise UserError(f"{file}: to read it takes a newer transformers; run: pip install -U transformers")
    with without_reports(), loading(folder, "transformers"):
        return maker.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def rules_of(loaded: Any, folder: Path) -> str:
    """Rules of a transformers tokenizer in the format of the library tokenizers."""
    fast = getattr(loaded, "backend_tokenizer", None)
    if fast is None:
        raise UserError(f"{folder}: its tokenizer has no rules that can be kept (tokenizer.json is missing); {_ANEW}")
    return plain_rules(fast.to_str())
