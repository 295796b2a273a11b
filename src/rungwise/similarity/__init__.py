"""Similarities of (n, D) image vectors and (m, D) text vectors, or of regions and words, as (n, m) blocks.

Functions take tensors that are not prepared. A :class:`Similarity` is the same as a value, which a model carries; it
compares arrays without torch. Modules that need torch are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.similarity.values import AnySimilarity, Cosine, Inner, Order, ShiftedCosine, Similarity

if TYPE_CHECKING:
    from rungwise.similarity.order_tensors import order
    from rungwise.similarity.sparse_backward import sparse_backward_cosine
    from rungwise.similarity.stacked_attention import CrossAttention, cross_attention
    from rungwise.similarity.vectors import cosine, inner, l2_normalise, shifted_cosine

_LATER = {
    "CrossAttention": "stacked_attention",
    "cosine": "vectors",
    "cross_attention": "stacked_attention",
    "inner": "vectors",
    "l2_normalise": "vectors",
    "order": "order_tensors",
    "shifted_cosine": "vectors",
    "sparse_backward_cosine": "sparse_backward",
}
"""Module of every name that is imported when first used."""

__all__ = [
    "AnySimilarity",
    "Cosine",
    "CrossAttention",
    "Inner",
    "Order",
    "ShiftedCosine",
    "Similarity",
    "cosine",
    "cross_attention",
    "inner",
    "l2_normalise",
    "order",
    "shifted_cosine",
    "sparse_backward_cosine",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
