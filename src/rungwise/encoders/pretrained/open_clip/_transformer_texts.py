"""Text towers of open_clip that are networks of transformers, such as XLM-RoBERTa, with pooling and a projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rungwise.core import STRICT, UserError, read_json
from rungwise.core.network import hub_folder
from rungwise.encoders.pretrained._towers import NetworkDescription, TextTower
from rungwise.encoders.untrusted import EncoderSettings, Width, network_of, read_settings, states_of

ARCHITECTURE = "transformers"
"""Name of such a tower in a network's description."""
NETWORKS = ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large", "bert-base-uncased")
"""Allowed values of ``hf_model_name``; the configuration of that name is read, and no weights."""
_POOLERS = {"mean_pooler": "mean", "cls_last_hidden_state_pooler": "first"}
_NO_MATTER = {"hf_model_name", "hf_tokenizer_name", "hf_model_pretrained", "tokenizer_kwargs", "context_length"}
_FORGOTTEN = ("position_ids", "token_type_ids")
"""Suffixes of tensors in checkpoints that networks compute themselves."""


@dataclass(frozen=True)
class ForeignText:
    """Settings of such a tower.

    Attributes:
        embed_dim: Width of the joint space.
        pool: How states are pooled: their mean, or the first.
        proj: Projection into the joint space.
        network: Settings of the network.
    """

    __pydantic_config__ = STRICT

    embed_dim: Width
    pool: Literal["mean", "first"]
    proj: Literal["linear", "mlp"] | None
    network: EncoderSettings


def foreign_text(said: Mapping[str, Any], embed_dim: object, where: Path) -> ForeignText:
    """Settings of the network of transformers in ``text_cfg``, with the sizes that its name stands for.

    Args:
        said: ``text_cfg``.
        embed_dim: Width of the joint space.
        where: File that holds it, for errors.

    Raises:
        UserError: If the network is not listed, or its configuration cannot be loaded.
    """
    name = said.get("hf_model_name")
    if name not in NETWORKS:
        raise UserError(
            f"{where}: text_cfg: hf_model_name {str(name)[:60]!r} is not read; those are {', '.join(NETWORKS)}"
        )
    pool = _POOLERS.get(str(said.get("hf_pooler_type", said.get("pooler_type", "mean_pooler"))))
    if left := said.keys() - _NO_MATTER - {"hf_pooler_type", "pooler_type", "hf_proj_type", "proj"}:
        raise UserError(f"{where}: text_cfg: {sorted(left)[0][:60]!r} is not read; give another model")
    if pool is None:
        raise UserError(f"{where}: text_cfg: hf_pooler_type is not read; those are {', '.join(_POOLERS)}")
    file = hub_folder(str(name), ("config.json",)) / "config.json"
    sizes = read_json(file)
    if not isinstance(sizes, dict):
        raise UserError(f"{file}: expected a JSON object; fetch it anew")
    known = {key: sizes[key] for key in EncoderSettings.__dataclass_fields__ if sizes.get(key) is not None}
    values = {
        "embed_dim": embed_dim,
        "pool": pool,
        "proj": said.get("hf_proj_type", said.get("proj", "mlp")),
        "network": known,
    }
    return read_settings(ForeignText, values, f"{where}: text_cfg")


def owned_by_foreign_text(name: str) -> str | None:
    """The tower's name of a tensor in a checkpoint; None for tensors of other parts."""
    plain = name.removeprefix("module.")
    if not plain.startswith(("text.transformer.", "text.proj.")) or plain.endswith(_FORGOTTEN):
        return None
    return plain.removeprefix("text.")


class ForeignTower(TextTower):
    """The network, pooling of its states, and the projection; ``library`` stands in its description."""

    def __init__(self, library: str, settings: ForeignText) -> None:
        super().__init__()
        self.width = settings.embed_dim
        self.rows = settings.network.vocab_size
        self.description = NetworkDescription(library, ARCHITECTURE, asdict(settings))
        self.pool, self.pad = settings.pool, settings.network.pad_number
        self.transformer = network_of(settings.network)
        config: Any = self.transformer.config
        self.proj = _projection(settings.proj, int(config.hidden_size), settings.embed_dim)

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """(n, width) vectors; padding is recognised by its token, as open_clip does, and ``mask`` is not read."""
        counts = tokens != self.pad
        states = states_of(self.transformer, tokens, counts.long())
        if self.pool == "first":
            return torch.as_tensor(self.proj(states[:, 0]))
        weights = counts[..., None].to(states.dtype)
        return torch.as_tensor(self.proj((states * weights).sum(dim=1) / weights.sum(dim=1)))


def _projection(kind: Literal["linear", "mlp"] | None, inputs: int, outputs: int) -> nn.Module:
    if kind == "linear":
        return nn.Linear(inputs, outputs, bias=False)
    if kind == "mlp":
        middle = (inputs + outputs) // 2
        layers = nn.Linear(inputs, middle, bias=False), nn.GELU(), nn.Linear(middle, outputs, bias=False)
        return nn.Sequential(*layers)
    if inputs != outputs:
        raise UserError(f"hf_proj_type is null, but the network's {inputs} numbers are not the model's {outputs}")
    return nn.Identity()
