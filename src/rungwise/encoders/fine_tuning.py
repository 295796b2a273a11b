"""What fine-tuning asks of any encoder: how deep its layers lie, and to compute them anew instead of keeping them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn


def layer_depths(names: Iterable[str]) -> dict[str, int]:
    """How many layers stand above each parameter's.

    A layer is what the encoder numbers: a block of a transformer, a stage of a convolutional network. What is not
    numbered, such as embeddings before the first block or a norm after the last, is a layer where it stands.

    Args:
        names: Of the parameters, from the input to the output, as ``named_parameters`` gives them.

    >>> layer_depths(["stem.weight", "blocks.0.weight", "blocks.1.weight", "blocks.1.bias", "norm.weight"])
    {'stem.weight': 3, 'blocks.0.weight': 2, 'blocks.1.weight': 1, 'blocks.1.bias': 1, 'norm.weight': 0}
    """
    layers: dict[str, int] = {}
    before, count = None, 0
    for name in names:
        parts = name.split(".")
        number = next((at for at, part in enumerate(parts) if part.isdecimal()), None)
        layer = "" if number is None else ".".join(parts[: number + 1])
        count += layer != before
        before = layer
        layers[name] = count
    return {name: count - layer for name, layer in layers.items()}


def recompute_layers(encoder: nn.Module) -> bool:
    """Have an encoder compute its layers once more for the gradients, instead of keeping what they gave.

    Returns:
        Whether a network inside knows how; those of timm, open_clip and transformers mostly do.

    >>> recompute_layers(nn.Linear(1, 1))
    False
    """
    for module in encoder.modules():
        network: Any = module
        if getattr(module, "supports_gradient_checkpointing", False):
            # The older name of the same switch warns in transformers 5, and the newer one is missing in version 4.
            switch = getattr(module, "activation_checkpointing_enable", None) or network.gradient_checkpointing_enable
            switch()
            return True
        if hasattr(module, "set_grad_checkpointing"):
            try:
                network.set_grad_checkpointing(True)
            except (AssertionError, NotImplementedError, TypeError):
                continue
            return True
    return False
