"""Graph convolutions and the GRU over regions, against loops over numbers."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from rungwise.models.regions._region_reasoning import RegionReasoning
from tests.models.regions import vsrn_loops as loops

INPUTS, DIMENSION = 4, 3
SETTINGS = [
    {"layers": 2, "normalise": "features", "normalise_first": True, "batch_norm": False},
    {"layers": 1, "normalise": "features", "normalise_first": False, "batch_norm": True},
    {"layers": 2, "normalise": "regions", "normalise_first": True, "batch_norm": True},
]


def reasoning(seed: int = 0, **settings: Any) -> RegionReasoning:
    """One whose every weight counts, in float64 and in training mode."""
    torch.manual_seed(seed)
    module = RegionReasoning(INPUTS, DIMENSION, **settings).double()
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return module.train()


@pytest.mark.parametrize("settings", SETTINGS, ids=["coco", "f30k", "regions"])
@pytest.mark.parametrize(("pictures", "regions"), [(2, 3), (3, 1), (1, 4)])
def test_vectors_and_gradients_are_those_of_the_equations(settings: Any, pictures: int, regions: int) -> None:
    module = reasoning(**settings)
    if pictures == 1:
        module.norm = torch.nn.Identity()  # of one picture there are no statistics
    features = torch.randn(pictures, regions, INPUTS, dtype=torch.float64, requires_grad=True)
    probe = torch.randn(pictures, DIMENSION, dtype=torch.float64)
    names = ("layers", "normalise", "normalise_first")
    w = loops.weights(module)
    wanted = loops.related(w, loops.scalars(features), **{name: settings[name] for name in names})
    related = module.related(features)
    for found, one in zip(related, wanted, strict=True):
        torch.testing.assert_close(found, torch.stack([torch.stack(v) for v in one]), rtol=1e-9, atol=1e-9)
    vectors = loops.gathered(w, wanted, batch_norm=settings["batch_norm"] and pictures > 1)
    expected = torch.stack([torch.stack(one) for one in vectors])
    found = module(features)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    leaves = [features, *module.parameters()]
    slopes, others = (torch.autograd.grad((one * probe).sum(), leaves, retain_graph=True) for one in (found, expected))
    for mine, theirs in zip(slopes, others, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-8)
    assert max(float(one.abs().max()) for one in slopes) > 1e-3


@pytest.mark.parametrize("settings", SETTINGS, ids=["coco", "f30k", "regions"])
def test_pictures_do_not_meet_once_the_model_is_trained(settings: Any) -> None:
    module = reasoning(**settings)
    module(torch.randn(9, 5, INPUTS, dtype=torch.float64))  # statistics
    module.eval()
    features = torch.randn(4, 5, INPUTS, dtype=torch.float64)
    together = module(features)
    for position in (3, 0):
        torch.testing.assert_close(module(features[position : position + 1])[0], together[position], atol=1e-12, rtol=0)
    torch.testing.assert_close(module(features.flip(0)), together.flip(0), atol=1e-12, rtol=0)


def test_the_gru_reads_regions_in_their_order_and_the_convolutions_do_not() -> None:
    module = reasoning(**SETTINGS[0]).eval()
    features = torch.randn(2, 5, INPUTS, dtype=torch.float64)
    torch.testing.assert_close(module.related(features.flip(1)), module.related(features).flip(1))
    assert not torch.allclose(module(features.flip(1)), module(features))


def test_a_new_convolution_changes_nothing() -> None:
    module = RegionReasoning(INPUTS, DIMENSION, normalise="regions").train()
    features = torch.randn(2, 5, INPUTS)
    torch.testing.assert_close(module.related(features), F.normalize(module.projection(features), dim=2))


def test_each_feature_has_length_1_over_the_regions_or_each_region_has() -> None:
    features = torch.randn(2, 5, INPUTS, dtype=torch.float64)
    for normalise, axis, shape in (("features", 1, (2, DIMENSION)), ("regions", 2, (2, 5))):
        found = reasoning(normalise=normalise).related(features)
        torch.testing.assert_close(found.norm(dim=axis), torch.ones(shape, dtype=torch.float64))


def test_a_region_of_zeros_is_no_number_that_is_none() -> None:
    for normalise in ("features", "regions"):
        found = RegionReasoning(INPUTS, DIMENSION, normalise=normalise)(torch.zeros(2, 3, INPUTS))
        assert torch.isfinite(found).all()


def test_it_computes_under_autocast() -> None:
    module = RegionReasoning(INPUTS, DIMENSION).train()
    features = torch.randn(3, 5, INPUTS)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(features)
    found.float().sum().backward()
    torch.testing.assert_close(found.float(), module(features), atol=0.05, rtol=0.05)
