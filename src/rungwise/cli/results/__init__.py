"""``rungwise compare`` and ``table``: results beside each other and beside printed rows."""
