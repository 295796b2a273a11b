"""``rungwise serve``, ``serve-model``, ``mcp`` and ``token``: what answers other programs and browsers."""
