"""``rungwise relevance``, with a subcommand for each source and task."""
