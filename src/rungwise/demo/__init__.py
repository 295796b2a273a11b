"""Demo of rungwise on generated scenes: two models that learnt from the same pictures, side by side.

One learns by triplets: a caption is right for its own picture and wrong for all others. The other learns by degrees:
how much of a caption is true of a picture. Every answer can be checked, because what the pictures show is known
exactly.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
