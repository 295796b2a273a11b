"""``rungwise train`` and ``rungwise presets``."""
