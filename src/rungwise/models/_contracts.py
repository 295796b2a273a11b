"""Contracts of models: a pair scorer, and a dual encoder, which is a pair scorer with vectors.

Evaluation asks for scores of a collection, an index for vectors, and training for what
:mod:`rungwise.models._training_pairs` adds. None of them knows what a model is made of.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows, Picture
from rungwise.similarity import Explanation, Similarity

Vectors = NDArray[np.float32]
Pictures = Sequence[Picture | bytes] | FeatureRows
"""Files or places in larger files, the bytes of files, or rows of features."""
Texts = Sequence[str] | FeatureRows
"""Words, or rows of features in their place."""
Progress = Callable[[int], None]
"""Called with the number of images done since the last call."""
MATRIX = 1 << 28
"""Number of dear scores (1 GiB) up to which all are computed once and kept; beyond, blocks are computed on demand."""

_PAIRS = 1 << 13
"""Number of pairs whose vectors are compared at a time."""


@dataclass(frozen=True)
class EncodedImages:
    """Vectors of the images that could be read.

    Attributes:
        vectors: (kept, D) float32.
        kept: (kept,) position of each among the images asked for, ascending.
        issues: The images that could not be read, with the reason.
    """

    vectors: Vectors
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Give numpy the vectors where it expects an array."""
        return np.array(self.vectors, dtype=dtype, copy=copy) if copy else np.asarray(self.vectors, dtype=dtype)


