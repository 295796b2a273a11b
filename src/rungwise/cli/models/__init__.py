"""``rungwise export``, ``import`` and ``push``: models from and for elsewhere."""
