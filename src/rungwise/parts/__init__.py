"""Parts of a person's own by name: named modules, entry points of installed packages, and what folders record.

A loss, measure, relevance source, encoder, reader or store is found by its name among the classes that are imported. A
module is imported because a person named it, never because a file did. An entry point is loaded when its name is asked
for and is not one of ours.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
