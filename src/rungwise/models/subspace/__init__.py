"""Subspace methods: dual encoders that are fitted to features with class labels, in closed form or by few rounds.

They are the baselines of papers on retrieval by labels, such as CMAL2R (Qu et al.). Each saves, loads, evaluates, is
indexed and searched like every other model.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