@dataclass(frozen=True)
class PairScores(ABC):
    """A model's scores of one collection, asked by integer positions.

    Attributes:
        data: The images that could be read, with their captions; positions count in it.
        kept: (images,) position of each readable image in the collection that was asked for.
        issues: The images that could not be read, with the reason.
        dear: Whether a block costs so much that all pairs are computed once, where memory allows.
    """

    dear: ClassVar[bool] = False

    data: ImageCaptions
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...]

    __repr__ = short_repr

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of all scores: (images, captions)."""
        return len(self.data), len(self.data.captions)

    @abstractmethod
    def block(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(len(images), len(captions)) float32 scores; higher is more alike."""

    def pairs(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(pairs,) float32 scores of single pairs, such as those of shortlists; no other pair is scored.

        ``images`` and ``captions`` are (pairs,) positions. Each image is scored once, with all of its captions, since
        reading a picture costs the most.
        """
        of_pair, texts = np.asarray(images, dtype=np.int64), np.asarray(captions, dtype=np.int64)
        found = np.empty(len(of_pair), np.float32)
        order = np.argsort(of_pair, kind="stable")
        for pairs in np.split(order, np.flatnonzero(np.diff(of_pair[order])) + 1):
            if len(pairs):
                found[pairs] = self.block(of_pair[pairs[:1]], texts[pairs])[0]
        return found

    def matrix(self) -> Vectors:
        """(images, captions) float32 scores of all pairs."""
        images, captions = self.shape
        return self.block(np.arange(images), np.arange(captions))

    def for_evaluation(self) -> dict[str, Any]:
        """The scores as keyword arguments of :func:`rungwise.evaluate`, which asks for some of them twice."""
        if self.dear and math.prod(self.shape) <= MATRIX:
            return {"similarity": self.matrix()}
        return {"similarity": self}


@dataclass(frozen=True)
class AskedScores(PairScores):
    """Scores of a model that is asked anew for every block."""

    model: PairScorer

    def block(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(len(images), len(captions)) float32 scores."""
        chosen = np.asarray(images, dtype=np.int64)
        texts = texts_at(self.data, np.asarray(captions, dtype=np.int64))
        return self.model.block(pictures_at(self.data, chosen), texts)


@dataclass(frozen=True)
class VectorScores(PairScores):
    """Scores of a dual encoder, which has encoded every image and caption once.

    Attributes:
        image_vectors: (images, D).
        text_vectors: (captions, D).
        similarity: How the vectors are compared.
    """

    image_vectors: Vectors
    text_vectors: Vectors
    similarity: Similarity

    __repr__ = short_repr

    def block(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(len(images), len(captions)) float32 scores."""
        return self.similarity.array(self.image_vectors[np.asarray(images)], self.text_vectors[np.asarray(captions)])

    def pairs(self, images: ArrayLike, captions: ArrayLike) -> Vectors:
        """(pairs,) float32 scores of single pairs; products are computed some thousand pairs at a time."""
        if not self.similarity.product:
            return super().pairs(images, captions)
        of_pair, texts = np.asarray(images, dtype=np.int64), np.asarray(captions, dtype=np.int64)
        found = np.empty(len(of_pair), np.float32)
        for begin in range(0, len(found), _PAIRS):
            some = slice(begin, begin + _PAIRS)
            sides = self.image_vectors[of_pair[some]], self.text_vectors[texts[some]]
            found[some] = np.einsum("nd,nd->n", *sides)
        return found

    def for_evaluation(self) -> dict[str, Any]:
        """The vectors; where they are not compared by their product, the similarity too."""
        vectors = {"image_embeddings": self.image_vectors, "text_embeddings": self.text_vectors}
        return vectors if self.similarity.product else vectors | {"similarity_function": self.similarity.array}


CHOSEN_BY = "chosen_by"
"""Key in the provenance of a trained or fitted model: the measure that chose it, such as ``labels/MAP``."""

WEIGHTS_WARNING = "weights_warning"
"""Key in the provenance of a model: what the file of its image encoder's weights said otherwise than its settings."""
_LONGEST_WARNING = 1500


class PairScorer(ABC):
    """Any model at all: how well texts fit images.

    A family derives from it, names its ``kind`` and gives :meth:`block`. A family that can read a collection once, and
    answer many blocks from that, gives :meth:`on` as well.

    Attributes:
        kind: Name of the family in ``config.json`` of a saved model; see :func:`rungwise.models.load`.
        provenance: Facts about data, training and results that are saved with the model.
        calibration_file: Calibration of the scores in the model's folder; None where there is no such file.

    >>> class SameLength(PairScorer):  # of a file and a text
    ...     fingerprint = "same length"
    ...     def block(self, images, captions):
    ...         sizes = np.array([len(image) for image in images], np.float32)
    ...         return -abs(sizes[:, None] - [len(text) for text in captions]).astype(np.float32)
    >>> SameLength().block([b"abc"], ["abc", "a"]).tolist()
    [[-0.0, -2.0]]
    """

    kind: ClassVar[str] = ""
    provenance: Mapping[str, Any] = MappingProxyType({})
    calibration_file: Path | None = None

    @property
    def chosen_by_labels(self) -> bool:
        """Whether the model was chosen to find items that share a class label, as far as its provenance says."""
        return str(self.provenance.get(CHOSEN_BY, "")).startswith("labels/")

    @property
    def weights_warning(self) -> str:
        """What the file of the image encoder's weights said otherwise than the model's settings; empty where nothing.

        A saved model says it as far as its provenance does.
        """
        said = self.provenance.get(WEIGHTS_WARNING)
        return said[:_LONGEST_WARNING] if isinstance(said, str) and said.isprintable() else ""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that a score depends on: weights, vocabulary, configuration, preprocessing."""

    @property
    def made_of(self) -> frozenset[str]:
        """Fingerprints of this model and of its parts, none of which may judge it."""
        return frozenset({self.fingerprint})

    @abstractmethod
    def block(self, images: Pictures, captions: Texts) -> Vectors:
        """(len(images), len(captions)) float32 scores of any images with any texts; higher is more alike.

        Raises:
            UserError: If an image cannot be read.
        """

    @property
    def reads_pictures(self) -> bool:
        """Whether the model reads pictures; False where rows of features stand for images."""
        return True

    @property
    def reads_words(self) -> bool:
        """Whether the model reads words; False where rows of features stand for texts."""
        return True

    @property
    def explains(self) -> bool:
        """Whether :meth:`explain` works: the model knows which regions of a picture answered which words."""
        return False

    def explain(self, picture: Picture | bytes | FeatureRows, text: str) -> Explanation:
        """Which regions of a picture answered which words of a text.

        ``picture`` is a file, a place in a larger one, the bytes of a file, or one row of features.

        Raises:
            UserError: If the model cannot say, the picture cannot be read, or the text is blank.
        """
        raise UserError(
            f"a model of kind {self.kind or type(self).__name__!r} does not compare words with regions one by one, so"
            " nobody knows which regions answered which words; ask one of kind scan, sgr or saf"
        )

    def on(self, data: ImageCaptions, *, cache: Path | None = None, progress: Progress | None = None) -> PairScores:
        """The scores of a collection.

        Args:
            data: The images and captions to score.
            cache: Folder for what is computed of an image; the default cache if None.
            progress: Called with the number of images read since the last call.
        """
        return AskedScores(data, np.arange(len(data)), (), self)

    def too_long(self, texts: Texts) -> NDArray[np.int64]:
        """Positions of the texts of which the model reads only the beginning, ascending; none by default."""
        return np.zeros(0, dtype=np.int64)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the model never learnt, spelled as in the text, each once; none by default.

        A model that reads pieces of words knows every word, except those with signs that it lacks.
        """
        return ()

    @property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary, in lower case; empty by default."""
        return frozenset()

    @property
    def decoded_side(self) -> int | None:
        """Shorter side in pixels to which large pictures are decoded, or None where every pixel is read.

        It bounds the memory of a picture; see :func:`rungwise.data.pictures.load_picture`.
        """
        return None

    @property
    def longest_text(self) -> int | None:
        """Tokens of a text that the model reads at most; None for any number, or where it is not known."""
        return None


class DualEncoder(PairScorer):
    """A model that encodes images and texts as vectors; only such models are indexed.

    A family gives ``dimension``, ``similarity``, ``fingerprint``, :meth:`encode_image` and :meth:`encode_text`.

    >>> from rungwise.similarity import Cosine
    >>> class LetterCounts(DualEncoder):  # every text or file is the counts of its letters a, b and c
    ...     dimension, fingerprint, similarity = 3, "letter counts", Cosine()
    ...     def encode_image(self, pictures, *, progress=None, cache=None):
    ...         return EncodedImages(self.encode_text([one.decode() for one in pictures]), np.arange(len(pictures)))
    ...     def encode_text(self, texts):
    ...         counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)
    ...         return counts / np.linalg.norm(counts, axis=1, keepdims=True)
    >>> LetterCounts().block([b"aa"], ["a", "b"]).tolist()
    [[1.0, 0.0]]
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """D, the length of a vector."""

    @property
    @abstractmethod
    def similarity(self) -> Similarity:
        """How vectors are compared; those that the model gives are prepared for it."""

    @property
    def stands_for(self) -> str:
        """Fingerprint of another model that gives the same vectors but for rounding, as measured; empty if none.

        An exported model names its original: an index of either is searched with the other.
        """
        return ""

    @property
    def made_of(self) -> frozenset[str]:
        """Fingerprints of this model and of the model from which it was exported."""
        return frozenset({self.fingerprint, self.stands_for} - {""})

    @abstractmethod
    def encode_image(
        self, pictures: Pictures, *, progress: Progress | None = None, cache: Path | None = None
    ) -> EncodedImages:
        """Vectors of images; those that cannot be read are left out and become issues."""

    def prepare_image(self, picture: Picture | bytes) -> Callable[[], EncodedImages]:
        """Read one picture now, and encode it when the returned function is called.

        A server reads pictures in several threads while one at a time runs the network. A family that takes long to
        read a picture overrides this; the default does all work in the returned function.

        Raises:
            UserError: If the picture cannot be read. The encoded result may hold an issue instead of a vector as well.
        """
        return lambda: self.encode_image([picture])

    @abstractmethod
    def encode_text(self, texts: Texts) -> Vectors:
        """(texts, D) float32 vectors of captions or queries."""

    def encode_captions(self, texts: Texts, *, progress: Progress | None = None, cache: Path | None = None) -> Vectors:
        """(texts, D) float32 vectors of the captions of a collection.

        A family that takes long to encode a text keeps the vectors in ``cache`` (the default cache if None), as
        :meth:`encode_image` does. ``progress`` is called with the number of texts done since the last call.
        """
        vectors = self.encode_text(texts)
        if progress:
            progress(len(texts))
        return vectors

    def block(self, images: Pictures, captions: Texts) -> Vectors:
        """(len(images), len(captions)) float32 similarities of any images with any texts."""
        encoded = self.encode_image(images)
        refuse_unreadable(encoded.issues)
        return self.similarity.array(encoded.vectors, self.encode_text(captions))

    def on(self, data: ImageCaptions, *, cache: Path | None = None, progress: Progress | None = None) -> VectorScores:
        """Encode every image and caption of a collection once."""
        encoded = self.encode_image(data.pictures, progress=progress, cache=cache)
        read = data if len(encoded.kept) == len(data) else data.select(encoded.kept)
        return VectorScores(
            read,
            encoded.kept,
            encoded.issues,
            encoded.vectors,
            self.encode_captions(read.texts, cache=cache),
            self.similarity,
        )


class IndexEncoder(Protocol):
    """What the update of an index asks of a model; every :class:`DualEncoder` gives it."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that a vector depends on."""
        ...

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        ...

    @property
    def stands_for(self) -> str:
        """Fingerprint of another model that gives the same vectors but for rounding; empty where there is none."""
        ...

    def encode_image(
        self, pictures: Pictures, *, progress: Progress | None = None, cache: Path | None = None
    ) -> EncodedImages:
        """Vectors of images; those that cannot be read are left out and become issues."""
        ...

    def encode_captions(self, texts: Texts, *, progress: Progress | None = None, cache: Path | None = None) -> Vectors:
        """(texts, D) float32 vectors of captions."""
        ...


def refuse_unreadable(issues: Sequence[Issue]) -> None:
    """Refuse images of which some could not be read."""
    if issues:
        first = issues[0]
        raise UserError(": ".join(part for part in (first.where, first.kind, first.detail) if part))


def pictures_at(data: ImageCaptions, images: NDArray[np.int64]) -> Pictures:
    """The images at these positions, as a model reads them."""
    pictures = data.pictures
    return (
        pictures.take(images) if isinstance(pictures, FeatureRows) else [pictures[image] for image in images.tolist()]
    )


def texts_at(data: ImageCaptions, captions: NDArray[np.int64]) -> Texts:
    """The captions at these positions, as a model reads them."""
    texts = data.texts
    return texts.take(captions) if isinstance(texts, FeatureRows) else [texts[caption] for caption in captions.tolist()]
