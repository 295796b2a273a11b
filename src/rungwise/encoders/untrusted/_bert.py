"""Text networks of the BERT family, which transformers builds from the settings listed here.

A configuration of transformers may ask for much besides a network's sizes. Only what is listed is read from it, and
saved with a model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor, nn

from rungwise.core import STRICT, BelowOne, SomeShare, UserError, require
from rungwise.encoders.untrusted._network_settings import Activation, Layers, Length, Token, Width, Words

Family = Literal[
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet", "roberta",
    "xlm-roberta",
]  # fmt: skip
_OFFSET = ("camembert", "roberta", "xlm-roberta")
"""Families whose positions are counted from the number of the padding token plus one; mpnet's always from 2."""
_SHARED = ("albert",)
"""Families whose layers share one set of weights."""

Small0 = Annotated[int, Field(ge=0, le=1 << 16, strict=True)]
Positions = Annotated[int, Field(ge=-1, le=1 << 16, strict=True)]
Attention = Literal["full_attention", "sliding_attention"]


@dataclass(frozen=True)
class Rope:
    """Rotary positions of one kind of layer.

    Attributes:
        rope_theta: Base of the frequencies.
        rope_type: Scaling of the frequencies; only none is supported.
    """

    __pydantic_config__ = STRICT

    rope_theta: Annotated[float, Field(gt=0, le=1e9)]
    rope_type: Literal["default"] = "default"


@dataclass(frozen=True)
class EncoderSettings:
    """Settings of a network under transformers' names; None is that library's default."""

    __pydantic_config__ = STRICT

    model_type: Family
    vocab_size: Words
    hidden_size: Width | None = None
    intermediate_size: Width | None = None
    num_hidden_layers: Layers | None = None
    num_attention_heads: Width | None = None
    dim: Width | None = None
    hidden_dim: Width | None = None
    n_layers: Layers | None = None
    n_heads: Width | None = None
    embedding_size: Width | None = None
    num_hidden_groups: Layers | None = None
    inner_group_num: Layers | None = None
    max_position_embeddings: Length | None = None
    type_vocab_size: Small0 | None = None
    sinusoidal_pos_embds: bool | None = None
    hidden_act: Activation | None = None
    activation: Activation | None = None
    hidden_activation: Activation | None = None
    hidden_dropout_prob: BelowOne | None = None
    attention_probs_dropout_prob: BelowOne | None = None
    dropout: BelowOne | None = None
    attention_dropout: BelowOne | None = None
    embedding_dropout: BelowOne | None = None
    mlp_dropout: BelowOne | None = None
    layer_norm_eps: SomeShare | None = None
    norm_eps: SomeShare | None = None
    norm_bias: bool | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    relative_attention: bool | None = None
    relative_attention_num_buckets: Width | None = None
    max_relative_positions: Positions | None = None
    position_buckets: Positions | None = None
    position_biased_input: bool | None = None
    pos_att_type: list[Literal["p2c", "c2p", "p2p"]] | None = None
    share_att_key: bool | None = None
    norm_rel_ebd: Literal["none", "layer_norm"] | None = None
    layer_types: Annotated[list[Attention], Field(max_length=512)] | None = None
    local_attention: Width | None = None
    rope_parameters: dict[Attention, Rope] | None = None
    pad_token_id: Token | None = None
    bos_token_id: Token | None = None
    eos_token_id: Token | None = None
    cls_token_id: Token | None = None
    sep_token_id: Token | None = None

    @property
    def layers(self) -> int | None:
        """Number of layers."""
        return self.n_layers if self.model_type == "distilbert" else self.num_hidden_layers

    @property
    def pad_number(self) -> int:
        """Number of the padding token."""
        return self.pad_token_id or 0

    @property
    def positions(self) -> int | None:
        """Largest number of tokens that have positions of their own; None without such a limit."""
        if self.max_position_embeddings is None:
            return None
        first = 2 if self.model_type == "mpnet" else self.pad_number + 1 if self.model_type in _OFFSET else 0
        return self.max_position_embeddings - first

    def keeping(self, layers: int) -> EncoderSettings:
        """The same network with its first layers only."""
        _check_layers("keep_layers", layers, self)
        if self.model_type == "distilbert":
            return replace(self, n_layers=layers)
        types = self.layer_types and self.layer_types[:layers]
        return replace(self, num_hidden_layers=layers, layer_types=types)


def settings_of(config: Any) -> dict[str, Any]:
    """The listed settings of a configuration of transformers."""
    said = config.to_dict()
    known = {field.name: said.get(field.name) for field in fields(EncoderSettings)}
    return {"model_type": config.model_type} | {name: value for name, value in known.items() if value is not None}


def network_of(settings: EncoderSettings) -> nn.Module:
    """The network without its weights, and without the layer that some families add for classification.

    Raises:
        UserError: If transformers is not installed, or the settings do not fit each other.
    """
    require("transformers", "the text encoder", extra="sentences")
    import transformers
    from transformers.initialization import no_init_weights

    library: Any = transformers
    said = {name: value for name, value in asdict(settings).items() if value is not None}
    try:
        with no_init_weights():
            network = library.AutoModel.from_config(library.AutoConfig.for_model(said.pop("model_type"), **said))
    except _UNFIT as error:
        reason = (" ".join(str(error).split()) or type(error).__name__)[:160]
        raise UserError(f"no network can be built of these settings ({reason}); copy the folder anew") from error
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # what it gives is not used
    assert isinstance(network, nn.Module)
    return network


_UNFIT = (AssertionError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


def layers_of(network: nn.Module) -> nn.ModuleList:
    """The layers from input to output."""
    inner: Any = getattr(network, "transformer", None) or getattr(network, "encoder", network)
    found = getattr(inner, "layer", None) or getattr(inner, "layers", None) or inner.albert_layer_groups
    assert isinstance(found, nn.ModuleList)
    return found


def train_last(network: nn.Module, layers: int, settings: EncoderSettings) -> None:
    """Turn gradients off for all but the last layers and what follows them."""
    _check_layers("train_layers", layers, settings)
    listed = layers_of(network)
    trained = {id(weight) for layer in listed[len(listed) - layers :] for weight in layer.parameters()}
    after = False
    for weight in network.parameters():
        after = after or id(weight) in trained
        weight.requires_grad_(after)


def _check_layers(name: str, layers: int, settings: EncoderSettings) -> None:
    if settings.model_type in _SHARED:
        raise UserError(f"text.{name}: the layers of {settings.model_type} share their weights; leave it out")
    if settings.layers is not None and layers > settings.layers:
        raise UserError(f"text.{name} is {layers}, but the encoder has {settings.layers} layers")


def states_of(network: nn.Module, tokens: Tensor, mask: Tensor) -> Tensor:
    """(n, longest, D) states of the last layer, from (n, longest) tokens and their mask."""
    states: Tensor = network(input_ids=tokens, attention_mask=mask).last_hidden_state
    return states
