"""Semantic correlation matching (Rasiwasia et al. 2010): correlation, then classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import nn

from rungwise.core import STRICT
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace, centred
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace._eigenproblems import Matrix
from rungwise.models.subspace._heads import Centred, Posteriors
from rungwise.models.subspace._settings import Fitted, RidgeConfig
from rungwise.models.subspace._views import Directions, Views, several
from rungwise.models.subspace.methods._cca import correlated


@dataclass(frozen=True)
class SCMConfig(RidgeConfig):
    """Settings of semantic correlation matching; ``dimension`` is that of the correlated space between the stages.

    Attributes:
        kind: Name of the method.
        strength: How freely the logistic regression fits, the inverse of its ridge.
    """

    __pydantic_config__ = STRICT

    kind: Literal["scm"] = "scm"
    strength: Annotated[float, Field(gt=0)] = 1.0


class SCM(Subspace):
    """Vectors are probabilities of classes, by a logistic regression in each view's correlated space.

    First CCA, of all pairs, whether they have a label or not; then in each view a multi-class logistic regression
    (scikit-learn's) of the labelled ones. Where items have several labels, each class has a regression of its own.
    Vectors are the probabilities less their mean over the training items, compared by their cosine: the centred
    normalised correlation of the paper. So the common space is as wide as there are classes.

    >>> import numpy as np
    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.5], [1.1, 0.5]])
    >>> model = SCM(dimension=1).fit(images, images[:, :1], ["cat", "cat", "dog", "dog"])
    >>> model.dimension, model.encode_text(images[:, :1]).argmax(axis=1).tolist()
    (2, [0, 0, 1, 1])
    """

    kind: ClassVar[str] = "scm"
    config_type: ClassVar[type[ModelConfig]] = SCMConfig
    needs_labels: ClassVar[bool] = False

    def solve(self, views: Views) -> Directions:
        """Directions of the first stage, CCA."""
        return correlated(views, self.config.dimension, self.config.regularisation)

    def heads(self, views: Views) -> tuple[Sequence[nn.Module], Sequence[nn.Module]]:
        """Modules of both stages."""
        several(views.classes)
        found = self.solve(views)
        projected = views.projected(found.image, found.text)
        stages = [
            (first, _regression(rows, views.classes, self.config.strength))
            for first, rows in zip(centred(views, found), projected, strict=True)
        ]
        return stages[0], stages[1]

    def blank_head(self, width: int, found: Fitted) -> Sequence[nn.Module]:
        """Both stages of a side, without numbers."""
        return Centred(width, found.components), Posteriors(found.components, len(found.classes), found.single)

    @property
    def dimension(self) -> int:
        """Number of classes."""
        return len(self.config.fitted.classes) if self.config.fitted else super().dimension


def _regression(rows: Matrix, classes: Classes, strength: float) -> Posteriors:
    """Logistic regression of the labelled rows, with probabilities centred over all rows."""
    from sklearn.linear_model import LogisticRegression  # takes a second, which only fitting needs

    labelled = np.flatnonzero(classes.labelled)
    some, own = rows[labelled], classes.members[labelled]
    made = Posteriors(rows.shape[1], len(classes.names), classes.are_single)

    def fitted(target: NDArray[np.int64]) -> tuple[Matrix, NDArray[np.float64]]:
        with warnings.catch_warnings():  # there may be few items of each class
            warnings.filterwarnings("ignore", message="The number of unique classes")
            found = LogisticRegression(C=strength, max_iter=1000).fit(some, target)
        return found.coef_.T, found.intercept_

    if classes.are_single:
        weight, intercept = fitted(own.argmax(axis=1))
        if len(classes.names) == 2:  # scikit-learn gives the second class alone
            weight, intercept = np.hstack([-weight, weight]) / 2, np.concatenate([-intercept, intercept]) / 2
    else:
        weight, intercept = np.zeros((rows.shape[1], len(classes.names))), np.zeros(len(classes.names))
        for number, column in enumerate(own.T.astype(np.int64)):
            if column.all():  # a class that everybody is in tells nobody apart
                continue
            weight[:, [number]], intercept[[number]] = fitted(column)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(weight))
        made.intercept.copy_(torch.from_numpy(intercept))
        made.mean.copy_(made.probabilities(torch.from_numpy(rows).float()).double().mean(dim=0))
    return made
