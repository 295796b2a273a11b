"""Models of open_clip: its folders, its own names with a tag, and its networks.

A folder has ``open_clip_config.json``, weights in safetensors and, unless open_clip's own tokenizer is meant, the
tokenizer's files. What a configuration may say of the two towers is listed by name and type.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import torch
from pydantic import Field
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from torch import Tensor

from rungwise.core.configuration import STRICT
from rungwise.core.errors import UserError
from rungwise.core.hub import hub_folder
from rungwise.core.reading import read_json
from rungwise.encoders.options import check_model_name
from rungwise.encoders.preprocessing import Preprocessing
from rungwise.encoders.pretrained.cleaning import cleaner
from rungwise.encoders.pretrained.pictures import open_clip_preprocessing
from rungwise.encoders.pretrained.settings import (
    Layers,
    Length,
    Pixels,
    Share,
    Small,
    Token,
    Width,
    Words,
    read_settings,
)
from rungwise.encoders.pretrained.source import require
from rungwise.encoders.pretrained.tokens import TokenRules, check_special, check_vocabulary, plain_rules
from rungwise.encoders.pretrained.towers import Description, ImageHalf, ImageTower, TextHalf, TextTower
from rungwise.encoders.pretrained.weights import checkpoint_files, load_half

LIBRARY = "open_clip"
CONFIG = "open_clip_config.json"
WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
TOKENIZER_PATTERNS = ("tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model")
PATTERNS = (CONFIG, WEIGHTS[0], *TOKENIZER_PATTERNS)
"""What is fetched of a repository."""
OWN_WORDS = 49408
"""Of the tokenizer that open_clip carries itself."""
_ANEW = "copy the folder anew"
_TEXT_PARTS = ("positional_embedding", "token_embedding", "transformer", "ln_final", "text_projection")
"""First parts of the names of text tensors, where a checkpoint does not put ``text.`` before them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Epsilon:
    """What a layer norm takes.

    Attributes:
        eps: Added to variances.
    """

    __pydantic_config__ = STRICT

    eps: Small


@dataclass(frozen=True)
class Approximate:
    """What the activation takes.

    Attributes:
        approximate: How it is computed.
    """

    __pydantic_config__ = STRICT

    approximate: Literal["tanh", "none"]


@dataclass(frozen=True)
class Blocks:
    """What both towers of open_clip's own say of their blocks, in its names."""

    __pydantic_config__ = STRICT

    width: Width
    mlp_ratio: Annotated[float, Field(gt=0, le=64)]
    ls_init_value: Small | None
    final_ln_after_pool: bool
    output_tokens: Literal[False]
    act_kwargs: Approximate | None
    norm_kwargs: Epsilon | None
    block_type: Literal["default", "custom"] | None
    qk_norm: bool
    scaled_cosine_attn: bool
    scale_heads: bool
    scale_attn_inner: bool
    scale_attn: bool
    scale_fc: bool


@dataclass(frozen=True)
class OpenClipVision(Blocks):
    """``vision_cfg``: a transformer or residual network of open_clip, or one of timm's list."""

    layers: Layers | Annotated[tuple[Layers, Layers, Layers, Layers], Field(strict=False)]
    head_width: Width
    patch_size: Pixels | None
    image_size: Pixels
    patch_dropout: Share
    attentional_pool: bool
    attn_pooler_queries: Width
    attn_pooler_heads: Width
    no_ln_pre: bool
    pos_embed_type: Literal["learnable", "sin_cos_2d"]
    pool_type: Literal["tok", "avg", "none"]
    timm_model_name: str | None
    timm_pool: Literal["", "abs_attn", "avg", "map", "max", "rot_attn", "token"]
    timm_proj: Literal["", "linear", "mlp", "none"] | None
    timm_proj_bias: bool
    timm_drop: Share
    timm_drop_path: Share | None

    def __post_init__(self) -> None:
        if self.timm_model_name is not None:
            check_model_name(self.timm_model_name)


