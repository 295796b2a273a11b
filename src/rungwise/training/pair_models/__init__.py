"""Models of pairs of texts, trained on human scores: cross-encoders, and bi-encoders that learn from them.

The training loop is our own, over transformers' networks and our batches and steps. The trainers of
sentence-transformers build on ``accelerate`` and ``datasets``, which nothing else here needs, and their older loop,
which does not, is deprecated. What is saved has the layout of sentence-transformers, which loads it.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
