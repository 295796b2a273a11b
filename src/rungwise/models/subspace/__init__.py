"""Subspace methods: dual encoders that are fitted to features with class labels, in closed form or by few rounds.

They are the baselines of papers on retrieval by labels, such as CMAL2R (Qu et al.). Each saves, loads, evaluates, is
indexed and searched like every other model.
"""

from __future__ import annotations

from rungwise.models.subspace.base import Subspace
from rungwise.models.subspace.methods.cca import CCA
from rungwise.models.subspace.methods.gmlda import GMLDA
from rungwise.models.subspace.methods.gmmfa import GMMFA
from rungwise.models.subspace.methods.lcfs import LCFS
from rungwise.models.subspace.methods.lgcfl import LGCFL
from rungwise.models.subspace.methods.mlcca import MLCCA
from rungwise.models.subspace.methods.mvda import MvDA
from rungwise.models.subspace.methods.scm import SCM
from rungwise.models.subspace.settings import SubspaceConfig

__all__ = ["CCA", "GMLDA", "GMMFA", "LCFS", "LGCFL", "MLCCA", "SCM", "MvDA", "Subspace", "SubspaceConfig"]
