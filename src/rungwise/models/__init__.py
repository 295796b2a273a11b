"""Models: contracts, folders and families.

Names that bring torch along are loaded when first used: searching with an exported model does not import it.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
