"""Allowed settings of open_clip's two towers, under its names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from rungwise.core import STRICT, BelowOne, SomeShare
from rungwise.encoders.untrusted import Layers, Length, Pixels, Token, Width, Words, check_model_name


@dataclass(frozen=True)
class Epsilon:
    """Settings of a layer norm.

    Attributes:
        eps: Number added to variances.
    """

    __pydantic_config__ = STRICT

    eps: SomeShare


@dataclass(frozen=True)
class Approximate:
    """Settings of the activation."""

    __pydantic_config__ = STRICT

    approximate: Literal["tanh", "none"]


@dataclass(frozen=True)
class TransformerBlocks:
    """Settings of the blocks in both of open_clip's own towers, under its names."""

    __pydantic_config__ = STRICT

    width: Width
    mlp_ratio: Annotated[float, Field(gt=0, le=64)]
    ls_init_value: SomeShare | None
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
class OpenClipVision(TransformerBlocks):
    """``vision_cfg``: a transformer or residual network of open_clip, or one of timm's list."""

    layers: Layers | Annotated[tuple[Layers, Layers, Layers, Layers], Field(strict=False)]
    head_width: Width
    patch_size: Pixels | None
    image_size: Pixels
    patch_dropout: BelowOne
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
    timm_drop: BelowOne
    timm_drop_path: BelowOne | None

    def __post_init__(self) -> None:
        if self.timm_model_name is not None:
            check_model_name(self.timm_model_name)


@dataclass(frozen=True)
class OpenClipText(TransformerBlocks):
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
    """Settings of a tower.

    Attributes:
        embed_dim: Width of the joint space.
        quick_gelu: Whether the activation is that of OpenAI's first models.
        tower: ``vision_cfg`` or ``text_cfg``.
    """

    __pydantic_config__ = STRICT

    embed_dim: Width
    quick_gelu: bool
    tower: dict[str, Any]
