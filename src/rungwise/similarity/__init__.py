"""Similarities: (n, D) image vectors and (m, D) text vectors to an (n, m) block."""

from rungwise.similarity.order import order
from rungwise.similarity.sparse_backward import sparse_backward_cosine
from rungwise.similarity.vectors import cosine, inner, l2_normalise, shifted_cosine

__all__ = ["cosine", "inner", "l2_normalise", "order", "shifted_cosine", "sparse_backward_cosine"]
