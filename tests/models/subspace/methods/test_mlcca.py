"""Multi-label CCA against the sums over all pairs of an image with a text."""

import math

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.models.subspace import MLCCA
from rungwise.models.subspace.methods import _mlcca as module
from rungwise.models.subspace.methods._mlcca import MLCCAConfig
from tests.models.subspace.items import ratios, ridged, same_directions, several_labels, some_items, views_of

ITEMS = some_items(count=24)
FIRST, SECOND = ITEMS.centred
SINGLE, SEVERAL = np.eye(3, dtype=int)[ITEMS.labels], several_labels(ITEMS)


def over_all_pairs(members: np.ndarray, sigma: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C_xx, C_zz and C_xz; dot without a sigma."""
    image, text, cross, total = np.zeros((5, 5)), np.zeros((4, 4)), np.zeros((5, 4)), 0.0
    for first, own in zip(FIRST, members, strict=True):
        for second, other in zip(SECOND, members, strict=True):
            shared = sum(int(one and another) for one, another in zip(own, other, strict=True))
            differing = sum(int(one != another) for one, another in zip(own, other, strict=True))
            likeness = shared if sigma is None else math.exp(-differing / sigma)
            image += likeness * np.outer(first, first)
            text += likeness * np.outer(second, second)
            cross += likeness * np.outer(first, second)
            total += likeness
    return image / total, text / total, cross / total


@pytest.mark.parametrize(
    ("members", "sigma", "regularisation", "block"),
    [
        (SINGLE, None, 0.0, 1),
        (SINGLE, None, 0.1, 2048),
        (SINGLE, 0.3, 0.1, 1),
        (SINGLE, 50.0, 0.0, 2048),
        (SEVERAL, None, 0.1, 1),
        (SEVERAL, 0.3, 0.0, 2048),
        (SEVERAL, 1.0, 0.0, 1),
        (SEVERAL, 50.0, 0.1, 2048),
    ],
)
def test_directions_are_those_of_the_sums_over_all_pairs(
    members: np.ndarray, sigma: float | None, regularisation: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    likeness = {"likeness": "dot"} if sigma is None else {"likeness": "exp", "sigma": sigma}
    model = MLCCA(dimension=2, regularisation=regularisation, **likeness)
    found = model.solve(views_of(ITEMS.images, ITEMS.texts, members))
    image, text, cross = over_all_pairs(members, sigma)
    image, text = ridged(image, regularisation), ridged(text, regularisation)
    same_directions(found.image, ratios(cross @ np.linalg.inv(text) @ cross.T, image)[1][:, :2], 1e-5)
    same_directions(found.text, ratios(cross.T @ np.linalg.inv(image) @ cross, text)[1][:, :2], 1e-5)
    assert (np.diag(found.image.T @ cross @ found.text) > 0).all()


def test_single_labels_give_one_direction_less_than_classes() -> None:
    """C_xz is a sum over classes of products of their sums, which add up to nothing."""
    found = MLCCA().solve(views_of(ITEMS.images, ITEMS.texts, [f"class {one}" for one in ITEMS.labels]))
    assert found.image.shape == (5, 2)


def test_settings_are_checked() -> None:
    assert (MLCCAConfig().kind, MLCCAConfig().likeness) == ("mlcca", "dot")
    with pytest.raises(UserError, match="sigma: must be above 0"):
        MLCCAConfig(sigma=0)
