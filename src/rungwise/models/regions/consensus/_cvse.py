"""CVSE: consensus-aware visual-semantic embedding (Wang et al. 2020), the base of the SAM paper's tables.

A picture is its regions under a linear layer, a text its words under a bidirectional GRU; both have length 1. Each item
has three vectors of length 1, and S is the cosine on each level::

    instance   x = self-attention over its regions or words      rungwise.models.regions._self_attention
    consensus  z = concepts, weighted by their scores for x      rungwise.models.regions.consensus._levels
    fused      f = alpha x + (1 - alpha) z                       alpha = 0.85; 0.9 for COCO, 0.75 in the paper

    L = 3 rank(S_fused) + 5 rank(S_instance) + 1 rank(S_consensus) + 2 sum over pairs of KL(q_text || p_image)

rank is the loss that the run names: the sum of both directions' hardest hinges in the authors' program. The weight of
KL, which is a sum over the batch, is meant for such sums. In training, the labels of a text are the concepts of its own
words or of all training captions of its picture, as ``training_concepts`` of the configuration says; the program takes
those of the picture.

An item is indexed, searched and evaluated by one vector: the fused one, unless ``level`` of the configuration says
otherwise. The program evaluates by two levels, S = 0.95 S_fused + 0.05 S_consensus. With ``consensus_share`` s = 0.05
the vector of an item holds both, and its product with another is that sum::

    v = [sqrt(1 - s) f, sqrt(s) z]                           of length 1, of 2 D numbers

Not done here: the program also gives each test caption the concepts of its nearest test captions and pictures, so that
a score depends on what else is in the test set. And it finds a concept by the lemma of a word, not by the word itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import ImageSide, LinearHead, TextSide, require_words
from rungwise.encoders.texts import WordCoverage, initialise
from rungwise.encoders.vocabulary import Tokens
from rungwise.language import load_word_vectors, word_vector_dimension
from rungwise.models._contracts import Progress, Texts, Vectors, texts_at
from rungwise.models._dual_encoder import TwoTower
from rungwise.models._encoder_pair import EncoderBatch, freeze_encoders, image_features
from rungwise.models._training_pairs import Autocast, Pairs, Positions, ScoredBatch
from rungwise.models.io import ModelConfig, ModelFolder
from rungwise.models.regions._config import (
    check_regions_known,
    check_words,
    region_config_for_data,
    regions_of,
    to_width,
    with_regions,
)
from rungwise.models.regions._self_attention import SelfAttention
from rungwise.models.regions.consensus._concepts import (
    Concepts,
    ConceptTexts,
    co_occurrence,
    concepts_in,
    concepts_of_file,
    correlation,
    labels_of,
    most_frequent,
    of_pictures,
)
from rungwise.models.regions.consensus._config import CVSEConfig
from rungwise.models.regions.consensus._levels import (
    ConceptAttention,
    ConceptGraph,
    concept_divergence,
    consensus_vectors,
    with_labels,
)

CONCEPTS = "concepts.txt"
"""File of a saved model that names its concepts, one a line."""


@dataclass(frozen=True)
class ConceptBatch(EncoderBatch):
    """Pairs as the encoders read them, and the concepts of the captions.

    Attributes:
        labels: (n, concepts) of 0 and 1: the labels of each caption.
    """

    labels: Tensor


@dataclass(frozen=True)
class Levels:
    """Vectors of items on each level, (n, D) of length 1.

    Attributes:
        fused: Mixture of the two levels.
        instance: Vectors from the regions or words.
        consensus: Vectors from the concepts.
        scores: (n, concepts) scores of concepts: log p of pictures, q of texts.
    """

    fused: Tensor
    instance: Tensor
    consensus: Tensor
    scores: Tensor

    @classmethod
    def of(cls, instance: Tensor, consensus: Tensor, scores: Tensor, alpha: float) -> Self:
        """Levels whose fused vectors hold the share ``alpha`` of the instance level."""
        return cls(F.normalize(torch.lerp(consensus, instance, alpha), dim=1), instance, consensus, scores)

    def vectors(self, config: CVSEConfig) -> Tensor:
        """Vectors of length 1 that stand for the items: (n, D) of one level, or (n, 2 D) of two."""
        if share := config.consensus_share:
            return torch.cat([(1 - share) ** 0.5 * self.fused, share**0.5 * self.consensus], dim=1)
        vectors: Tensor = getattr(self, config.level)
        return vectors


class CVSE(TwoTower):
    """Consensus-aware visual-semantic embedding (Wang et al. 2020).

    Attributes:
        image_projection: Linear layer from features of regions to D.
        text_projection: Linear layer from vectors of words to D; nothing where they have that width.
        concepts: The words that serve as concepts.
        coverage: Number of concepts in the file of word vectors; None without such a file, and for a saved model.

    >>> import numpy as np
    >>> from rungwise.encoders import FeatureConfig
    >>> from rungwise.models.regions.consensus._concepts import ConceptConfig
    >>> concepts = ConceptConfig(min_count=1, most_share=0.5, width=4)
    >>> config = CVSEConfig(image=FeatureConfig(), concepts=concepts, dimension=8)
    >>> regions = FeatureRows(np.zeros((2, 3, 5), np.float32))
    >>> model = CVSE.create(config, ["a dog barks", "a cat sleeps"], regions).eval()
    >>> model.concepts.words, model.encode_text(["two dogs"]).shape
    (('barks', 'cat', 'dog', 'sleeps'), (1, 8))
    """

    kind: ClassVar[str] = "cvse"
    config_type: ClassVar[type[ModelConfig]] = CVSEConfig
    reads_regions: ClassVar[bool] = True
    exportable: ClassVar[bool] = False
    adds_losses = True  # three levels are scored, and the concepts of a pair are compared
    keeps_text_vectors: ClassVar[bool] = False  # a text is a set of words, so no vector of it is kept

    def __init__(self, config: CVSEConfig, image: ImageSide, text: Callable[[], TextSide], concepts: Concepts) -> None:
        """Put the parts together.

        Args:
            config: Configuration, which counts the regions.
            image: The encoder of pictures.
            text: Makes the encoder of texts.
            concepts: The concepts, as many as the configuration counts.

        Raises:
            UserError: If an encoder gives no regions, or no vectors of words.
        """
        super().__init__(config)
        width = config.dimension
        self.concepts = concepts
        self.coverage: WordCoverage | None = None
        self.backbone = image
        self.image_projection = LinearHead().build(image.features, width)
        self.text_encoder = text()
        check_words(self.text_encoder)
        self.text_projection = to_width(self.text_encoder.state_width, width)
        self.image_attention = SelfAttention(width, config.dropout, config.regions)
        self.text_attention = SelfAttention(width, config.dropout, unit_mean=True)
        for attention in (self.image_attention, self.text_attention):
            _start_as_torch(attention)
        trained = config.concepts.word_vectors is None
        self.graph = ConceptGraph(len(concepts), config.concepts.width, width, trained)
        self.image_concepts = ConceptAttention(width, config.smoothing)
        self.text_concepts = ConceptAttention(width, config.smoothing)
        freeze_encoders(self)

    @property
    def dimension(self) -> int:
        """Number of numbers of a vector: D, or 2 D where it holds two levels."""
        return super().dimension * (2 if self.config.consensus_share else 1)

    @classmethod
    def create(cls, config: CVSEConfig, captions: Texts, features: FeatureRows | None = None) -> Self:
        """Make a model whose vocabulary, concepts and graph come from the captions of the training split.

        Raises:
            UserError: If the backbone or its weights cannot be loaded, the data have no regions or no words, or the
                captions hold none of the concepts.
        """
        config, texts = region_config_for_data(config, captions, features), require_words(captions)
        asked = config.concepts
        concepts = most_frequent(texts, asked) if asked.file is None else concepts_of_file(asked.file)
        found = concepts.found(texts)
        if not len(found.numbers):
            raise UserError(
                f"{asked.file}: none of its {len(concepts)} words stands in the {len(texts)} training captions; give"
                " concepts of this collection, or leave model.concepts.file out"
            )
        image = config.image.build()
        width = asked.width if asked.word_vectors is None else word_vector_dimension(Path(asked.word_vectors))
        asked = replace(asked, count=len(concepts), width=width)
        config = with_regions(replace(config, concepts=asked), image, features)
        model = cls(config, image, lambda: config.text.build(texts, config.dimension), concepts)
        with torch.no_grad():
            model.graph.adjacency.copy_(torch.from_numpy(correlation(co_occurrence(found, len(concepts)), asked)))
        if asked.word_vectors is not None:
            rows = {word: number for number, word in enumerate(concepts.words)}
            model.coverage = initialise(model.graph.nodes, rows, load_word_vectors(asked.word_vectors, rows))
        return model

    @classmethod
    def restore(cls, config: CVSEConfig, folder: ModelFolder) -> Self:
        """Read a saved model, its concepts included."""
        where = folder.path / CONCEPTS
        concepts = concepts_in(folder.text(CONCEPTS), where)
        if len(concepts) != config.concepts.count:
            raise UserError(
                f"{where}: {len(concepts)} concepts, but config.json counts {config.concepts.count}; the files belong"
                " to different models"
            )
        check_regions_known(config, folder)
        image = config.image.restore(folder)
        regions_of(image, cls.kind)
        return cls(config, image, lambda: config.text.restore(folder, config.dimension), concepts)

    def files(self) -> Mapping[str, str]:
        """Files of both encoders, and the concepts."""
        return {**super().files(), CONCEPTS: "".join(f"{word}\n" for word in self.concepts.words)}

    def remarks(self) -> Sequence[str]:
        """Remarks of both encoders, which concepts there are, and of which levels vectors are."""
        words, share = self.concepts.words, self.config.consensus_share
        said = [f"{len(words)} concepts, the first are {', '.join(words[:5])}"]
        if self.coverage is not None:
            said.append(f"concepts: {self.coverage}")
        if share:
            said.append(
                f"vectors of {self.dimension} numbers, whose similarity is {1 - share:g} of the fused level and"
                f" {share:g} of the consensus level"
            )
        return *super().remarks(), *said

    def _identity(self) -> list[Any]:
        """The identity of a pair of encoders, with the concepts."""
        known, *others = super()._identity()
        if not self.config.consensus_share:  # decides no vector
            del known["consensus_share"]
        return [known, *others, list(self.concepts.words)]

    def image_levels(self, rows: Tensor) -> Levels:
        """Vectors of pictures, from (n, R, features) features, pixels, or rows of features.

        Raises:
            UserError: If the number of regions R is not that of training.
        """
        return self.levels_of_regions(F.normalize(self.image_projection(image_features(self, rows)).float(), dim=2))

    def text_levels(self, tokens: Tensor, lengths: Tensor, labels: Tensor) -> Levels:
        """Vectors of texts.

        Args:
            tokens: (n, longest) token numbers.
            lengths: (n,) number of tokens of each text.
            labels: (n, concepts) of 0 and 1: the labels of each text.
        """
        states = self.text_encoder.states(tokens, lengths)
        return self.levels_of_words(F.normalize(self.text_projection(states).float(), dim=2), lengths, labels)

    def levels_of_regions(self, regions: Tensor) -> Levels:
        """Vectors of pictures from their regions (n, R, D) of length 1."""
        with torch.autocast(regions.device.type, enabled=False):
            instance, concepts = self.image_attention(regions), self.graph()
            scores = self.image_concepts(instance, concepts)
            return Levels.of(instance, consensus_vectors(scores.exp(), concepts), scores, self.config.alpha)

    def levels_of_words(self, words: Tensor, lengths: Tensor, labels: Tensor) -> Levels:
        """Vectors of texts from their words (n, longest, D) of length 1, of which only the first ``lengths`` count."""
        with torch.autocast(words.device.type, enabled=False):
            instance, concepts = self.text_attention(words, lengths), self.graph()
            scores = self.text_concepts(instance, concepts)
            mixed = with_labels(scores, labels.to(scores), self.config.label_share, self.config.smoothing)
            return Levels.of(instance, consensus_vectors(mixed, concepts), mixed, self.config.alpha)

    def embed_images(self, rows: Tensor) -> Tensor:
        """(n, dimension) vectors of pictures, of the levels that the configuration chose."""
        return self.image_levels(rows).vectors(self.config)

    def embed_captions(self, texts: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Refuse: a text has concepts besides its tokens, so :meth:`text_levels` is needed."""
        raise UserError("a model of kind 'cvse' reads the words of a text beside its tokens; call text_levels")

    def embed(self, batch: EncoderBatch) -> tuple[Tensor, Tensor]:
        """(n, dimension) vectors of both sides of a batch, of the levels that the configuration chose."""
        images, texts = self._levels_of(batch)
        return images.vectors(self.config), texts.vectors(self.config)

    def score(self, batch: EncoderBatch, autocast: Autocast = nullcontext, *, within: bool = False) -> ScoredBatch:
        """Scores of a batch on all levels, and the divergence between the concepts of its pairs."""
        with autocast():
            images, texts = self._levels_of(batch)
        return self.scored(images, texts, within=within)

    def scored(self, images: Levels, texts: Levels, *, within: bool = False) -> ScoredBatch:
        """Scores of some images with as many texts; row k of both is a pair."""
        block, config = self.similarity.block, self.config
        return replace(
            self.compared(images.fused, texts.fused, within=within),
            weight=config.fused_weight,
            further=(
                (config.instance_weight, block(images.instance, texts.instance)),
                (config.consensus_weight, block(images.consensus, texts.consensus)),
            ),
            own=config.divergence_weight * concept_divergence(images.scores, texts.scores),
        )

    def _levels_of(self, batch: EncoderBatch) -> tuple[Levels, Levels]:
        assert isinstance(batch, ConceptBatch) and batch.lengths is not None  # noqa: PT018 - as batch() made it
        return self.image_levels(batch.rows), self.text_levels(batch.texts, batch.lengths, batch.labels)

    def read(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Pairs:
        """What both encoders read of these images and their captions, and the concepts of the captions."""
        pairs = super().read(data, images, cache=cache, progress=progress)
        found = self.concepts.found(require_words(texts_at(data, pairs.captions)))
        shared = of_pictures(found, pairs.image) if self.config.training_concepts == "picture" else None
        return replace(pairs, texts=ConceptTexts.with_concepts(Tokens.of(pairs.texts), found, shared))

    def batch(self, pairs: Pairs, chosen: Positions) -> ConceptBatch:
        """Rows, tokens and labels of some pairs for training, on the model's device."""
        one, texts = super().batch(pairs, chosen), pairs.texts
        assert isinstance(texts, ConceptTexts)  # as read() made it
        return ConceptBatch(one.rows, one.texts, one.lengths, self._labels(texts.training_concepts, chosen))

    def encode_text(self, texts: Sequence[str] | FeatureRows, *, batch: int = 256) -> Vectors:
        """(len(texts), dimension) float32 vectors of captions or queries."""
        words = require_words(texts)
        tokens = Tokens.of(self.text_encoder.tokenise(words))
        return self.encode_tokens(ConceptTexts.with_concepts(tokens, self.concepts.found(words)), batch=batch)

    def _embed_tokens(self, tokens: Tokens, some: NDArray[np.int64]) -> Tensor:
        """Vectors of tokenised captions with their concepts."""
        assert isinstance(tokens, ConceptTexts)  # as read() and encode_text() make them
        padded, lengths = tokens.padded(some, self.text_encoder.pad_number)
        labels = self._labels(tokens.concepts, some)
        return self.text_levels(padded.to(self.device), lengths, labels).vectors(self.config)

    def _labels(self, found: Tokens, chosen: Positions) -> Tensor:
        return labels_of(found, chosen, len(self.concepts)).to(self.device)


def _start_as_torch(attention: SelfAttention) -> None:
    """Reset these layers to torch's own initialisation, as in the authors' program."""
    for layer in (attention.local, attention.whole, attention.common):
        assert isinstance(layer, nn.Linear)
        layer.reset_parameters()
