"""Pair scorers that compare the regions of a picture with the words of a text.

There is no joint embedding, so nothing is indexed. Each side is encoded once; then all pairs are compared, block by
block (:mod:`rungwise.similarity._pair_blocks`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.core.compute import top_columns
from rungwise.core.text import evenly_spread
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows, Picture
from rungwise.encoders import ImageSide, LinearHead, TextSide, computing, require_words
from rungwise.encoders.vocabulary import Tokens
from rungwise.models._contracts import PairScores, Pictures, Progress, Texts, Vectors, refuse_unreadable
from rungwise.models._encoder_pair import EncoderBatch, EncoderPair, freeze_encoders, image_features, inference
from rungwise.models._training_pairs import Autocast, ImageInputs, Pairs, ScoredBatch
from rungwise.models.io import ModelFolder
from rungwise.models.regions._boxes import boxes_of
from rungwise.models.regions._config import check_words, region_config_for_data, regions_of, to_width
from rungwise.similarity import Attention, Explanation, SetSimilarity, WordSets, all_pairs, some_pairs

PROBE = 16
"""Number of queries in each direction that ``auto`` compares in both precisions."""
PROBE_GALLERY = 2000
"""Number of candidates of each probe query at most. With few candidates the first ten would hardly change."""
LEAST_OVERLAP = 0.98
"""Share of the first ten candidates that bfloat16 must keep, over the probe queries, for ``auto`` to take it."""


@dataclass(frozen=True)
class SetScores(PairScores):
    """Scores of a scorer that has encoded every image and caption once.

    Attributes:
        regions: (images, R, D).
        words: Words of the captions.
        comparison: How two sets are compared.
    """

    dear: ClassVar[bool] = True

    regions: Tensor
    words: WordSets
    comparison: SetSimilarity

    def block(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(len(images), len(captions)) float32 scores."""
        chosen = torch.from_numpy(np.asarray(images, dtype=np.int64)).to(self.regions.device)
        texts = torch.from_numpy(np.asarray(captions, dtype=np.int64))
        return self._scores(self.regions[chosen], self.words.select(texts))

    def pairs(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(pairs,) float32 scores of single pairs."""
        chosen, texts = (torch.from_numpy(np.array(one, dtype=np.int64)) for one in (images, captions))
        with torch.inference_mode():
            return some_pairs(self.comparison, self.regions, self.words, chosen, texts).float().cpu().numpy()

    def matrix(self) -> Vectors:
        """(images, captions) float32 scores of all pairs."""
        return self._scores(self.regions, self.words)

    def _scores(self, regions: Tensor, words: WordSets) -> Vectors:
        with torch.inference_mode():
            return all_pairs(self.comparison, regions, words).float().cpu().numpy()


class RegionScorer(EncoderPair):
    """A scorer of pairs from regions and words.

    A family names its ``kind`` and configuration, and gives :attr:`comparison` and :meth:`attention`.

    Attributes:
        region_projection: Linear layer from features of regions to D.
        word_projection: Linear layer from vectors of words to D; nothing where they have that width.
        recompute: Whether blocks of a training step are recomputed in the backward pass, which bounds memory.
    """

    reads_regions: ClassVar[bool] = True
    keeps_text_vectors: ClassVar[bool] = False  # a text is a set of words, so no vector of it is kept

    def __init__(self, config: Any, image: ImageSide, text: Callable[[], TextSide]) -> None:
        """Put both encoders together.

        ``text`` makes the encoder of texts.

        Raises:
            UserError: If an encoder gives no regions, or no vectors of words.
        """
        super().__init__(config)
        self.backbone = image
        regions_of(image, config.kind)
        self.region_projection = LinearHead().build(image.features, config.dimension)
        self.text_encoder = text()
        check_words(self.text_encoder)
        self.word_projection = to_width(self.text_encoder.state_width, config.dimension)
        self.recompute = False
        freeze_encoders(self)

    @classmethod
    def create(cls, config: Any, captions: Texts, features: FeatureRows | None = None) -> Self:
        """Make a model whose vocabulary comes from the captions of the training split.

        Raises:
            UserError: If the backbone or its weights cannot be loaded, or the data have no regions or no words.
        """
        config = region_config_for_data(config, captions, features)
        return cls(config, config.image.build(), lambda: config.text.build(captions, config.dimension))

    @classmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """Read a saved model from its folder."""
        return cls(config, config.image.restore(folder), lambda: config.text.restore(folder, config.dimension))

    @property
    @abstractmethod
    def comparison(self) -> SetSimilarity:
        """How sets of regions and words are compared, in the current mode (training or evaluation)."""

    def recompute_layers(self) -> None:
        """Recompute blocks in the backward pass, which saves memory."""
        self.recompute = True

    def regions(self, rows: Tensor) -> Tensor:
        """(n, R, D) regions of length 1, from (n, R, features) features, pixels, or rows of features."""
        return F.normalize(self.region_projection(image_features(self, rows)).float(), dim=2)

    def words(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest, D) words of length 1, from (n, longest) token numbers and (n,) lengths."""
        return F.normalize(self.word_projection(self.text_encoder.states(tokens, lengths)).float(), dim=2)

    def score(self, batch: EncoderBatch, autocast: Autocast = nullcontext, *, within: bool = False) -> ScoredBatch:
        """Scores of a batch's images with its captions."""
        assert batch.lengths is not None  # texts are never rows
        with autocast():
            regions, words = self.regions(batch.rows), self.words(batch.texts, batch.lengths)
            sets = WordSets.of(_in_precision(words), batch.lengths)
            block = all_pairs(self.comparison, _in_precision(regions), sets, recompute=self.recompute)
        return ScoredBatch(block)

    def scores_of(self, pairs: Pairs, autocast: Autocast = nullcontext) -> SetScores:
        """Scores of all images with all captions of some pairs."""
        with autocast(), inference(self):
            regions = self._regions_of(pairs.rows)
            words = self._words_of(Tokens.of(pairs.texts))
            regions, words = _in_precision(regions), WordSets(_in_precision(words.words), words.lengths)
            comparison = self.comparison
        return SetScores(pairs.collection, np.arange(len(pairs.rows)), pairs.rows.issues, regions, words, comparison)

    def on(self, data: ImageCaptions, *, cache: Path | None = None, progress: Progress | None = None) -> SetScores:
        """Encode every image and caption of a collection once.

        Pairs are compared in the precision of :func:`~rungwise.encoders.computed_in`; ``auto`` takes bfloat16
        where it keeps nearly all first candidates of a probe.
        """
        rows = self.rows_of(data.pictures, cache=cache, progress=progress)
        read = data if len(rows.kept) == len(data) else data.select(rows.kept)
        with inference(self):
            regions, words = self._regions_of(rows), self._words_of(self._tokens(read.texts))
            scores = SetScores(read, rows.kept, rows.issues, regions, words, self.comparison)
            return _in_precision_asked(scores)

    def block(self, images: Pictures, captions: Texts) -> Vectors:
        """(len(images), len(captions)) float32 scores of any images with any texts.

        Raises:
            UserError: If an image cannot be read.
        """
        rows = self._readable(images)
        with inference(self):
            scores = all_pairs(self.comparison, self._regions_of(rows), self._words_of(self._tokens(captions)))
        found: NDArray[np.float32] = scores.float().cpu().numpy()
        return found

    @property
    def explains(self) -> bool:
        """True."""
        return True

    @abstractmethod
    def attention(self, regions: Tensor, words: Tensor) -> Attention:
        """Which regions answered which words of one pair.

        Args:
            regions: (R, D) of length 1.
            words: (L, D) of length 1.
        """

    def explain(self, picture: Picture | bytes | FeatureRows, text: str) -> Explanation:
        """Attention weights between the words of a text and the regions of a picture."""
        if not text.strip():
            raise UserError("the text is empty; write a few words about the picture")
        rows = self._readable(picture if isinstance(picture, FeatureRows) else [picture])
        with inference(self):
            found = self.attention(self._regions_of(rows)[0], self._words_of(self._tokens([text])).words)
        return Explanation(
            tuple(self.text_encoder.pieces(text)),
            found.weights.float().cpu().numpy(),
            found.answers.float().cpu().numpy(),
            found.shares.float().cpu().numpy(),
            boxes_of(self.backbone, picture),
        )

    def _readable(self, images: Pictures) -> ImageInputs:
        rows = self.rows_of(images)
        refuse_unreadable(rows.issues)
        return rows

    def _tokens(self, texts: Texts) -> Tokens:
        return Tokens.of(self.text_encoder.tokenise(require_words(texts)))

    def _regions_of(self, rows: ImageInputs, batch: int = 64) -> Tensor:
        """(len(rows), R, D) regions, encoded in batches."""
        if not len(rows):
            return torch.zeros(0, 1, self.config.dimension, device=self.device)
        return torch.cat(
            [
                self.regions(rows.take(np.arange(begin, min(begin + batch, len(rows)))).to(self.device))
                for begin in range(0, len(rows), batch)
            ]
        )

    def _words_of(self, tokens: Tokens, batch: int = 256) -> WordSets:
        """The words of texts, encoded shortest first so that batches hold little padding."""
        order = np.argsort(tokens.lengths, kind="stable")
        parts: list[WordSets] = []
        for begin in range(0, len(order), batch):
            padded, lengths = tokens.padded(order[begin : begin + batch], self.text_encoder.pad_number)
            parts.append(WordSets.of(self.words(padded.to(self.device), lengths), lengths))
        if not parts:
            return WordSets(
                torch.zeros(0, self.config.dimension, device=self.device), torch.zeros(0, dtype=torch.int64)
            )
        sorted_sets = WordSets(torch.cat([one.words for one in parts]), torch.cat([one.lengths for one in parts]))
        return sorted_sets.select(torch.from_numpy(np.argsort(order, kind="stable")))


def first_kept(exact: Vectors, quick: Vectors, k: int = 10) -> float:
    """Share of the first k candidates that two rankings have in common, averaged over queries.

    Args:
        exact: (queries, candidates) scores.
        quick: (queries, candidates) other scores of the same pairs.
        k: Number of first candidates; all of a smaller gallery.

    Returns:
        A share in 0..1; 1 where there is no pair.
    """
    if not exact.size:
        return 1.0
    first, second = (top_columns(scores, k).tolist() for scores in (exact, quick))
    return float(np.mean([len(set(one) & set(other)) / len(one) for one, other in zip(first, second, strict=True)]))


def _in_precision_asked(scores: SetScores) -> SetScores:
    asked = computing()
    if asked.precision == "float32":
        return scores
    if asked.precision == "bfloat16":
        return in_half(scores)
    quick = in_half(scores)
    kept = float(np.mean([first_kept(*both) for both in zip(_probe(scores), _probe(quick), strict=True)]))
    enough = kept >= LEAST_OVERLAP
    asked.say(
        f"pairs compared in {'bfloat16' if enough else 'float32'}: bfloat16 leaves {100 * kept:.1f} % of the first"
        f" ten candidates of a probe ({100 * LEAST_OVERLAP:g} % are asked)"
    )
    return quick if enough else scores


def _probe(scores: SetScores) -> tuple[Vectors, Vectors]:
    """(queries, candidates) scores of some images, and of some captions."""
    images, captions = len(scores.regions), len(scores.words)
    return (
        scores.block(evenly_spread(images, PROBE), evenly_spread(captions, PROBE_GALLERY)),
        scores.block(evenly_spread(images, PROBE_GALLERY), evenly_spread(captions, PROBE)).T,
    )


def in_half(scores: SetScores) -> SetScores:
    """The same regions and words in bfloat16, in which their products are computed too."""
    words = WordSets(scores.words.words.bfloat16(), scores.words.lengths)
    return replace(scores, regions=scores.regions.bfloat16(), words=words)


def _in_precision(sets: Tensor) -> Tensor:
    """Round sets to autocast's precision once, and not for every block."""
    kind = sets.device.type
    return sets.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else sets
