"""``rungwise inspect``, ``doctor`` and ``verify``: checks of data, runs and files."""
