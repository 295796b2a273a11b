"""SCM is CCA, and then scikit-learn's logistic regression in each view."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from rungwise.core import UserError
from rungwise.models.subspace import SCM
from rungwise.models.subspace.methods._cca import correlated
from rungwise.models.subspace.methods._scm import SCMConfig
from tests.models.subspace.items import several_labels, some_items, views_of

ITEMS = some_items(count=60)


def projected(items=ITEMS) -> list[np.ndarray]:
    found = correlated(views_of(items.images, items.texts), 2, 1e-3)
    return [rows @ one for rows, one in zip(items.centred, (found.image, found.text), strict=True)]


def agree(model: SCM, expected: list[np.ndarray], items=ITEMS) -> None:
    found = model.encode_image(items.images).vectors, model.encode_text(items.texts)
    for own, other in zip(found, expected, strict=True):
        centred = other - other.mean(axis=0)
        np.testing.assert_allclose(own, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=2e-4)


@pytest.mark.parametrize("strength", [0.01, 1.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_vectors_are_centred_probabilities_of_the_classes(classes: int, strength: float) -> None:
    items = some_items(1, count=60, classes=classes)
    model = SCM(dimension=2, strength=strength).fit(items.images, items.texts, items.labels)
    assert model.dimension == classes
    agree(
        model,
        [
            LogisticRegression(C=strength, max_iter=1000).fit(rows, items.labels).predict_proba(rows)
            for rows in projected(items)
        ],
        items,
    )


def test_of_several_labels_each_class_has_its_own_regression() -> None:
    labels = several_labels(ITEMS)
    labels[:, 1] = 1  # a class that everybody is in tells nobody apart
    expected = []
    for rows in projected():
        columns = np.full((60, 3), 0.5)
        for column in (0, 2):
            columns[:, column] = (
                LogisticRegression(max_iter=1000).fit(rows, labels[:, column]).predict_proba(rows)[:, 1]
            )
        expected.append(columns)
    agree(SCM(dimension=2).fit(ITEMS.images, ITEMS.texts, labels), expected)


def test_items_without_a_label_are_correlated_and_not_regressed() -> None:
    labels = [None if item % 4 == 0 else int(label) for item, label in enumerate(ITEMS.labels)]
    kept = np.flatnonzero(np.arange(60) % 4)
    model = SCM(dimension=2).fit(ITEMS.images, ITEMS.texts, labels)
    agree(
        model,
        [
            LogisticRegression(max_iter=1000).fit(rows[kept], ITEMS.labels[kept]).predict_proba(rows)
            for rows in projected()
        ],
    )
    assert [issue.where for issue in model.issues] == ["15 of 60 items"]


def test_settings_are_checked() -> None:
    assert SCMConfig().kind == "scm"
    with pytest.raises(UserError, match="strength: must be above 0"):
        SCMConfig(strength=0)
