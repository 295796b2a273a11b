"""``rungwise index``, and commands that plan, check and maintain an index."""
