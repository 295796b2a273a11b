"""Image-caption pairs as training reads them, and what training asks of a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.models._contracts import DualEncoder, PairScores, Progress, Texts
from rungwise.models.io import SavedModel

Positions = NDArray[np.int64]
Autocast = Callable[[], AbstractContextManager[Any]]
"""Opens the context in which encoders compute, such as bfloat16 under ``torch.autocast``."""


class ImageInputs(Protocol):
    """A model's input for some images: features, pixels or regions."""

    @property
    def kept(self) -> Positions:
        """(rows,) position of each among the images that were asked for, ascending."""
        ...

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The images that could not be read, with the reason."""
        ...

    @property
    def computed(self) -> int:
        """Number of rows that were computed now and not taken from a cache."""
        ...

    @property
    def seconds(self) -> float:
        """Seconds that computing the rows took."""
        ...

    def __len__(self) -> int:
        """Number of images."""
        ...

    def take(self, positions: Positions) -> Tensor:
        """(len(positions), ...) rows of these images."""
        ...


@dataclass(frozen=True)
class Pairs:
    """The readable images of a part of a collection with their captions.

    Attributes:
        rows: What the model reads of each image.
        images: (images,) positions in the collection.
        captions: (captions,) positions in the collection.
        image: (captions,) position of each caption's image in ``rows``.
        texts: (captions,) what the model reads of each caption, such as its token numbers.
        data: The whole collection.
        text_rows: Vectors of the captions; None for a model that reads words.
    """

    rows: ImageInputs
    images: Positions
    captions: Positions
    image: Positions
    texts: Sequence[Sequence[int]]
    data: ImageCaptions
    text_rows: ImageInputs | None = None

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number of captions."""
        return len(self.captions)

    @property
    def lengths(self) -> Positions:
        """(captions,) length of each caption as the model reads it."""
        return np.array([len(text) for text in self.texts], dtype=np.int64)

    @cached_property
    def first_caption(self) -> Positions:
        """(images,) position here of the first caption of each image."""
        first = np.zeros(len(self.rows), dtype=np.int64)
        first[self.image[::-1]] = np.arange(len(self))[::-1]
        return first

    @property
    def collection(self) -> ImageCaptions:
        """These images and captions as a collection, in the same order."""
        data, images, captions = self.data, self.images.tolist(), self.captions.tolist()
        return replace(
            data.select(images),
            captions=tuple(data.captions[caption] for caption in captions),
            image_of_caption=self.image,
            caption_ids=tuple(data.caption_ids[caption] for caption in captions),
            text_features=None if data.text_features is None else data.text_features.take(captions),
        )


def captions_of(data: ImageCaptions, images: Positions) -> Positions:
    """Positions of the captions of these images, ascending."""
    member = np.zeros(len(data), dtype=bool)
    member[images] = True
    return np.flatnonzero(member[data.image_of_caption])


def pair_up(
    data: ImageCaptions,
    images: Positions,
    rows: ImageInputs,
    read_texts: Callable[[Sequence[str]], Sequence[Sequence[int]]],
) -> Pairs:
    """The readable images among those asked for, with their captions.

    Args:
        data: The whole collection.
        images: Positions of the images that were asked for.
        rows: Rows of the images that could be read.
        read_texts: Function from captions to what the model reads of each.
    """
    place = np.full(len(data), -1, dtype=np.int64)
    place[images[rows.kept]] = np.arange(len(rows.kept))
    readable = captions_of(data, images[rows.kept])
    texts = read_texts([data.captions[caption] for caption in readable])
    return Pairs(rows, images[rows.kept], readable, place[data.image_of_caption[readable]], texts, data)


@dataclass(frozen=True)
class ParameterPlace:
    """The part of a model that a parameter belongs to.

    Attributes:
        side: The encoder, or ``heads`` for what stands above both.
        depth: Number of the encoder's layers above the parameter; 0 at its top and in the heads.
    """

    side: Literal["image", "text", "heads"] = "heads"
    depth: int = 0


