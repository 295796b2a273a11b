"""A search page and its interface over HTTP.

Names are loaded when they are first used, so that a client, and a command that only names the limits, start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.serving.limits import ServingLimits

if TYPE_CHECKING:
    from rungwise.serving.app import create_app
    from rungwise.serving.server import background, serve

_LATER = {"background": "server", "create_app": "app", "serve": "server"}
"""Module of every name that is loaded late."""

__all__ = ["ServingLimits", "background", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
