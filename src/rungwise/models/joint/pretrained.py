"""Published dual encoders as joint embeddings: two pretrained sides, no heads, cosine."""

from __future__ import annotations

import torch

from rungwise.core import UserError
from rungwise.encoders import NoHead
from rungwise.encoders.pretrained import ModelSource, PretrainedImageConfig, PretrainedTextConfig
from rungwise.models.joint._config import VSEConfig
from rungwise.models.joint._joint_embedding import JointEmbedding

__all__ = ["open_published"]


def open_published(source: ModelSource, device: str) -> JointEmbedding:
    """Open a published model; it can be given heads, trained, exported and saved like any other.

    Returns:
        The model in evaluation mode.

    Raises:
        UserError: If it cannot be loaded, is damaged or incomplete, or its halves do not fit each other.
    """
    image, text = PretrainedImageConfig(str(source)), PretrainedTextConfig(str(source))
    side, words = image.build(), text.build((), 0)
    if side.features != words.width:
        raise UserError(
            f"{source}: vectors of pictures have {side.features} numbers, those of texts {words.width}; the halves"
            " belong to different models"
        )
    config = VSEConfig(image=image, text=text, dimension=side.features, image_head=NoHead(), text_head=NoHead())
    return JointEmbedding(config, side, lambda: words).to(torch.device(device)).eval()
