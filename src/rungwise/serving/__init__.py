"""A search page and its interface over HTTP."""

from rungwise.serving.app import create_app
from rungwise.serving.limits import ServingLimits
from rungwise.serving.server import background, serve

__all__ = ["ServingLimits", "background", "create_app", "serve"]
