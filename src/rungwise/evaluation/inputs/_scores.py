"""Checks of the scores and degrees that ``evaluate`` takes, and access to them in blocks.

One source of :func:`similarity_source` may serve all functions that read the same scores, so that embeddings are
checked once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.evaluation.inputs._arrays import Embeddings
from rungwise.metrics import (
    CheckedDegrees,
    EmbeddingSource,
    MatrixSource,
    Norms,
    ProductSource,
    SimilaritySource,
    TiledSource,
    as_slice,
)

_PARAMETERS = {
    "image_embeddings": "image_embeddings",
    "text_embeddings": "text_embeddings",
    "image_of_caption": "image_of_caption",
}


def similarity_source(
    *,
    similarity: Any = None,
    image_embeddings: Any = None,
    text_embeddings: Any = None,
    image_of_caption: ArrayLike,
    similarity_function: Any = None,
    images: int | None = None,
) -> SimilaritySource:
    """Make the source that :func:`evaluate` reads similarities from; the arguments are those of ``evaluate``."""
    owners, function = checked_owners(image_of_caption), similarity_function
    if hasattr(function, "array"):  # a similarity as a value, known by what it can do so that torch is not imported
        function = None if function.product else function.array
    if function is not None and not callable(function):
        raise UserError(
            f"similarity_function: {type(function).__name__} is no function; give a function of two blocks of"
            " embeddings, or leave it out: the cosine is the inner product of rungwise.similarity.unit_rows(vectors)",
            parameters={"similarity_function:": "similarity_function"},
        )
    both = image_embeddings is not None and text_embeddings is not None
    neither = image_embeddings is None and text_embeddings is None
    if not (both if similarity is None else neither):
        raise UserError(
            "give either similarity, or image_embeddings and text_embeddings together", parameters=_PARAMETERS
        )
    order = np.argsort(owners, kind="stable")
    if hasattr(similarity, "rows") and hasattr(similarity, "columns"):
        given: SimilaritySource = similarity
        _agree(given.shape, owners, images, "similarity")
        return given
    if similarity is None:
        image, image_norms = _vectors(image_embeddings)
        text, text_norms = _vectors(text_embeddings)
        _agree(_embedding_shape(image, text, function is None), owners, images, "text_embeddings")
        if function is not None:
            return EmbeddingSource(image, text, order, function)
        return ProductSource(image, text, order, image_norms, text_norms)
    if hasattr(similarity, "block") and hasattr(similarity, "shape"):
        _agree(tuple(similarity.shape), owners, images, "similarity")
        return TiledSource(similarity.block, tuple(similarity.shape), order)
    if callable(similarity) and not hasattr(similarity, "shape"):
        count = int(owners.max()) + 1 if images is None else images
        _agree((count, len(owners)), owners, images, "similarity")
        return TiledSource(similarity, (count, len(owners)), order)
    matrix = _sliceable(similarity, "similarity")
    _agree(_matrix_shape(matrix, len(owners), images, "similarity"), owners, images, "similarity")
    return MatrixSource(matrix)


def checked_owners(image_of_caption: ArrayLike) -> NDArray[np.int64]:
    """(captions,) position of each caption's image, checked to be integers from 0."""
    owners = np.asarray(image_of_caption)
    if not owners.size:
        raise UserError("image_of_caption is empty; give each caption's image position", parameters=_PARAMETERS)
    if owners.ndim != 1 or owners.dtype.kind not in "iu":
        raise UserError(
            f"image_of_caption must be one whole number per caption, got shape {owners.shape} of {owners.dtype};"
            " give each caption's image position",
            parameters=_PARAMETERS,
        )
    if owners.min() < 0:
        raise UserError(
            f"image_of_caption, caption {owners.argmin()}: {owners.min()} is negative; positions start at 0",
            parameters=_PARAMETERS,
        )
    return owners.astype(np.int64)