@dataclass(frozen=True)
class OpenClipText(Blocks):
    """``text_cfg``: a transformer of open_clip."""

    context_length: Length
    vocab_size: Words
    heads: Width
    layers: Layers
    embed_cls: Literal[False]
    pad_id: Token
    eos_id: Token
    no_causal_mask: bool
    pool_type: Literal["first", "last", "argmax", "eos"]
    proj_bias: bool
    proj_type: Literal["linear", "none"]


@dataclass(frozen=True)
class Tower:
    """What a tower is made from.

    Attributes:
        embed_dim: Width of the joint space.
        quick_gelu: The activation of OpenAI's first models.
        tower: ``vision_cfg`` or ``text_cfg``.
    """

    __pydantic_config__ = STRICT

    embed_dim: Width
    quick_gelu: bool
    tower: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """Where the parts of a model are.

    Attributes:
        where: What says how it is built: a file, or a name.
        model: ``model_cfg``.
        preprocessing: ``preprocess_cfg``.
        files: Of the weights.
        tokenizer: Folder of the tokenizer's files, if they are needed.
    """

    where: Path
    model: Mapping[str, Any]
    preprocessing: object
    files: list[Path]
    tokenizer: Path


def open_image(place: str) -> ImageHalf:
    """The image side of a folder, of a name with a tag, or of a repository.

    Raises:
        UserError: If it cannot be had, is incomplete or damaged, or asks for what is not listed.
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
    """The text side, likewise."""
    checkpoint = _checkpoint(place)
    settings = _settings(checkpoint, "text_cfg")
    wanted = read_settings(OpenClipText, settings.tower, f"{checkpoint.where}: text_cfg")
    tokenizer, rules = _tokenizer(checkpoint, wanted)
    tower = load_half(lambda: text_tower(LIBRARY, asdict(settings)), checkpoint.files, _owned_by_text, checkpoint.where)
    return TextHalf(cast(TextTower, tower), tokenizer, rules, cleaner(rules.clean))


def image_tower(architecture: str, settings: Mapping[str, Any], where: str = CONFIG) -> ImageTower:
    """The network, without its weights.

    Raises:
        UserError: If the settings are not those of one.
    """
    require("open_clip", "open-clip", "a model of open_clip")
    said = read_settings(Tower, settings, where)
    return _VisionTower(said, read_settings(OpenClipVision, said.tower, f"{where}: vision_cfg"))


def text_tower(architecture: str, settings: Mapping[str, Any], where: str = CONFIG) -> TextTower:
    """The network, without its weights.

    Raises:
        UserError: If the settings are not those of one.
    """
    require("open_clip", "open-clip", "a model of open_clip")
    said = read_settings(Tower, settings, where)
    return _WordTower(said, read_settings(OpenClipText, said.tower, f"{where}: text_cfg"))


_NO_TEXT = {"context_length": 2, "vocab_size": 2, "width": 8, "heads": 1, "layers": 1}
_NO_VISION = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}
"""The other half, which the library makes as well, as small as it can be."""


class _VisionTower(ImageTower):
    def __init__(self, settings: Tower, vision: OpenClipVision) -> None:
        super().__init__()
        self.width = settings.embed_dim
        self.description = Description(LIBRARY, LIBRARY, asdict(settings))
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
        self.description = Description(LIBRARY, LIBRARY, asdict(settings))
        self.text = (
            _library()
            .CustomTextCLIP(
                settings.embed_dim, vision_cfg=_NO_VISION, text_cfg=_given(text), quick_gelu=settings.quick_gelu
            )
            .text
        )

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        return torch.as_tensor(self.text(tokens))


def _library() -> Any:
    return importlib.import_module("open_clip")


def _given(settings: OpenClipVision | OpenClipText) -> dict[str, Any]:
    """As the library takes it; a text tower of its own takes no name of a model that would be fetched."""
    return asdict(settings)


def _checkpoint(place: str) -> Checkpoint:
    require("open_clip", "open-clip", f"open_clip:{place}")
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
    return Checkpoint(file, model, said.get("preprocess_cfg"), checkpoint_files(folder, WEIGHTS), folder)


def _named(name: str, tag: str) -> Checkpoint:
    """A model of open_clip's own list, whose weights are on the hub."""
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
    return Checkpoint(where, model, seen, checkpoint_files(folder, WEIGHTS), tokenizer)


