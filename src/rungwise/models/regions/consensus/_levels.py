"""The consensus level of CVSE: a picture or text as a weighted sum of concepts (Wang et al. 2020, section 3.3).

Concepts stand for words that captions share. A graph convolution over the start vectors E (concepts x width) gives the
vectors of concepts, where every row is divided by its length::

    C = rows of length 1 of  G leaky_relu(G E W_1) W_2           G: rungwise.models.regions.consensus._concepts, slope
    0.2

The scores of concept c for an instance vector v, with N batch norm over what stands in the same call, and l = 10::

    a_c = w' (tanh(N_c(W_c C_c + b_c)) * tanh(N_v(W_v v + b_v))) + b
    p   = softmax over c of  l a_c

Pictures are scored by p. Texts have labels, y_c in {0, 1}, and mix them in with r = 0.35::

    q = r softmax over c of (l y_c)  +  (1 - r) p

y_c says that a word of the text is concept c. In training it may say that a word of any caption of the same picture is.

The consensus vector is  sum_c p_c C_c  (of texts, q_c), divided by its length. Scores of a pair are held together by

    KL(q || p) = sum_c q_c (log q_c - log p_c)

The equations are those of the authors' program, which labels texts by their pictures in training and by their own words
in evaluation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.models.regions._batch_norm import BatchNorm

_SLOPE = 0.2


class ConceptGraph(nn.Module):
    """Vectors of concepts by two graph convolutions, without biases.

    Args:
        concepts: Number of concepts.
        width: Width of the start vectors.
        dimension: Width of the resulting vectors.
        trained: Whether the start vectors are trained.

    Attributes:
        nodes: The start vectors.
        adjacency: (concepts, concepts) G; without a gradient.
    """

    adjacency: Tensor

    def __init__(self, concepts: int, width: int, dimension: int, trained: bool = True) -> None:
        super().__init__()
        hidden = max(1, dimension // 2)
        self.nodes = nn.Embedding(concepts, width)
        self.nodes.weight.requires_grad_(trained)
        self.first = nn.Parameter(torch.empty(width, hidden))
        self.second = nn.Parameter(torch.empty(hidden, dimension))
        self.register_buffer("adjacency", torch.eye(concepts))
        nn.init.uniform_(self.nodes.weight, -0.1, 0.1)
        for weight in (self.first, self.second):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)

    def forward(self) -> Tensor:
        """(concepts, dimension) vectors of length 1."""
        hidden = F.leaky_relu(self.adjacency @ (self.nodes.weight @ self.first), _SLOPE)
        return F.normalize(self.adjacency @ (hidden @ self.second), dim=1)


class ConceptAttention(nn.Module):
    """Scores of concepts for instance vectors.

    Args:
        dimension: Width of both kinds of vectors.
        smoothing: l, the scale of the softmax.
    """

    def __init__(self, dimension: int, smoothing: float) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.concept, self.concept_norm = nn.Linear(dimension, dimension), nn.BatchNorm1d(dimension)
        self.instance, self.instance_norm = nn.Linear(dimension, dimension), BatchNorm(dimension)
        self.common = nn.Linear(dimension, 1)

    def forward(self, instances: Tensor, concepts: Tensor) -> Tensor:
        """(n, concepts) log p.

        Args:
            instances: (n, dimension); a single one is normalised by the running statistics.
            concepts: (concepts, dimension); in training at least two.
        """
        local = self.concept_norm(self.concept(concepts)).tanh()
        whole = self.instance_norm(self.instance(instances)).tanh()
        # w' (local * whole) for all pairs is a product of matrices, without a (n, concepts, dimension) between.
        scores = (whole * self.common.weight) @ local.T + self.common.bias
        return torch.log_softmax(self.smoothing * scores, dim=1)


def with_labels(scores: Tensor, labels: Tensor, share: float, smoothing: float) -> Tensor:
    """q: scores of texts, mixed with their labels.

    Args:
        scores: (n, concepts) log p.
        labels: (n, concepts) of 0 and 1.
        share: r, the weight of the labels.
        smoothing: l, the scale of the softmax.

    Returns:
        (n, concepts), each row of sum 1. A text without labels counts all concepts alike.
    """
    return share * (smoothing * labels).softmax(dim=1) + (1 - share) * scores.exp()


def consensus_vectors(weights: Tensor, concepts: Tensor) -> Tensor:
    """(n, D) vectors of length 1 from (n, concepts) scores and (concepts, D) vectors of length 1."""
    return F.normalize(weights @ concepts, dim=1)


def concept_divergence(images: Tensor, texts: Tensor) -> Tensor:
    """KL(q || p), summed over pairs and concepts, with gradients for both sides.

    Args:
        images: (n, concepts) log p of the pairs' pictures.
        texts: (n, concepts) q of their texts.

    >>> half = torch.tensor([[0.5, 0.5]])
    >>> concept_divergence(half.log(), half), concept_divergence(half.log(), torch.tensor([[1.0, 0.0]]))
    (tensor(0.), tensor(0.6931))
    """
    return (torch.xlogy(texts, texts) - texts * images).sum()
