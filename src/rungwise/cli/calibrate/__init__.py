"""``rungwise calibrate``."""
