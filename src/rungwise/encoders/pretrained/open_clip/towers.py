"""Models of open_clip: its folders, its own names with a tag, and its networks.

A folder has ``open_clip_config.json``, weights in safetensors and, unless open_clip's own tokenizer is used, the
tokenizer's files. The settings of the two towers that are accepted are listed by name and type.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from rungwise.core import UserError, read_json, require
from rungwise.core.network import hub_folder
from rungwise.core.output import short_repr
from rungwise.encoders._preprocessing import Preprocessing
from rungwise.encoders.pretrained._preprocessing import open_clip_preprocessing
from rungwise.encoders.pretrained._towers import ImageHalf, ImageTower, NetworkDescription, TextHalf, TextTower
from rungwise.encoders.pretrained._weights import checkpoint_files, load_half
from rungwise.encoders.pretrained.open_clip._text_cleaning import cleaner
from rungwise.encoders.pretrained.open_clip._texts import tokenizer_of
from rungwise.encoders.pretrained.open_clip._tower_settings import OpenClipText, OpenClipVision, Tower
from rungwise.encoders.pretrained.open_clip._transformer_texts import (
    ARCHITECTURE,
    ForeignText,
    ForeignTower,
    foreign_text,
    owned_by_foreign_text,
)
from rungwise.encoders.untrusted import read_settings

__all__ = [
    "CONFIG",
    "LIBRARY",
    "PATTERNS",
    "TOKENIZER_PATTERNS",
    "WEIGHTS",
    "OpenClipCheckpoint",
    "image_tower",
    "open_image",
    "open_text",
    "text_tower",
]

LIBRARY = "open_clip"
CONFIG = "open_clip_config.json"
WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
TOKENIZER_PATTERNS = ("tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model")
PATTERNS = (CONFIG, WEIGHTS[0], *TOKENIZER_PATTERNS)
"""Files that are downloaded from a repository."""
_ANEW = "copy the folder anew"
_TEXT_PARTS = ("positional_embedding", "token_embedding", "transformer", "ln_final", "text_projection")
"""First parts of the names of text tensors in checkpoints that do not prefix them with ``text.``."""

T = TypeVar("T")


@dataclass(frozen=True)
class OpenClipCheckpoint:
    """The parts of a checkpoint.

    Attributes:
        where: File or name of the configuration, for errors.
        model: ``model_cfg`` of the configuration.
        preprocessing: ``preprocess_cfg`` of the configuration.
        files: Files of the weights.
        tokenizer: Folder of the tokenizer's files, if they are needed.
    """

    where: Path
    model: Mapping[str, Any]
    preprocessing: object
    files: list[Path]
    tokenizer: Path

    __repr__ = short_repr


def open_image(place: str) -> ImageHalf:
    """Open the image side of a folder, of a name with a tag, or of a repository.

    Raises:
        UserError: If it cannot be loaded, is incomplete or damaged, or has settings that are not listed.
    """
    checkpoint = _checkpoint(place)
    settings = _settings(checkpoint, "vision_cfg")
    side = read_settings(OpenClipVision, settings.tower, f"{checkpoint.where}: vision_cfg").image_size
    seen = _preprocessing(checkpoint, side)
    tower = load_half(
        lambda: image_tower(LIBRARY, asdict(settings)), checkpoint.files, _owned_by_image, checkpoint.where
    )
    return ImageHalf(cast(ImageTower, tower), seen)


def open_text(place: str) -> TextHalf:
    """Open the text side of a folder, of a name with a tag, or of a repository.

    Raises:
        UserError: If it cannot be loaded, is incomplete or damaged, or has settings that are not listed.
    """
    checkpoint = _checkpoint(place)
    said = checkpoint.model.get("text_cfg")
    if isinstance(said, dict) and said.get("hf_model_name"):
        return _open_foreign_text(checkpoint, said)
    settings = _settings(checkpoint, "text_cfg")
    wanted = read_settings(OpenClipText, settings.tower, f"{checkpoint.where}: text_cfg")
    tokenizer, rules = tokenizer_of(
        said or {}, checkpoint.where, checkpoint.tokenizer, wanted.context_length, wanted.vocab_size, wanted
    )
    tower = load_half(lambda: text_tower(LIBRARY, asdict(settings)), checkpoint.files, _owned_by_text, checkpoint.where)
    return TextHalf(cast(TextTower, tower), tokenizer, rules, cleaner(rules.clean))


def _open_foreign_text(checkpoint: OpenClipCheckpoint, said: Mapping[str, Any]) -> TextHalf:
    """Open a text side whose network is one of transformers."""
    settings = foreign_text(said, checkpoint.model.get("embed_dim"), checkpoint.where)
    length = said.get("context_length", 77)
    if not isinstance(length, int) or not 2 <= length <= (settings.network.positions or length):
        raise UserError(f"{checkpoint.where}: text_cfg: context_length {str(length)[:40]} does not fit the network")
    tokenizer, rules = tokenizer_of(said, checkpoint.where, checkpoint.tokenizer, length, settings.network.vocab_size)
    tower = load_half(
        lambda: ForeignTower(LIBRARY, settings), checkpoint.files, owned_by_foreign_text, checkpoint.where
    )
    # What fills up is passed over by this network, so that none is needed after the longest text.
    rules = replace(rules, padded=False)
    return TextHalf(cast(TextTower, tower), tokenizer, rules, cleaner(rules.clean))


def image_tower(architecture: str, settings: Mapping[str, Any], where: str = CONFIG) -> ImageTower:
    """The image network, without its weights."""
    require("open_clip", "a model of open_clip")
    said = read_settings(Tower, settings, where)
    return _VisionTower(said, read_settings(OpenClipVision, said.tower, f"{where}: vision_cfg"))


def text_tower(architecture: str, settings: Mapping[str, Any], where: str = CONFIG) -> TextTower:
    """The text network, without its weights."""
    require("open_clip", "a model of open_clip")
    if architecture == ARCHITECTURE:
        return ForeignTower(LIBRARY, read_settings(ForeignText, settings, where))
    said = read_settings(Tower, settings, where)
    return _WordTower(said, read_settings(OpenClipText, said.tower, f"{where}: text_cfg"))


_NO_TEXT = {"context_length": 2, "vocab_size": 2, "width": 8, "heads": 1, "layers": 1}
_NO_VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
"""Smallest settings of the other half, which the library builds as well."""


class _VisionTower(ImageTower):
    def __init__(self, settings: Tower, vision: OpenClipVision) -> None:
        super().__init__()
        self.width = settings.embed_dim
        self.description = NetworkDescription(LIBRARY, LIBRARY, asdict(settings))
        self.visual = (
            _library()
            .CustomTextCLIP(
                settings.embed_dim, vision_cfg=_given(vision), text_cfg=_NO_TEXT, quick_gelu=settings.quick_gelu
            )
            .visual
        )

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.as_tensor(self.visual(pixels))


class _WordTower(TextTower):
    def __init__(self, settings: Tower, text: OpenClipText) -> None:
        super().__init__()
        self.width = settings.embed_dim if text.proj_type == "linear" else text.width
        self.rows = text.vocab_size
        self.description = NetworkDescription(LIBRARY, LIBRARY, asdict(settings))
        self.text = (
            _library()
            .CustomTextCLIP(
                settings.embed_dim, vision_cfg=_NO_VISION, text_cfg=_given(text), quick_gelu=settings.quick_gelu
            )
            .text
        )

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        text: Any = self.text
        if tokens.shape[1] == text.context_length:
            return torch.as_tensor(text(tokens))
        # What the library computes, without the empty places after the texts, which under a causal mask change nothing.
        length = tokens.shape[1]
        states = text.token_embedding(tokens) + text.positional_embedding[:length]
        states = text.ln_final(text.transformer(states, attn_mask=text.attn_mask[:length, :length]))
        ends = states[torch.arange(len(tokens), device=tokens.device), tokens.argmax(dim=1)]
        if text.text_projection is None:
            return torch.as_tensor(ends)
        if isinstance(text.text_projection, nn.Linear):
            return torch.as_tensor(text.text_projection(ends))
        return torch.as_tensor(ends @ text.text_projection)


def _library() -> Any:
    return importlib.import_module("open_clip")


def _given(settings: OpenClipVision | OpenClipText) -> dict[str, Any]:
    """Settings for the library's constructors."""
    return asdict(settings)


