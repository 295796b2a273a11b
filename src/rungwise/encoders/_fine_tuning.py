"""What fine-tuning needs of any encoder: the depth of its layers, and gradient checkpointing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn


def layer_depths(names: Iterable[str]) -> dict[str, int]:
    """Number of layers above each parameter's own.

    A layer is what the encoder numbers: a block of a transformer, a stage of a convolutional network. Unnumbered parts,
    such as embeddings before the first block or a norm after the last, are layers of their own.

    Args:
        names: Names of the parameters from input to output, as ``named_parameters`` gives them.

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
    """Turn on gradient checkpointing, which recomputes layers in the backward pass.

    Returns:
        Whether a network inside supports it; those of timm, open_clip and transformers mostly do.
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
