"""A search page, its interface over HTTP, and a client for it.

Names that need the server's libraries are loaded on first use, so that a client does without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.serving.client import Client
from rungwise.serving.limits import ServingLimits

if TYPE_CHECKING:
    from rungwise.serving.access.request_log import RequestLog
    from rungwise.serving.app import create_app
    from rungwise.serving.server import background, background_app, serve, serve_app
    from rungwise.serving.state.reranker import Reranker

_LATER = {
    "Reranker": "state.reranker",
    "RequestLog": "access.request_log",
    "background": "server",
    "background_app": "server",
    "create_app": "app",
    "serve": "server",
    "serve_app": "server",
}
"""Modules of the names that are loaded late."""

__all__ = [
    "Client",
    "RequestLog",
    "Reranker",
    "ServingLimits",
    "background",
    "background_app",
    "create_app",
    "serve",
    "serve_app",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
