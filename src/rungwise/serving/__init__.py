"""A search page, its interface over HTTP, and a client for it.

Names that need the server's libraries are loaded on first use, so that a client does without them.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
