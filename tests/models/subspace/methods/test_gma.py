"""What both cases of generalised multiview analysis share."""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.models.subspace.methods._gma import GMAConfig, joint_whitening, split_views
from tests.models.subspace.items import blocks, products, ridged, some_items, views_of

ITEMS = some_items()
FIRST, SECOND = ITEMS.centred
MOMENTS = views_of(ITEMS.images, ITEMS.texts).moments


@pytest.mark.parametrize("regularisation", [0.0, 0.1])
def test_both_views_are_kept_together_alike(regularisation: float) -> None:
    image, text = products(FIRST, FIRST), products(SECOND, SECOND)
    found = joint_whitening([image, text], MOMENTS, regularisation)
    gamma = np.trace(image) / np.trace(text)
    nothing = np.zeros((5, 4))
    joint = blocks([[ridged(image, regularisation), nothing], [nothing.T, gamma * ridged(text, regularisation)]])
    np.testing.assert_allclose(found.T @ joint @ found, np.eye(9), atol=1e-9)


@pytest.mark.parametrize(("name", "kept"), [("image", (0, 1)), ("text", (1, 0)), ("image", (1e-16, 1))])
def test_something_must_be_kept_together(name: str, kept: tuple[float, float]) -> None:
    with pytest.raises(UserError, match=f"{name} features do not vary within classes"):
        joint_whitening([kept[0] * np.eye(5), kept[1] * np.eye(4)], MOMENTS, 0.1)


def test_directions_come_apart() -> None:
    found = split_views(np.arange(18.0).reshape(9, 2), 5)
    assert found.image.shape == (5, 2)
    assert found.text[0].tolist() == [10, 11]


@pytest.mark.parametrize("name", ["mu", "alpha"])
@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_are_checked(name: str, weight: float) -> None:
    with pytest.raises(UserError, match=f"{name}: must be"):
        GMAConfig(**{name: weight})
