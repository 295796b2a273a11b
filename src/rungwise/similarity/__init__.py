"""Similarities of (n, D) image vectors and (m, D) text vectors, or of regions and words, as (n, m) blocks.

Functions take tensors that are not prepared. A :class:`Similarity` is the same as a value, which a model carries; it
compares arrays without torch. Modules that need torch are imported when first used.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
