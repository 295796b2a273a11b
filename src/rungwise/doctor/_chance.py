"""Check whether any epoch of a run ranked the validation split better than chance."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.doctor._finding import Finding
from rungwise.doctor._run_files import RunFiles

DEVIATIONS = 3.0
"""Standard deviations above the mean that random rankings hardly reach."""

_LARGEST_CHANCE = 0.25


def of_chance(data: ImageCaptions, k: int) -> tuple[float, float]:
    """Mean and standard deviation, in 0..100, of R@K of random rankings, as the mean of both directions.

    >>> data = ImageCaptions(("a", "b"), ("x", "y", "z"), np.array([0, 1, 1]))
    >>> [round(number, 1) for number in of_chance(data, 1)]
    [50.0, 22.0]
    """
    from scipy.special import gammaln

    count = np.bincount(data.image_of_caption, minlength=len(data))
    count, captions, images = count[count > 0], len(data.captions), len(data)
    # The first K of a random list hold none of an image's captions: C(M - c, K) / C(M, K).
    rest = captions - count
    logarithm = gammaln(rest + 1) - gammaln(np.maximum(rest - k, 0) + 1)
    logarithm -= gammaln(captions + 1) - gammaln(max(captions - k, 0) + 1)
    i2t = np.where(rest < k, 1.0, 1.0 - np.exp(logarithm))
    t2i = min(k / images, 1.0)
    variances = float((i2t * (1 - i2t)).sum()) / len(i2t) ** 2, t2i * (1 - t2i) / captions
    return 50 * (float(i2t.mean()) + t2i), 50 * math.sqrt(sum(variances))


def no_better_than_chance(run: RunFiles, validation: ImageCaptions) -> Iterator[Finding]:
    """Finding where no epoch found the pairs more often than random rankings do.

    Runs that are judged by class labels are skipped, since other pairs may be as good, and so are data where chance
    alone finds a quarter of the pairs. ``run`` needs its history.
    """
    if run.config is None or run.config.snapshot.protocol == "labels" or not len(validation.captions):
        return
    k = next((k for k in (10, 5, 1) if k <= _LARGEST_CHANCE * len(validation)), None)
    names = [f"{way}/R@{k}" for way in ("i2t", "t2i")]
    means = [sum(row[name] for name in names) / 2 for row in run.history if all(name in row for name in names)]
    if k is None or not means:
        return
    chance, deviation = of_chance(validation, k)
    if max(means) > chance + DEVIATIONS * deviation:
        return
    yield Finding(
        "no better than chance",
        "fault",
        f"In the best of {len(means)} epochs R@{k} on {len(validation)} validation pictures was {max(means):.3g}, the"
        f" mean of both directions; random rankings have {chance:.3g}.",
        "Lower the learning rate, warm up with the sum of hinges (warm_up_epochs), and see that captions and pictures"
        " belong together.",
    )
