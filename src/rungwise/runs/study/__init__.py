"""Studies: many runs from one file, each trained once, with settings searched on the validation split alone."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
