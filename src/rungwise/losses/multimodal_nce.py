"""Multi-modal NCE: the softmax's negatives come from both modalities, the positive from the other one.

For an image i with its caption p, S over images and captions, S_ii over images, S_tt over captions, temperature T::

    MVN(i) = -log exp(S(i, p) / T) / Z(i)
    Z(i) = sum over captions c of exp(S(i, c) / T) + sum over images k != i of exp(S_ii(i, k) / T)

and likewise for a caption with S_tt (the baseline MVN of ConVSE, after Alayrac et al. 2020).
"""

from __future__ import annotations

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
        images, captions = self._same_items(i2t, positives)
        i2t_loss = self._one_side(i2t, _square("image", image_similarity, images), images)
        t2i_loss = self._one_side(t2i, _square("text", text_similarity, captions), captions)
        return self.reduce(i2t_loss, t2i_loss, len(i2t.query))

    def _one_side(self, side: Side, within: Tensor, same: Tensor) -> Tensor:
        """(Q,): MVN over each query's pairs; ``within`` and ``same`` are (Q, Q), of the queries' own modality."""
        across = side.rows(side.similarity).masked_fill(side.left_out, -torch.inf)
        inside = side.rows(within.to(across.dtype).masked_fill(same, -torch.inf))
        temperature = self.temperature()
        logits = torch.cat([across, inside], dim=1) / temperature
        pair = side.of_pairs(side.similarity) / temperature
        return side.sum_per_query(logits.logsumexp(dim=1) - pair)

    def _same_items(self, i2t: Side, positives: Tensor | None) -> tuple[Tensor, Tensor]:
        """(images, images) and (captions, captions) bool: no negatives of each other."""
        images, captions = i2t.similarity.shape
        itself = [torch.eye(n, dtype=torch.bool, device=i2t.similarity.device) for n in (images, captions)]
        if positives is None or (images == captions and self.extra_positives == "keep"):
            return itself[0], itself[1]
        described = positives.bool()
        if images == captions:
            # Caption q is the paired one of image q: where it describes image p too, p and q are one picture.
            both = itself[0] | described | described.T
            return both, both
        linked = described.float()
        return itself[0] | (linked @ linked.T > 0), itself[1] | (linked.T @ linked > 0)
