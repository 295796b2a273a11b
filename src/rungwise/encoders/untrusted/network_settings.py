"""What a stranger's configuration may say of a network: listed by name and type, each within limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from rungwise.core.configuration import STRICT, BelowOne, SomeShare, from_plain
from rungwise.core.errors import UserError

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
        kind: A dataclass that lists them.
        values: Of its fields, and no others.
        where: What to name in an error.

    Raises:
        UserError: Naming the first that is of another type or out of bounds.

    >>> @dataclass(frozen=True)
    ... class Tower:
    ...     layers: Layers
    >>> read_settings(Tower, {"layers": 10**9}, "config.json: text_config")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: config.json: text_config: layers: Input should be less than or equal to 512 ...
    """
    try:
        return from_plain(kind, dict(values), where)
    except UserError as error:
        raise UserError(f"{error}; give a model that this version knows") from None


@dataclass(frozen=True)
class TransformerText:
    """The text tower of CLIP or SigLIP, in the names of transformers.

    Attributes:
        vocab_size: Rows of the table of tokens.
        hidden_size: Width.
        intermediate_size: Width between the two layers of each block.
        num_hidden_layers: Blocks.
        num_attention_heads: Heads of each.
        max_position_embeddings: Context length.
        hidden_act: Activation.
        layer_norm_eps: Added to variances.
        attention_dropout: In training.
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
    """The image tower of CLIP or SigLIP, in the names of transformers; see :class:`TransformerText`.

    Attributes:
        hidden_size: Width.
        intermediate_size: Width between the two layers of each block.
        num_hidden_layers: Blocks.
        num_attention_heads: Heads of each.
        num_channels: Always 3.
        image_size: Side of the picture; None for patches of pictures of any size.
        patch_size: Side of a patch.
        hidden_act: Activation.
        layer_norm_eps: Added to variances.
        attention_dropout: In training.
        projection: Width of the joint space.
        num_patches: Rows of the table of places, for pictures of any size.
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
