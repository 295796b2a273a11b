"""Parts of a person's own by name: modules that are named, and entry points of installed packages.

A module is imported because a person named it, never because a file did. An entry point is loaded when its name is
asked for and is not one of ours.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