def checked_degrees(relevance: Any, shape: tuple[int, int], gaps: bool = False) -> CheckedDegrees | None:
    """Degrees of all pairs, from a matrix or from an object with ``block``; None stays None.

    Args:
        relevance: Degrees as :func:`~rungwise.evaluation._evaluate` takes them.
        shape: Number of images and captions.
        gaps: Whether degrees may be NaN, for pairs without one.

    Raises:
        UserError: If degrees are of another shape. Values that are not finite are refused when they are read.

    >>> checked_degrees(np.eye(2), (2, 2)).block(np.arange(1), np.arange(2))
    array([[1., 0.]])
    """
    if relevance is None:
        return None
    images, captions = np.arange(shape[0]), np.arange(shape[1])
    if hasattr(relevance, "block"):
        own = getattr(relevance, "shape", shape)  # an object of the caller's need not have one
        if tuple(own) != shape:
            raise UserError(
                f"relevance has shape {tuple(own)} but the similarity {shape}; give the relevance of these data"
            )
        return CheckedDegrees(relevance.block, images, captions, gaps)
    matrix = _sliceable(relevance, "relevance")
    if _matrix_shape(matrix, shape[1], None, "relevance") != shape:
        raise UserError(
            f"relevance has shape {tuple(matrix.shape)} but the similarity {shape}; give one degree per pair"
        )
    return CheckedDegrees(lambda some, others: matrix[as_slice(some)][:, as_slice(others)], images, captions, gaps)


def _vectors(embeddings: Any) -> tuple[Any, Norms | None]:
    """The vectors, and their norms where a file was read and checked."""
    return (embeddings.vectors, embeddings.norms) if isinstance(embeddings, Embeddings) else (embeddings, None)


def _sliceable(matrix: Any, what: str) -> Any:
    """The matrix without a copy: arrays, maps and tensors unchanged, anything else as an array."""
    if hasattr(matrix, "shape") and hasattr(matrix, "__getitem__"):
        return matrix
    try:
        return np.asarray(matrix)
    except ValueError as error:
        raise UserError(f"{what}: rows of different lengths; give as many values in every row") from error


def matrix_shape(similarity: Any) -> tuple[int, int]:
    """Number of images and captions of a matrix that is given without data.

    Raises:
        UserError: If it has not two axes, or its rows differ in length.

    >>> matrix_shape([[0.9, 0.1], [0.2, 0.3]])
    (2, 2)
    """
    shape = tuple(int(length) for length in getattr(_sliceable(similarity, "similarity"), "shape", ()))
    if len(shape) != 2:
        raise UserError(f"similarity must have two axes, (images, captions), got shape {shape}")
    return shape[0], shape[1]


def _matrix_shape(matrix: Any, captions: int, images: int | None, what: str) -> tuple[int, int]:
    shape = tuple(int(length) for length in matrix.shape)
    if len(shape) != 2:
        raise UserError(f"{what} must have two axes, (images, captions), got shape {shape}")
    if shape[1] != captions and shape[0] == captions:
        raise UserError(
            f"{what} has shape {shape} for {captions} captions: it is transposed;"
            f" give (images, captions), such as {what}.T"
        )
    if shape[1] != captions or images not in (None, shape[0]):
        wanted = f"({'images' if images is None else images}, {captions})"
        raise UserError(
            f"{what} has shape {shape} but image_of_caption names {captions} captions; give {wanted}",
            parameters=_PARAMETERS,
        )
    return shape[0], shape[1]


def _embedding_shape(image: Any, text: Any, need_equal_width: bool) -> tuple[int, int]:
    for what, one in (("image_embeddings", image), ("text_embeddings", text)):
        if not hasattr(one, "shape") or (need_equal_width and len(one.shape) != 2):
            raise UserError(
                f"{what} must be an array of shape (items, D), got {getattr(one, 'shape', type(one).__name__)}"
            )
    if need_equal_width and image.shape[1] != text.shape[1]:
        raise UserError(
            f"image_embeddings have {image.shape[1]} dimensions and text_embeddings {text.shape[1]};"
            " give embeddings of one model",
            parameters=_PARAMETERS,
        )
    return int(image.shape[0]), int(text.shape[0])


def _agree(shape: tuple[int, int], owners: NDArray[np.int64], images: int | None, what: str) -> None:
    if shape[1] != len(owners):
        raise UserError(
            f"{what} hold {shape[1]} captions but image_of_caption names {len(owners)}; give one position per caption",
            parameters=_PARAMETERS,
        )
    if images not in (None, shape[0]):
        raise UserError(f"images={images} but {shape[0]} images were given; leave images out")
    if owners.max() >= shape[0]:
        raise UserError(
            f"image_of_caption, caption {owners.argmax()}: image {owners.max()} does not exist among {shape[0]} images"
            f" (0..{shape[0] - 1}); correct the position or give all images",
            parameters=_PARAMETERS,
        )
