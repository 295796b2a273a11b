"""The jobs: what a command does and the function of its name in Python, with one list of options for both."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