def _checkpoint(place: str) -> OpenClipCheckpoint:
    require("open_clip", f"open_clip:{place}")
    folder = Path(place).expanduser()
    name, _, tag = place.partition("/")
    if not folder.is_dir() and name in _library().list_models():
        return _named(name, tag)
    if not folder.is_dir():
        folder = hub_folder(place, PATTERNS, prefix="open_clip:")
    file = folder / CONFIG
    if not file.exists():
        raise UserError(f"{folder}: no model of open_clip here ({CONFIG} is missing); correct the path")
    said = read_json(file)
    model = said.get("model_cfg") if isinstance(said, dict) else None
    if not isinstance(model, dict):
        raise UserError(f"{file}: model_cfg is missing; {_ANEW}")
    return OpenClipCheckpoint(file, model, said.get("preprocess_cfg"), checkpoint_files(folder, WEIGHTS), folder)


def _named(name: str, tag: str) -> OpenClipCheckpoint:
    """A model of open_clip's own list, with weights from the hub."""
    library, where = _library(), Path(f"open_clip:{name}/{tag}")
    tags = library.list_pretrained_tags_by_model(name)
    if tag not in tags:
        raise UserError(f"open_clip:{name}: has no weights {tag!r}; there are {', '.join(tags) or 'none'}")
    model, known = library.get_model_config(name), library.get_pretrained_cfg(name, tag)
    if bool(known.get("quick_gelu")) != bool(model.get("quick_gelu")):
        other = name.removesuffix("-quickgelu") if model.get("quick_gelu") else f"{name}-quickgelu"
        raise UserError(f"{where}: the weights were trained with another activation; use open_clip:{other}/{tag}")
    repository = str(known.get("hf_hub", "")).rpartition("/")[0]
    if not repository:
        raise UserError(f"{where}: its weights are a pickle, which can run code and is not read; give another model")
    folder = hub_folder(repository, PATTERNS, prefix="open_clip:")
    wanted = model["text_cfg"].get("hf_tokenizer_name")
    tokenizer = hub_folder(wanted, TOKENIZER_PATTERNS, prefix="open_clip:") if wanted else folder
    seen = {key: known.get(key) for key in ("mean", "std", "interpolation", "resize_mode")}
    return OpenClipCheckpoint(where, model, seen, checkpoint_files(folder, WEIGHTS), tokenizer)


