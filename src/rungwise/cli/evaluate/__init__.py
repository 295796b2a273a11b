"""``rungwise evaluate``."""
