"""Planted worlds: scores of which it is known what is relevant."""

from __future__ import annotations

import numpy as np
import pytest

from rungwise.calibration import Calibration

CENTRE, SPREAD = 0.1, 0.05


def planted(rng, queries, candidates, share=0.02, lift=4.0):
    """Scores (queries, candidates) of noise, and degrees 1 where ``lift`` standard deviations were added."""
    relevance = (rng.random((queries, candidates)) < share).astype(float)
    scores = rng.normal(CENTRE, SPREAD, relevance.shape) + lift * SPREAD * relevance
    return scores, relevance


@pytest.fixture(scope="session")
def world():
    return planted(np.random.default_rng(0), 60, 400)


@pytest.fixture(scope="session")
def fitted(world):
    return Calibration.fit(*world, relevant_from=1)


@pytest.fixture(scope="session")
def by_standard():
    return Calibration.unsupervised(np.random.default_rng(1).normal(CENTRE, SPREAD, (48, 1000)))


@pytest.fixture(params=["unsupervised", "standard", "fitted"])
def any_calibration(request, fitted, by_standard):
    return {"unsupervised": Calibration.unsupervised(), "standard": by_standard, "fitted": fitted}[request.param]
