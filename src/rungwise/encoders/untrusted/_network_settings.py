"""Settings of a network in a stranger's configuration: listed by name and type, each within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from rungwise.core import STRICT, BelowOne, SomeShare, UserError, from_plain

T = TypeVar("T")

Activation = Literal[
    "gelu", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh", "mish", "quick_gelu", "relu", "relu6",
    "sigmoid", "silu", "swish", "tanh",
]  # fmt: skip
Width = Annotated[int, Field(ge=1, le=1 << 16, strict=True)]
Layers = Annotated[int, Field(ge=1, le=512, strict=True)]
Words = Annotated[int, Field(ge=1, le=1 << 24, strict=True)]
Length = Annotated[int, Field(ge=2, le=1 << 14, strict=True)]
Pixels = Annotated[int, Field(ge=1, le=4096, strict=True)]
Token = Annotated[int, Field(ge=0, le=1 << 24, strict=True)]


def read_settings(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """Typed settings of a part of a network.

    Args:
        kind: Dataclass that lists the settings.
        values: Values of its fields, and of no others.
        where: Name of the file and part in errors.

    Raises:
        UserError: Naming the first value that has another type or is out of bounds.
    """
    try:
        return from_plain(kind, dict(values), where)
    except UserError as error:
        raise UserError(f"{error}; give a model that this version knows") from None


@dataclass(frozen=True)
class TransformerText:
    """Settings of the text tower of CLIP or SigLIP, under transformers' names.

    Attributes:
        vocab_size: Rows of the table of tokens.
        hidden_size: Width of the states.
        intermediate_size: Width between the two layers of each block.
        num_hidden_layers: Number of blocks.
        num_attention_heads: Number of attention heads in each block.
        max_position_embeddings: Context length.
        hidden_act: Activation between the two layers of each block.
        layer_norm_eps: Number added to variances.
        attention_dropout: Dropout of attention in training.
        eos_token_id: The token whose state is the text's vector (CLIP).
        projection: Width of the joint space.
    """

    __pydantic_config__ = STRICT

    vocab_size: Words
    hidden_size: Width
    intermediate_size: Width
    num_hidden_layers: Layers
    num_attention_heads: Width
    max_position_embeddings: Length
    hidden_act: Activation
    layer_norm_eps: SomeShare
    attention_dropout: BelowOne
    eos_token_id: Token | None
    projection: Width


@dataclass(frozen=True)
class TransformerVision:
    """Settings of the image tower of CLIP or SigLIP, under transformers' names.

    Attributes:
        hidden_size: Width of the states.
        intermediate_size: Width between the two layers of each block.
        num_hidden_layers: Number of blocks.
        num_attention_heads: Number of attention heads in each block.
        num_channels: Always 3.
        image_size: Side of the picture; None for patches of pictures of any size.
        patch_size: Side of a patch.
        hidden_act: Activation between the two layers of each block.
        layer_norm_eps: Number added to variances.
        attention_dropout: Dropout of attention in training.
        projection: Width of the joint space.
        num_patches: Rows of the table of positions, for pictures of any size.
    """

    __pydantic_config__ = STRICT

    hidden_size: Width
    intermediate_size: Width
    num_hidden_layers: Layers
    num_attention_heads: Width
    num_channels: Literal[3]
    image_size: Pixels | None
    patch_size: Pixels
    hidden_act: Activation
    layer_norm_eps: SomeShare
    attention_dropout: BelowOne
    projection: Width
    num_patches: Width | None = None
