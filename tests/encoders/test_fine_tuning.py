import timm
import torch
from torch import nn

from rungwise.encoders import layer_depths, recompute_layers


def depths_of(network: nn.Module) -> dict[str, int]:
    return layer_depths(name for name, _ in network.named_parameters())


def test_depths_of_a_transformer_and_of_a_convolutional_network() -> None:
    vit = depths_of(timm.create_model("test_vit", num_classes=0))
    blocks = 1 + max(int(name.split(".")[1]) for name in vit if name.startswith("blocks."))
    assert vit["patch_embed.proj.weight"] == vit["pos_embed"] == blocks + 1
    assert [vit[f"blocks.{at}.attn.qkv.weight"] for at in range(blocks)] == list(range(blocks, 0, -1))
    assert vit["norm.weight"] == 0
    resnet = depths_of(timm.create_model("test_resnet", num_classes=0))
    assert resnet["conv1.0.weight"] > resnet["layer1.0.conv1.weight"] > resnet["layer4.0.conv1.weight"] == 0


def test_recomputed_layers_give_the_same_gradients() -> None:
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(0)
        network = timm.create_model("test_vit", num_classes=0)
        kept = recompute_layers(nn.Sequential(network)) if recompute else True
        assert kept
        network(torch.ones(2, 3, 160, 160)).square().sum().backward()
        gradients.append({name: one.grad for name, one in network.named_parameters() if one.grad is not None})
    assert network.grad_checkpointing
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, msg=name)
