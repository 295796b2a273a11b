"""``rungwise export``, ``import`` and ``push``: models for and from other programs."""
