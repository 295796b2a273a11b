"""Quality of a live index: what its approximate search misses, what that costs, and which setting costs least.

The room stands above :mod:`rungwise.index`, which knows nothing of measures, and above the rooms whose measures it
takes.
"""

from rungwise.quality.check import Case, DegreeLoss, IndexCheck, Latency, Number, check
from rungwise.quality.degrees import CaptionGrading, Grading, ModelGrading
from rungwise.quality.queries import Queries, given_texts, own_captions, own_pictures
from rungwise.quality.tuning import Trial, Tuning, tune

__all__ = [
    "CaptionGrading",
    "Case",
    "DegreeLoss",
    "Grading",
    "IndexCheck",
    "Latency",
    "ModelGrading",
    "Number",
    "Queries",
    "Trial",
    "Tuning",
    "check",
    "given_texts",
    "own_captions",
    "own_pictures",
    "tune",
]
