"""The sources that ``human_agreement.py`` compares, and their degrees of judged pairs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.data import ImageCaptions
from rungwise.language import Stemmed
from rungwise.language.tokenisers import ptb
from rungwise.relevance import (
    BiEncoder,
    CaptionSource,
    CBoW,
    CIDEr,
    CIDErD,
    CrossEncoder,
    DocumentFrequencies,
    FactWeights,
    Inference,
    PairInference,
    Spice,
    TfIdf,
)
from rungwise.relevance.combine import pair_degrees
from rungwise.relevance.embedding import WordSimilarity, by_sentences

Values = dict[str, NDArray[np.float64]]
REFERENCES = ("max", "mean")
STEMS = "English stems"
SPICE_TUNED = {"measure": "precision", "weights": FactWeights(1.0, 0.5, 0.3, unbound=0.3)}
"""Chosen on CxC's ratings of caption pairs."""

# The closed classes of English: what carries no content of a scene.
STOP_WORDS = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "some", "any", "each", "every", "and", "or", "but", "as",
    "of", "at", "by", "for", "with", "about", "into", "through", "during", "to", "from", "in", "on", "off", "over",
    "under", "again", "there", "here", "all", "both", "is", "are", "was", "were", "be", "been", "being", "am", "it",
    "its", "his", "her", "their", "he", "she", "they", "them", "him", "who", "which", "what", "while", "where",
    "when", "has", "have", "had", "having", "do", "does", "doing",
})  # fmt: skip


@dataclass(frozen=True)
class Models:
    """What sources are built with besides the captions.

    Attributes:
        vectors: File of word vectors.
        cross_encoders: Folders of cross-encoders that were trained here, by name.
        sentences: Folders of sentence models that were distilled from them, by name.
        cache: File of scores of pairs, where a second run finds them.
    """

    vectors: Path
    cross_encoders: Mapping[str, Path]
    sentences: Mapping[str, Path]
    cache: Path | None


@dataclass
class Judged:
    """A collection, and the pairs that people judged."""

    name: str
    data: ImageCaptions
    pairs: NDArray[np.int64]
    grades: NDArray[np.float64]

    @property
    def own(self) -> NDArray[np.bool_]:
        """The caption was written for the image."""
        return np.asarray(self.data.image_of_caption[self.pairs[:, 1]] == self.pairs[:, 0])


class Sources:
    """Sources of one collection; what costs much is made once."""

    def __init__(self, data: ImageCaptions, models: Models) -> None:
        self.data = data
        known = (data.captions, data.image_of_caption)
        self._likeness: WordSimilarity = by_sentences()
        self.pairs: dict[str, CaptionSource] = {
            "TfIdf": TfIdf(*known),
            f"TfIdf, {STEMS}": TfIdf(*known, stemming="english"),
            "CBoW": CBoW(*known, models.vectors, stop_words=STOP_WORDS),
            "MiniLM": BiEncoder(*known, inference=Inference(batch_size=256)),
        }
        for name, folder in models.sentences.items():
            self.pairs[name] = BiEncoder(*known, folder, inference=Inference(batch_size=256))
        for name, folder in models.cross_encoders.items():
            pairs = PairInference(128, "bfloat16", cache=models.cache)
            self.pairs[name] = CrossEncoder(*known, folder, scale="sigmoid", inference=pairs)
        for base in self.pairs.values():
            getattr(base, "vectors", None)  # made before it is copied, so that it is made once

    def images(self, apart: bool) -> dict[str, CaptionSource]:
        """By name, with an image's captions as references; ``split_views`` leaves a caption out of its own."""
        known = (self.data.captions, self.data.image_of_caption)
        made: dict[str, CaptionSource] = {
            "CIDEr": CIDEr(*known, leave_one_out=apart),
            f"CIDEr, {STEMS}": CIDEr(*known, stemming="english", leave_one_out=apart),
            "CIDEr-D": CIDErD(*known, leave_one_out=apart),
            f"CIDEr-D, {STEMS}": CIDErD(*known, stemming="english", leave_one_out=apart),
        }
        made |= {name: Spice(*known, leave_one_out=apart, **options) for name, options in self._spices().items()}
        for name, base in self.pairs.items():
            for reference in REFERENCES:
                made[f"{name}, {reference}"] = other = copy.copy(base)
                other.reference, other.leave_one_out = reference, apart  # type: ignore[attr-defined]
        return made

    def captions(self, pairs: NDArray[np.int64]) -> Values:
        """Degrees of caption with caption: each is an image of its own, with the collection's frequencies."""
        known = (self.data.captions, self.data.image_of_caption)
        single = (self.data.captions, np.arange(len(self.data.captions)))
        counted = {"document_frequencies": DocumentFrequencies.of(*known)}
        stems = {
            "document_frequencies": DocumentFrequencies.of(*known, tokenizer=Stemmed(ptb, "english")),
            "stemming": "english",
        }
        words: dict[str, CaptionSource] = {
            "CIDEr": CIDEr(*single, **counted),
            f"CIDEr, {STEMS}": CIDEr(*single, **stems),
            "CIDEr-D": CIDErD(*single, **counted),
            f"CIDEr-D, {STEMS}": CIDErD(*single, **stems),
            "TfIdf": TfIdf(*single, **counted),
            f"TfIdf, {STEMS}": TfIdf(*single, **stems),
        }
        found: Values = {name: pair_degrees(source, *pairs.T) for name, source in words.items()}
        for name, options in self._spices().items():
            found[name] = either_way(Spice(*single, **options).pair_scores, pairs)
        for name, base in self.pairs.items():
            if name not in found:
                found[name] = either_way(base.pair_scores, pairs)  # type: ignore[attr-defined]
        return found

    def _spices(self) -> dict[str, dict[str, object]]:
        soft = {"likeness": self._likeness}
        return {"Spice": {}, "Spice, soft": soft, "Spice, tuned": {**soft, **SPICE_TUNED}}


def either_way(
    scores: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]], pairs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The mean of a pair's scores in both orders: people were asked about a pair, not an order."""
    return (scores(pairs[:, 0], pairs[:, 1]).astype(np.float64) + scores(pairs[:, 1], pairs[:, 0])) / 2


def degrees(judged: Judged, sources: Mapping[str, CaptionSource]) -> Values:
    return {name: pair_degrees(source, *judged.pairs.T) for name, source in sources.items()}


DEV = 1 / 7
"""Share of the images that are drawn for dev."""


def training_part(judged: Judged, pairs: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(pairs,) which pairs of captions may train a model that the judgements judge, and which choose its epoch.

    A pair whose two images stand in one judgement is in neither part; nor is one with an image of each part.
    """
    owner = judged.data.image_of_caption
    met = np.sort(np.stack((judged.pairs[:, 0], owner[judged.pairs[:, 1]]), axis=1), axis=1)[~judged.own]
    images = np.sort(owner[pairs], axis=1)
    width = len(judged.data)
    free = ~np.isin(images @ np.array([width, 1]), met @ np.array([width, 1]))
    dev = np.random.default_rng(0).random(width) < DEV
    return free & ~dev[images].any(axis=1), free & dev[images].all(axis=1)


def caption_ratings(path: Path, data: ImageCaptions) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n, 2) captions and (n,) mean grades of CxC's caption-caption file."""
    position = {one: number for number, one in enumerate(data.caption_ids)}
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    pairs = [[position[cell.rpartition(":")[2]] for cell in row[:2]] for row in rows]
    return np.array(pairs, np.int64), np.array([float(row[2]) for row in rows])