def _settings(checkpoint: Checkpoint, part: Literal["vision_cfg", "text_cfg"]) -> Tower:
    """What the model's configuration says of a tower, over the library's defaults; what is not listed is refused."""
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
    if isinstance(values.get("image_size"), list) and len(set(values["image_size"])) == 1:
        values["image_size"] = values["image_size"][0]
    top = {"embed_dim": checkpoint.model.get("embed_dim"), "quick_gelu": checkpoint.model.get("quick_gelu", False)}
    return read_settings(Tower, {**top, "tower": values}, str(checkpoint.where))


_TOP = {
    "embed_dim", "quick_gelu", "vision_cfg", "text_cfg", "custom_text", "init_logit_scale", "init_logit_bias",
    "nonscalar_logit_scale",
}  # fmt: skip
_ELSEWHERE = {"timm_model_pretrained", "hf_tokenizer_name", "tokenizer_kwargs"}
"""Fields that shape no network: whether others' weights are fetched first, and what is said of the tokenizer."""


def _preprocessing(checkpoint: Checkpoint, side: int) -> Preprocessing:
    vision, text = checkpoint.model["vision_cfg"], checkpoint.model.get("text_cfg") or {}
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


def _tokenizer(checkpoint: Checkpoint, text: OpenClipText) -> tuple[str, TokenRules]:
    """The tokenizer that open_clip would take, as rules, and what is done before."""
    said = checkpoint.model["text_cfg"]
    asked = said.get("tokenizer_kwargs") or {}
    known = {"clean", "strip_sep_token"} if said.get("hf_tokenizer_name") else {"clean"}
    if not isinstance(asked, dict) or asked.keys() - known or said.get("tokenizer_mode"):
        raise UserError(
            f"{checkpoint.where}: tokenizer_kwargs {str(asked)[:80]} are not understood; give another model"
        )
    if not said.get("hf_tokenizer_name"):
        check_vocabulary(OWN_WORDS, text.vocab_size, checkpoint.where)
        clean = _clean(asked.get("clean", "lower"), checkpoint.where)
        return own_rules(), TokenRules(longest=text.context_length, pad=0, clean=clean)
    from rungwise.encoders.pretrained.transformers import load_tokenizer, rules_of

    require("transformers", "hf", f"{checkpoint.where}: its tokenizer")
    folder = checkpoint.tokenizer
    loaded = load_tokenizer(folder)
    check_vocabulary(len(loaded), text.vocab_size, folder / "tokenizer.json")
    if text.pool_type == "eos":
        check_special({"eos": loaded.eos_token_id}, {"eos": text.eos_id}, folder / "tokenizer.json")
    if loaded.pad_token_id is None:
        raise UserError(f"{folder / 'tokenizer.json'}: has no token to fill up with; {_ANEW}")
    return rules_of(loaded, folder), TokenRules(
        longest=text.context_length,
        pad=loaded.pad_token_id,
        side=loaded.padding_side,
        clean=_clean(asked.get("clean", "whitespace"), checkpoint.where),
        zeroed=loaded.sep_token_id if asked.get("strip_sep_token") else None,
    )


def _clean(name: object, where: Path) -> Any:
    if name not in ("lower", "whitespace", "canonicalize"):
        raise UserError(f"{where}: tokenizer_kwargs: clean {str(name)[:60]!r} is not understood; give another model")
    return name


@cache
def own_rules() -> str:
    """open_clip's own tokenizer, which is a Python program, as rules of the library tokenizers.

    Texts are cleaned before (:func:`cleaner`). The numbers are the same, and come 20 times as fast.
    """
    own: Any = _library().SimpleTokenizer()
    start, end = own.sot_token_id, own.eot_token_id
    names = {number: word for word, number in own.encoder.items()}
    rules = Tokenizer(models.BPE(vocab=own.encoder, merges=list(own.bpe_ranks), end_of_word_suffix="</w>"))
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    rules.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    rules.add_special_tokens([names[start], names[end]])
    rules.post_processor = processors.TemplateProcessing(
        single=f"{names[start]} $A {names[end]}", special_tokens=[(names[start], start), (names[end], end)]
    )
    return plain_rules(rules.to_str())
