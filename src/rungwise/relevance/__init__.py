"""Relevance degrees R[image, caption]: from captions, models, labels and people.

Names are loaded when they are first used, so that a light command stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.relevance.base import Degrees, Relevance
from rungwise.relevance.captions import CaptionPairSource, CaptionSource
from rungwise.relevance.stored import Stored, load

if TYPE_CHECKING:
    from rungwise.relevance.bi_encoder import BiEncoder
    from rungwise.relevance.cascade import Cascade
    from rungwise.relevance.cbow import CBoW
    from rungwise.relevance.cider import CIDEr, CIDErD
    from rungwise.relevance.combined import Combined
    from rungwise.relevance.cross_encoder import CrossEncoder
    from rungwise.relevance.human import Human
    from rungwise.relevance.labels import Labels
    from rungwise.relevance.model_scores import ModelScores
    from rungwise.relevance.ngrams import DocumentFrequencies
    from rungwise.relevance.spice import Spice
    from rungwise.relevance.tfidf import TfIdf
    from rungwise.relevance.visual import Visual

_LATER = {
    "BiEncoder": "bi_encoder",
    "CBoW": "cbow",
    "CIDEr": "cider",
    "CIDErD": "cider",
    "Cascade": "cascade",
    "Combined": "combined",
    "CrossEncoder": "cross_encoder",
    "DocumentFrequencies": "ngrams",
    "Human": "human",
    "Labels": "labels",
    "ModelScores": "model_scores",
    "Spice": "spice",
    "TfIdf": "tfidf",
    "Visual": "visual",
}
"""Module of every name that is loaded late."""

__all__ = [
    "BiEncoder",
    "CBoW",
    "CIDEr",
    "CIDErD",
    "CaptionPairSource",
    "CaptionSource",
    "Cascade",
    "Combined",
    "CrossEncoder",
    "Degrees",
    "DocumentFrequencies",
    "Human",
    "Labels",
    "ModelScores",
    "Relevance",
    "Spice",
    "Stored",
    "TfIdf",
    "Visual",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
