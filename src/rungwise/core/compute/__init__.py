"""Threads, workers, memory and compiled kernels: all cores of the machine, and results that are the same to the bit."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
