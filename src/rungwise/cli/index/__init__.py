"""``rungwise index``, and what plans, checks and looks after an index."""