@dataclass(frozen=True)
class ScoredBatch:
    """The scores of a batch, with gradients.

    Attributes:
        similarity: (n, n) of the images with the captions; pairs are on the diagonal.
        image_similarity: (n, n) of the images with each other, where asked for.
        text_similarity: (n, n) of the captions with each other, where asked for.
        vectors: (n, D) image vectors and (n, D) caption vectors; None for models without.
        weight: Weight of the loss of ``similarity``.
        further: Other (n, n) similarities for the same loss, each with its weight, of a model with several levels.
        own: A loss of the model's own, which is added; None for models without.
    """

    similarity: Tensor
    image_similarity: Tensor | None = None
    text_similarity: Tensor | None = None
    vectors: tuple[Tensor, Tensor] | None = None
    weight: float = 1.0
    further: tuple[tuple[float, Tensor], ...] = ()
    own: Tensor | None = None

    def loss(self, of_block: Callable[[Tensor], Tensor]) -> Tensor:
        """The weighted loss of the batch, where ``of_block`` is the loss of one (n, n) block of similarities.

        >>> import torch
        >>> eye = torch.eye(2)
        >>> ScoredBatch(eye, weight=3.0, further=((5.0, 2 * eye),), own=torch.tensor(0.5)).loss(torch.Tensor.sum)
        tensor(26.5000)
        """
        value = of_block(self.similarity)
        if self.weight != 1:
            value = self.weight * value
        for weight, block in self.further:
            value = value + weight * of_block(block)
        return value if self.own is None else value + self.own


@dataclass(frozen=True)
class Compilable:
    """A part of a model that ``torch.compile`` takes.

    Attributes:
        module: The module whose forward is compiled.
        one_shape: Whether its inputs have one shape in all full batches, unlike captions of several lengths.
    """

    module: nn.Module
    one_shape: bool


class TrainableScorer(SavedModel):
    """A pair scorer that can be trained: it reads pairs, cuts batches and scores them.

    The training loop never looks inside a batch.
    """

    @property
    def adds_losses(self) -> bool:
        """Whether :meth:`score` gives more than one similarity, or a loss of the model's own."""
        return False

    @classmethod
    @abstractmethod
    def create(cls, config: Any, captions: Texts, features: FeatureRows | None = None) -> Self:
        """Make a new model.

        Args:
            config: Configuration of the family's ``config_type``.
            captions: Captions of the training split, from which a vocabulary is learnt, or the rows that stand for
                them.
            features: The rows that stand for pictures; None where the collection has pictures.
        """

    def part_of(self, parameter: str) -> ParameterPlace:
        """The part to which a parameter (by its ``named_parameters`` name) belongs, for learning rates of parts."""
        return ParameterPlace()

    def remarks(self) -> Sequence[str]:
        """Sentences about a new model, such as how many words a file of word vectors held."""
        return ()

    def keep_texts(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> ImageInputs | None:
        """Compute and cache what the model keeps of the captions of these images, so that :meth:`read` finds it.

        Args:
            data: The collection.
            images: Positions of the images.
            cache: Folder of the cache; the default one if None.
            progress: Called with the number of captions done since the last call.

        Returns:
            A row for each caption; None for a model that caches nothing of captions.
        """
        return None

    def recompute_layers(self) -> None:
        """Recompute the layers of trained encoders in the backward pass, which saves memory and takes time."""
        raise UserError(
            f"models of kind {self.kind!r} have no gradient checkpointing; leave gradient_checkpointing out"
        )

    def compilable(self) -> Sequence[Compilable]:
        """Parts that are worth compiling; none by default."""
        return ()

    @abstractmethod
    def read(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Pairs:
        """Everything that training reads of these images and their captions."""

    @abstractmethod
    def batch(self, pairs: Pairs, chosen: Positions) -> Any:
        """Captions at (n,) positions in ``pairs``, each with its image, on the model's device."""

    @abstractmethod
    def score(self, batch: Any, autocast: Autocast, *, within: bool = False) -> ScoredBatch:
        """Scores of a batch's images with its captions; ``within`` each modality too, for models with vectors."""

    @abstractmethod
    def scores_of(self, pairs: Pairs, autocast: Autocast) -> PairScores:
        """Scores of all images with all captions of some pairs, for validation."""


class TrainableEncoder(TrainableScorer, DualEncoder):
    """A dual encoder that can be trained; steps that need vectors, such as cached gradients, work with it."""

    @abstractmethod
    def embed(self, batch: Any) -> tuple[Tensor, Tensor]:
        """(n, D) image vectors and (n, D) caption vectors of a batch, prepared for the similarity, with gradients."""

    def scores_of(self, pairs: Pairs, autocast: Autocast) -> PairScores:
        """Scores of all images with all captions, encoded anew; a family that keeps what it read overrides this."""
        with autocast():
            return self.on(pairs.collection)

    def score(self, batch: Any, autocast: Autocast, *, within: bool = False) -> ScoredBatch:
        """Similarities of a batch's vectors, and within each modality where asked for."""
        with autocast():
            images, captions = self.embed(batch)
        return self.compared(images, captions, within=within)

    def compared(self, images: Tensor, captions: Tensor, *, within: bool) -> ScoredBatch:
        """Similarities of the vectors of a batch's images and captions."""
        block = self.similarity.block
        return ScoredBatch(
            block(images, captions),
            block(images, images) if within else None,
            block(captions, captions) if within else None,
            (images, captions),
        )
