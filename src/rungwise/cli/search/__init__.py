"""``rungwise search``."""
