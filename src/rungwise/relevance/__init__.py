"""Relevance degrees R[image, caption]: from captions, models, labels and people.

Names are imported on first use, so that a light command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.relevance.base import Degrees, Relevance
from rungwise.relevance.captions import CaptionPairSource, CaptionSource
from rungwise.relevance.precomputed.saved_degrees import SavedDegrees, load

if TYPE_CHECKING:
    from rungwise.relevance.combine.cascade import Cascade
    from rungwise.relevance.combine.fitted import Combined
    from rungwise.relevance.embedding.bi_encoder import BiEncoder
    from rungwise.relevance.embedding.cbow import CBoW
    from rungwise.relevance.embedding.cross_encoder import CrossEncoder
    from rungwise.relevance.embedding.model_scores import ModelScores
    from rungwise.relevance.embedding.visual import Visual
    from rungwise.relevance.human.labels import Labels
    from rungwise.relevance.human.source import HumanJudgements
    from rungwise.relevance.lexical.cider import CIDEr, CIDErD
    from rungwise.relevance.lexical.ngrams import DocumentFrequencies
    from rungwise.relevance.lexical.tfidf import TfIdf
    from rungwise.relevance.scene_graph.spice import Spice

_LATER = {
    "BiEncoder": "embedding.bi_encoder",
    "CBoW": "embedding.cbow",
    "CIDEr": "lexical.cider",
    "CIDErD": "lexical.cider",
    "Cascade": "combine.cascade",
    "Combined": "combine.fitted",
    "CrossEncoder": "embedding.cross_encoder",
    "DocumentFrequencies": "lexical.ngrams",
    "HumanJudgements": "human.source",
    "Labels": "human.labels",
    "ModelScores": "embedding.model_scores",
    "Spice": "scene_graph.spice",
    "TfIdf": "lexical.tfidf",
    "Visual": "embedding.visual",
}
"""Module of every name that is imported on first use."""

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
    "HumanJudgements",
    "Labels",
    "ModelScores",
    "Relevance",
    "SavedDegrees",
    "Spice",
    "TfIdf",
    "Visual",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
