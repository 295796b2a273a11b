"""Similarities of vectors: products of normalised vectors.

Each function takes (n, D) image vectors and (m, D) text vectors, and returns the (n, m) block of similarities.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def l2_normalise(vectors: Tensor) -> Tensor:
    """Bring (..., D) vectors of any float type to length 1.

    A vector of zeros is unchanged, and its gradient passes unchanged, not as NaN. Lengths of half-precision vectors are
    computed in float32.

    >>> l2_normalise(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    exact = vectors.float() if vectors.dtype in HALF else vectors
    length: Tensor = torch.linalg.vector_norm(exact, dim=-1, keepdim=True)
    unit: Tensor = exact / length.masked_fill(length == 0, 1)
    return unit.to(vectors.dtype)


def cosine(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
    """Cosine of each image and text vector, in -1..1 (VSE++, section 3); 0 with a vector of length 0.

    >>> cosine(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 1.0], [-3.0, 0.0]]))
    tensor([[ 0.7071, -1.0000]])
    """
    return l2_normalise(image_vectors) @ l2_normalise(text_vectors).T


def inner(
    image_vectors: Tensor, text_vectors: Tensor, normalised: Literal["text", "image", "neither"] = "text"
) -> Tensor:
    """Inner product with one side unnormalised: VSE0 normalises the text side only (VSE++, section 3).

    Args:
        image_vectors: (n, D).
        text_vectors: (m, D).
        normalised: Side that is brought to length 1.

    >>> inner(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 1.0], [-3.0, 0.0]]))
    tensor([[ 1.4142, -2.0000]])
    """
    if normalised not in ("text", "image", "neither"):
        raise ValueError(f"normalised must be one of text, image, neither; got {normalised!r}")
    images = l2_normalise(image_vectors) if normalised == "image" else image_vectors
    texts = l2_normalise(text_vectors) if normalised == "text" else text_vectors
    return images @ texts.T


def shifted_cosine(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
    """(1 + cosine) / 2, in 0..1 (CMAL2R, Eq. 1).

    >>> shifted_cosine(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 1.0], [-3.0, 0.0]]))
    tensor([[0.8536, 0.0000]])
    """
    return (1 + cosine(image_vectors, text_vectors)) / 2
