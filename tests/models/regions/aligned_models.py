"""Small models of SGR and SAF, and sets that they compare."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from rungwise.data.files import FeatureRows
from rungwise.models.regions.alignment._base import AlignedScorer
from rungwise.models.regions.alignment._saf import SAF, SAFConfig
from rungwise.models.regions.alignment._sgr import SGR, SGRConfig
from tests.models.regions.small import sides_of_features

KINDS: dict[str, tuple[type[AlignedScorer], Any]] = {"sgr": (SGR, SGRConfig), "saf": (SAF, SAFConfig)}


def small_model(kind: str, regions: int = 3, **changes: Any) -> AlignedScorer:
    """In float64 and evaluation mode, without dropout, with parameters and statistics that are all different."""
    torch.manual_seed(0)
    model, config = KINDS[kind]
    changes = {"dimension": 5, "vector_width": 4, "dropout": 0.0, **sides_of_features(), **changes}
    features = FeatureRows(torch.zeros(1, regions, 7).numpy())
    made = model.create(config(**changes), ["a dog"], features).double().eval()
    for tensor in (*made.parameters(), *made.buffers()):
        if tensor.is_floating_point():
            tensor.data = tensor + 0.6 * (torch.rand_like(tensor) - 0.5)
    return made


def sets(images: int, regions: int, lengths: list[int], width: int = 5, seed: int = 1) -> tuple[Tensor, Tensor]:
    """(images, regions, width) and (captions, longest + 2, width) in float64, of length 1."""
    draw = torch.Generator().manual_seed(seed)
    shapes = (images, regions, width), (len(lengths), max(lengths) + 2, width)
    first, second = (torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes)
    return F.normalize(first, dim=2), F.normalize(second, dim=2)