def _settings(checkpoint: OpenClipCheckpoint, part: Literal["vision_cfg", "text_cfg"]) -> Tower:
    """A tower's settings over the library's defaults; unlisted ones are refused."""
    said = checkpoint.model.get(part)
    if not isinstance(said, dict):
        raise UserError(f"{checkpoint.where}: {part} is missing; {_ANEW}")
    for name in checkpoint.model:
        if name not in _TOP:
            raise UserError(f"{checkpoint.where}: model_cfg: {str(name)[:60]!r} is not read; give another model")
    library = _library()
    vision = part == "vision_cfg"
    usual = asdict(library.CLIPVisionCfg() if vision else library.CLIPTextCfg())
    listed = {field.name for field in fields(OpenClipVision if vision else OpenClipText)}
    for name in said:
        if name not in listed | _ELSEWHERE:
            raise UserError(f"{checkpoint.where}: {part}: {str(name)[:60]!r} is not read; give another model")
    values = {name: said.get(name, usual[name]) for name in listed}
    sides = values.get("image_size")
    if isinstance(sides, list) and sides and all(one == sides[0] for one in sides):
        values["image_size"] = sides[0]
    top = {"embed_dim": checkpoint.model.get("embed_dim"), "quick_gelu": checkpoint.model.get("quick_gelu", False)}
    return read_settings(Tower, {**top, "tower": values}, str(checkpoint.where))


_TOP = {
    "embed_dim", "quick_gelu", "vision_cfg", "text_cfg", "custom_text", "init_logit_scale", "init_logit_bias",
    "nonscalar_logit_scale",
}  # fmt: skip
_ELSEWHERE = {"timm_model_pretrained", "hf_tokenizer_name", "tokenizer_kwargs"}
"""Fields that do not shape the network: whether other weights are downloaded first, and tokenizer settings."""


def _preprocessing(checkpoint: OpenClipCheckpoint, side: int) -> Preprocessing:
    vision, text = checkpoint.model["vision_cfg"], checkpoint.model.get("text_cfg")
    if not isinstance(text, dict):
        raise UserError(f"{checkpoint.where}: text_cfg is missing; {_ANEW}")
    names = f"{vision.get('timm_model_name')} {text.get('hf_tokenizer_name')}".lower()
    siglip = "siglip" in names or "init_logit_bias" in checkpoint.model
    return open_clip_preprocessing(checkpoint.preprocessing, side, checkpoint.where, siglip=siglip)


def _owned_by_image(name: str) -> str | None:
    plain = name.removeprefix("module.")
    return plain if plain.startswith("visual.") else None


def _owned_by_text(name: str) -> str | None:
    plain = name.removeprefix("module.")
    if plain.startswith("text."):
        return plain
    return f"text.{plain}" if plain.split(".")[0] in _TEXT_PARTS else None
