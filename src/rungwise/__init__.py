"""rungwise: image-text retrieval by degrees of relevance."""

__version__ = "0.1.0"
