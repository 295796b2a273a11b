"""Similarities: (n, D) image vectors and (m, D) text vectors to an (n, m) block.

Functions take vectors as they come. A :class:`Similarity` is the same as a value, which a model carries.
"""

from rungwise.similarity.order import order
from rungwise.similarity.sparse_backward import sparse_backward_cosine
from rungwise.similarity.values import AnySimilarity, Cosine, Inner, Order, ShiftedCosine, Similarity
from rungwise.similarity.vectors import cosine, inner, l2_normalise, shifted_cosine

__all__ = [
    "AnySimilarity",
    "Cosine",
    "Inner",
    "Order",
    "ShiftedCosine",
    "Similarity",
    "cosine",
    "inner",
    "l2_normalise",
    "order",
    "shifted_cosine",
    "sparse_backward_cosine",
]
