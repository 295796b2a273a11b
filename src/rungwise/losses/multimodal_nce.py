"""Multi-modal NCE: the softmax's negatives come from both modalities, the positive from the other one.

For an image i with its caption p, S over images and captions, S_ii over images, S_tt over captions, temperature T::

    MVN(i) = -log exp(S(i, p) / T) / Z(i)
    Z(i) = sum over captions c of exp(S(i, c) / T) + sum over images k != i of exp(S_ii(i, k) / T)

and likewise for a caption with S_tt (the baseline MVN of ConVSE, after Alayrac et al. 2020).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rungwise.losses.base import BlockLoss, LossValue, Reduction
from rungwise.losses.pairs import ExtraPositives, Side, two_sides
from rungwise.losses.temperature import Temperature


def _square(modality: str, within: Tensor | None, same: Tensor) -> Tensor:
    """The similarities within a modality, refused where they are missing or of another shape than ``same``."""
    if within is None or within.shape != same.shape:
        got = "nothing" if within is None else tuple(within.shape)
        raise ValueError(f"{modality}_similarity must be {tuple(same.shape)}, got {got}")
    return within


def itself(own: Tensor, items: int) -> Tensor:
    """(Q, items) bool: True where an item is the query itself; ``own`` (Q,) are the queries' places among the items.

    >>> itself(torch.tensor([1]), 3)
    tensor([[False,  True, False]])
    """
    return own.unsqueeze(1) == torch.arange(items, device=own.device)


def sharing(described: Tensor, every: Tensor) -> Tensor:
    """(Q, K) bool: a query, by its row of (Q, C) positives, shares one with an item, by its row of (K, C) positives.

    >>> sharing(torch.tensor([[True, False]]), torch.tensor([[True, True], [False, True]]))
    tensor([[ True, False]])
    """
    rows = described.float()
    if rows.is_cpu:
        # Few entries a row are True. On a GPU the dense product is quick, and listing them would wait for the host.
        rows = rows.to_sparse()
    return rows @ every.float().T > 0


class MultiModalNCE(BlockLoss):
    """Both sides of MVN, added.

    Within a modality an item is no negative of itself; nor, unless positives are kept as negatives, of an item that
    shares a positive with it (another caption of the same picture, or the same picture again).

    Args:
        temperature: T.
        learnable: learn the temperature.
        reduction: as in :class:`~rungwise.losses.base.BlockLoss`, like the next two.
        extra_positives: see there.
        mask_above: see there; it masks across modalities only.

    >>> s, within = torch.tensor([[0.9, 0.8], [0.1, 0.5]]), torch.tensor([[1.0, 0.3], [0.3, 1.0]])
    >>> MultiModalNCE()(s, image_similarity=within, text_similarity=within)
    tensor(3.5158)
    """

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        learnable: bool = False,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        self.temperature = Temperature(temperature, learnable)

    def forward(
        self,
        similarity: Tensor,
        relevance: Tensor | None = None,
        positives: Tensor | None = None,
        *,
        image_similarity: Tensor | None = None,
        text_similarity: Tensor | None = None,
    ) -> LossValue:
        """The loss of a block.

        Args:
            similarity: (images, captions), any float type.
            relevance: (images, captions) degrees, for ``mask_above`` alone.
            positives: (images, captions) bool; needed where the block is not square.
            image_similarity: (images, images); needed.
            text_similarity: (captions, captions); needed.

        Returns:
            As in :meth:`BlockLoss.forward <rungwise.losses.base.BlockLoss.forward>`.

        Raises:
            ValueError: shapes differ or something that is needed was not passed.
        """
        i2t, t2i = two_sides(similarity, relevance, positives, self.extra_positives, self.mask_above)
        images, captions = (torch.arange(n, device=similarity.device) for n in similarity.shape)
        same_images, same_captions = itself(images, len(images)), itself(captions, len(captions))
        square = len(images) == len(captions)
        if positives is not None and not (square and self.extra_positives == "keep"):
            described = positives.bool() | same_images if square else positives.bool()
            same_images = same_images | sharing(described, described)
            same_captions = same_captions | sharing(described.T, described.T)
        i2t = replace(i2t, within=_square("image", image_similarity, same_images), same=same_images)
        t2i = replace(t2i, within=_square("text", text_similarity, same_captions), same=same_captions)
        return self.reduce(self.per_query(i2t), self.per_query(t2i), len(i2t.query))

    def per_query(self, side: Side) -> Tensor:
        """(Q,): MVN over each query's pairs; the side needs its ``within`` and ``same``."""
        if side.within is None or side.same is None:
            raise ValueError("MultiModalNCE needs the similarities within each modality")
        across = side.rows(side.similarity).masked_fill(side.left_out, -torch.inf)
        inside = side.rows(side.within.to(across.dtype).masked_fill(side.same, -torch.inf))
        temperature = self.temperature()
        logits = torch.cat([across, inside], dim=1) / temperature
        pair = side.of_pairs(side.similarity) / temperature
        return side.sum_per_query(logits.logsumexp(dim=1) - pair)
