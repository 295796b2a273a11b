"""SGR: similarity graph reasoning (Diao et al. 2021, section 3.3).

The nodes s_0..s_L of a pair (:mod:`rungwise.models.regions.alignment._similarity_vectors`) tell each other what they
know, three times over, each time with weights of their own::

    e_pq = softmax over q of  (W_q s_p + b_q) . (W_k s_q + b_k)      (Eq. 5)
    s_p := ReLU(W_r sum_q e_pq s_q + b_r)                            (Eq. 6)
    S    = sigmoid(w' s_0 + b)

What is the same for all q leaves the softmax as it is. So the logits are (W_k'W_q s_p + W_k'b_q) . s_q: one layer
instead of two, and b_k has no effect and no gradient. Of the last step s_0 alone is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from rungwise.core import STRICT
from rungwise.encoders import LinearHead
from rungwise.models.io import ModelConfig
from rungwise.models.regions._self_attention import affine, linear
from rungwise.models.regions.alignment._base import AlignedConfig, AlignedScorer
from rungwise.models.regions.alignment._similarity_vectors import NodeReader, Reader
from rungwise.similarity import widened

Asking = tuple[Tensor, Tensor]
"""W_k'W_q and W_k'b_q of a step."""


@dataclass(frozen=True)
class SGRConfig(AlignedConfig):
    """Similarity graph reasoning (Diao et al. 2021).

    Attributes:
        kind: Name of the family.
        steps: Number of steps of reasoning.
    """

    __pydantic_config__ = STRICT

    kind: Literal["sgr"] = "sgr"
    steps: Annotated[int, Field(ge=1, le=64)] = 3


class ReasoningStep(nn.Module):
    """A step in which every node of the given ``width`` reads all nodes of its pair."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = LinearHead().build(width, width)
        self.key = LinearHead().build(width, width)
        self.update = LinearHead().build(width, width)

    def asking(self) -> Asking:
        """Both layers of the logits merged into one."""
        keys = self.key.get_parameter("weight").T
        return keys @ self.query.get_parameter("weight"), keys @ self.query.get_parameter("bias")

    def forward(self, nodes: Tensor, asking: Asking, precision: torch.dtype, hears: slice) -> Tensor:
        """The nodes that ``hears`` selects after the step, from (pairs, k, width) nodes and :meth:`asking`.

        Products are computed in ``precision``.
        """
        nodes = nodes.to(precision)
        asked = affine(*asking, nodes[:, hears]).to(precision)
        # The softmax is over the middle axis, where it is several times as fast as over a short last one.
        edges = widened(nodes @ asked.transpose(1, 2)).softmax(dim=1)
        return linear(self.update, edges.transpose(1, 2).to(precision) @ nodes).relu()


class GraphReasoning(NodeReader):
    """Steps of reasoning over nodes of the given ``width``, and the score of the node of the whole pair."""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.steps = nn.ModuleList(ReasoningStep(width) for _ in range(steps))
        self.score = LinearHead().build(width, 1)

    def reader(self) -> Reader:
        """Function from nodes to similarities, with the merged layers of every step."""
        steps = [cast(ReasoningStep, step) for step in self.steps]
        return partial(self._read, [(step, step.asking()) for step in steps])

    def _read(self, steps: Sequence[tuple[ReasoningStep, Asking]], nodes: Tensor, precision: torch.dtype) -> Tensor:
        n, m = nodes.shape[:2]
        nodes = nodes.flatten(0, 1)
        for left, (step, asking) in zip(reversed(range(len(steps))), steps, strict=True):
            nodes = step(nodes, asking, precision, slice(None if left else 1))
        return linear(self.score, nodes[:, 0]).sigmoid().view(n, m)


class SGR(AlignedScorer):
    """Similarity graph reasoning (Diao et al. 2021)."""

    kind: ClassVar[str] = "sgr"
    config_type: ClassVar[type[ModelConfig]] = SGRConfig

    @staticmethod
    def node_reader(config: Any) -> GraphReasoning:
        """Steps of reasoning."""
        return GraphReasoning(config.vector_width, config.steps)
