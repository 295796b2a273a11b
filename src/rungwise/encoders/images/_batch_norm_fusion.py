"""Batch-norm fusion into the convolutions before: the same function with fewer passes over memory."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

_EXACT = 1e-4
"""Largest difference of a fused network, as a share of its largest value; rounding makes about a hundredth of it."""


def with_batch_norms_fused(network: nn.Module, pixels: Tensor) -> nn.Module:
    """A copy for inference whose convolutions include the batch norm after them; the network itself if it has none.

    The order of layers is found by running the network, and the copy is compared with the network. Where it computes
    something else, as when a convolution's output is read elsewhere too, the network itself is returned.

    Args:
        network: The network, in evaluation mode.
        pixels: (n, ...) example of an input.

    >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    >>> [type(layer).__name__ for layer in with_batch_norms_fused(network, torch.randn(1, 3, 8, 8))]
    ['Conv2d', 'Identity', 'ReLU']
    """
    from timm.layers.norm_act import BatchNormAct2d

    if not any(isinstance(one, nn.BatchNorm2d) for one in network.modules()):
        return network
    made = copy.deepcopy(network).requires_grad_(False)
    with torch.inference_mode():
        pairs, expected = _pairs(made, pixels)
    if not pairs:
        return network
    for convolution, name in pairs:
        norm = made.get_submodule(name)
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        weight, bias = fuse_conv_bn_weights(
            convolution.weight,
            convolution.bias,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            norm.weight,
            norm.bias,
        )
        convolution.weight, convolution.bias = (nn.Parameter(one, requires_grad=False) for one in (weight, bias))
        made.set_submodule(name, norm.act if isinstance(norm, BatchNormAct2d) else nn.Identity())
    with torch.inference_mode():
        found = made(pixels)
    if (found - expected).abs().max() <= _EXACT * expected.abs().max():
        return made
    return network


def _pairs(network: nn.Module, pixels: Tensor) -> tuple[list[tuple[nn.Conv2d, str]], Tensor]:
    """Convolutions with the name of the batch normalisation that reads their output, and the network's output."""
    from timm.layers.norm_act import BatchNormAct2d

    names = {module: name for name, module in network.named_modules()}
    last: dict[int, tuple[nn.Conv2d, Tensor]] = {}  # the tensor is held, so that no other takes its number
    pairs: list[tuple[nn.Conv2d, str]] = []
    calls: dict[nn.Module, int] = {}

    def convolved(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        calls[module] = calls.get(module, 0) + 1
        last[id(output)] = module, output

    def normed(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        calls[module] = calls.get(module, 0) + 1
        if id(inputs[0]) in last:
            pairs.append((last[id(inputs[0])][0], names[module]))

    hooks = []
    for module in names:
        if isinstance(module, nn.Conv2d):
            hooks.append(module.register_forward_hook(convolved))
        elif type(module) in (nn.BatchNorm2d, BatchNormAct2d) and module.track_running_stats:
            hooks.append(module.register_forward_pre_hook(normed))
    try:
        output = torch.as_tensor(network(pixels))
    finally:
        for hook in hooks:
            hook.remove()
    once = [(one, name) for one, name in pairs if calls[one] == calls[network.get_submodule(name)] == 1]
    return once, output
