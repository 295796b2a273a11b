"""mteb: our models and our search as mteb's models, degrees of relevance as its tasks, and its models as ours."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
