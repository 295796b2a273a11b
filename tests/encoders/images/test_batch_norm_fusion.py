import pytest
import timm
import torch
from torch import nn

from rungwise.encoders.images._batch_norm_fusion import with_batch_norms_fused


def shaken(network: nn.Module) -> nn.Module:
    """With statistics and weights of batch normalisation that are no identity."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    return network.eval()


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize(
    ("name", "options"), [("test_resnet", {}), ("test_efficientnet", {"pad_type": "same"}), ("test_vit", {})]
)
def test_networks_of_timm_compute_the_same(name: str, options: dict[str, object]) -> None:
    network = shaken(timm.create_model(name, num_classes=0, pretrained=False, **options))
    state = {key: value.clone() for key, value in network.state_dict().items()}
    pictures = torch.randn(2, 3, 160, 160, generator=torch.Generator().manual_seed(1))
    made = with_batch_norms_fused(network, pictures[:1])
    assert norms(made) == 0
    with torch.inference_mode():
        torch.testing.assert_close(made(pictures), network(pictures), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            made.forward_features(pictures), network.forward_features(pictures), rtol=1e-4, atol=1e-5
        )
    assert all(torch.equal(network.state_dict()[key], value) for key, value in state.items()), "it is a copy"


class Forked(nn.Module):
    """The output of the convolution goes to the normalisation and past it."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        convolved = self.convolution(pixels)
        return torch.as_tensor(self.norm(convolved) + convolved)


class Twice(nn.Module):
    """One convolution, two normalisations."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 3, 3, padding=1)
        self.first, self.second = nn.BatchNorm2d(3), nn.BatchNorm2d(3)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.second(self.convolution(self.first(self.convolution(pixels)))))


@pytest.mark.parametrize("kind", [Forked, Twice])
def test_what_cannot_be_folded_is_left_as_it_is(kind: type[nn.Module]) -> None:
    network = shaken(kind())
    pixels = torch.randn(1, 3, 8, 8)
    made = with_batch_norms_fused(network, pixels)
    assert norms(made) == norms(network)
    with torch.inference_mode():
        assert torch.equal(made(pixels), network(pixels))
