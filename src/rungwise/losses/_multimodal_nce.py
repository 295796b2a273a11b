"""Multi-modal NCE: the softmax's negatives come from both modalities, the positive from the other one.

For an image i with its caption p, S over images and captions, S_ii over images, S_tt over captions, temperature T::

    MVN(i) = -log exp(S(i, p) / T) / Z(i)
    Z(i) = sum over captions c of exp(S(i, c) / T) + sum over images k != i of exp(S_ii(i, k) / T)

and likewise for a caption with S_tt (the baseline MVN of ConVSE, after Alayrac et al. 2020).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from rungwise.losses._base import BlockLoss, Reduction
from rungwise.losses._batch import Reads
from rungwise.losses._pairs import BlockSide, ExtraPositives
from rungwise.losses._temperature import Temperature


class MultiModalNCE(BlockLoss):
    """Both sides of MVN, added.

    Within a modality, an item is no negative of itself; nor, unless positives are kept as negatives, of an item that
    shares a positive with it (another caption of the same picture, or the same picture again). ``mask_above`` masks
    across modalities only.

    Args:
        temperature: Temperature T of the softmax.
        learnable: Learn the temperature.

    >>> s, within = torch.tensor([[0.9, 0.8], [0.1, 0.5]]), torch.tensor([[1.0, 0.3], [0.3, 1.0]])
    >>> MultiModalNCE()(s, image_similarity=within, text_similarity=within)
    tensor(3.5158)
    """

    needs_negatives: ClassVar[bool] = True

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
        self.learnable = learnable

    @property
    def reads(self) -> Reads:
        """Similarities within each modality, besides the common reads."""
        return super().reads | Reads(within=True)

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) MVN over each query's pairs; the side needs its ``within`` and ``same``."""
        if side.within is None or side.same is None:
            raise ValueError("MultiModalNCE needs the similarities within each modality")
        temperature = self.temperature()
        # Masked after the division: -inf over a learned temperature has no gradient.
        across = (side.rows(side.similarity) / temperature).masked_fill(side.left_out, -torch.inf)
        inside = side.rows((side.within.to(side.similarity.dtype) / temperature).masked_fill(side.same, -torch.inf))
        logits = torch.cat([across, inside], dim=1)
        pair = side.of_pairs(side.similarity) / temperature
        return side.sum_per_query(logits.logsumexp(dim=1) - pair)
