"""Models that read two texts together and score them: found, checked, and loaded without a network.

Relevance degrees score pairs with them, and training makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, read_json, require
from rungwise.core.output import short_repr
from rungwise.language._model_folders import checked_folder
from rungwise.language.sentence_models import (
    PACKAGED_MODEL,
    TRIED,
    Precision,
    loading,
    sentence_folder,
    without_bars,
    without_reports,
)

if TYPE_CHECKING:
    from torch import Tensor

SAID = "rungwise"
"""Key of ``config.json`` under which a model that was trained here records the meaning of its output."""


@dataclass(frozen=True)
class PairModel:
    """A network for pairs of texts with its tokenizer.

    Attributes:
        tokenizer: A tokenizer of transformers, which gives it no type.
        network: A sequence-classification model of transformers, which gives it no type either.
        max_length: Tokens of a pair beyond which the longer text is cut.
    """

    tokenizer: Any
    network: Any
    max_length: int

    __repr__ = short_repr

    @property
    def outputs(self) -> int:
        """Number of outputs for a pair."""
        return int(self.network.config.num_labels)

    def logits(self, first: Sequence[str], second: Sequence[str], precision: Precision = "float32") -> Tensor:
        """(pairs, outputs) float32 of ``first[k]`` read together with ``second[k]``, on the network's device."""
        import torch

        device = self.network.device
        batch = self.tokenizer(
            list(first),
            list(second),
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        ).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            given: Tensor = self.network(**batch).logits
        return given.float()


def load_pair_model(
    model: str | Path, *, outputs: int | None = None, device: str = "cpu", max_length: int | None = None
) -> PairModel:
    """A model of pairs by its name on the hub, its folder, or :data:`PACKAGED_MODEL`.

    Args:
        model: Weights in safetensors of a network for texts. The packaged one has no outputs of its own.
        outputs: Number of outputs to put on the network, drawn by torch's generator where it has another number of them
            or none; None takes those that it has. A pooler that was published without weights is drawn likewise.
        device: Device of the network.
        max_length: Most tokens of a pair; None takes the model's own limit.

    Raises:
        UserError: If transformers is not installed, or the model cannot be loaded, lacks weights, or asks for what is
            not allowed.
    """
    require("transformers", f"{model}: a cross-encoder", extra="sentences")
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    packaged = outputs is not None and str(model) == PACKAGED_MODEL  # an encoder alone, which scores nothing yet
    place = str(sentence_folder(model)) if packaged else checked_folder(model, "cross-encoder")
    alone: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    network: Any
    head: dict[str, Any] = {} if outputs is None else {"num_labels": outputs}
    with without_bars(), loading(model, "sequence-classification"), without_reports():
        tokenizer: Any = AutoTokenizer.from_pretrained(place, **alone)
        network, found = AutoModelForSequenceClassification.from_pretrained(
            place,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # whose names come back, and not its advice to ignore them
            dtype=torch.float32,  # whatever they were saved in: the precision is that of the computation
            **alone,
            **head,
        )
        _check_weights(model, network, found, new_outputs=outputs is not None)
        longest = _longest(tokenizer, network)
        with torch.inference_mode():
            network.eval()(
                **tokenizer([TRIED], [TRIED], padding=True, truncation=True, max_length=8, return_tensors="pt")
            )
    return PairModel(tokenizer, network.to(device), min(max_length or longest, longest))


def said_scale(model: str | Path) -> str | None:
    """Meaning of the output of a model in a folder, if it was trained here; None where that is not known."""
    try:
        found = read_json(Path(model).expanduser() / "config.json")
    except (UserError, RuntimeError):
        return None  # whoever loads the model says what is wrong with it
    said = found.get(SAID) if isinstance(found, Mapping) else None
    scale = said.get("scale") if isinstance(said, Mapping) else None
    return "sigmoid" if scale == "sigmoid" else None


def _check_weights(model: str | Path, network: Any, found: Mapping[str, Any], *, new_outputs: bool) -> None:
    """Refuse a network with randomly drawn weights, except new outputs that were asked for."""
    missing, misshapen = set(found["missing_keys"]), {name for name, *_ in found["mismatched_keys"]}
    prefix = f"{network.base_model_prefix}."
    outputs = {name for name in missing | misshapen if not name.startswith(prefix)}
    if not new_outputs and outputs & missing:
        raise UserError(
            f"{model}: an encoder without an output for pairs ({min(outputs & missing)} is missing), so that its scores"
            " would be random; train one: rungwise relevance train-cross-encoder"
        )
    allowed = {*outputs, *(name for name in missing if "pooler" in name)} if new_outputs else set()
    wrong = (missing | misshapen) - allowed
    if wrong:
        raise UserError(
            f"{model}: weights are missing or have other shapes than config.json says ({len(wrong)}, such as"
            f" {min(wrong)}); copy the folder anew"
        )


def _longest(tokenizer: Any, network: Any) -> int:
    """Most tokens that a model reads; tokenizers without a limit have a huge number."""
    most = int(min(tokenizer.model_max_length, getattr(network.config, "max_position_embeddings", 512)))
    for name, part in network.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            # The family of RoBERTa counts positions from behind the padding's.
            most = min(most, part.num_embeddings - part.padding_idx - 1)
    if most < 1:
        raise ValueError(f"its longest text has {most} tokens")
    return most
