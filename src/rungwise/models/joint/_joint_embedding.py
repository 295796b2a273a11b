"""Joint image-text embeddings: two encoders, a trained head on each, and a similarity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Self

from rungwise.data.files import FeatureRows
from rungwise.encoders import ImageSide, TextSide
from rungwise.models._dual_encoder import TwoTower
from rungwise.models._encoder_pair import config_for_data, freeze_encoders
from rungwise.models.io import ModelConfig, ModelFolder
from rungwise.models.joint._config import VSEConfig


class JointEmbedding(TwoTower):
    """f(image) and g(caption) in one space (VSE++, Faghri et al. 2018, Eq. 1-2), by any two encoders.

    >>> from rungwise.encoders.images import ImageConfig
    >>> image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    >>> model = JointEmbedding.create(VSEConfig(image=image, dimension=8), ["a dog", "a cat"])
    >>> model.encode_text(["a cat", "two dogs"]).shape
    (2, 8)
    """

    kind: ClassVar[str] = "vse"
    config_type: ClassVar[type[ModelConfig]] = VSEConfig

    def __init__(self, config: VSEConfig, image: ImageSide, text: Callable[[], TextSide]) -> None:
        """Put the parts together.

        ``text`` makes the encoder of texts. It is called after the image head is made, because the weights that a seed
        draws depend on the order in which the parts are made.
        """
        super().__init__(config)
        self.backbone = image
        self.image_projection = config.image_head.build(image.features, config.dimension)
        self.text_encoder = text()
        self.text_projection = config.text_head.build(self.text_encoder.width, config.dimension)
        freeze_encoders(self)

    @classmethod
    def create(
        cls, config: VSEConfig, captions: Sequence[str] | FeatureRows, features: FeatureRows | None = None
    ) -> Self:
        """Make a model whose vocabulary comes from ``captions`` (those of the training split).

        Rows of features replace the backbone where the collection has them.

        Raises:
            UserError: If the backbone or its weights cannot be loaded, or the data have no features where the
                configuration wants them.
        """
        config = config_for_data(config, captions, features)
        return cls(config, config.image.build(), lambda: config.text.build(captions, config.dimension))

    @classmethod
    def restore(cls, config: VSEConfig, folder: ModelFolder) -> Self:
        """Read a saved model from its folder."""
        return cls(config, config.image.restore(folder), lambda: config.text.restore(folder, config.dimension))
