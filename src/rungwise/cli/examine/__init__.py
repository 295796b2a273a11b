"""``rungwise inspect``, ``doctor`` and ``verify``: what is there, and what is wrong with it."""
