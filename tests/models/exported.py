"""Small models that tests export, and pictures and texts to encode with them."""

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig

CAPTIONS = ["a red square", "a blue square on grey", "two dogs run", "the dog sees a cat"]
TEXTS = ["red", "a dog", "the cat sees two blue dogs on a red square", "unknown words only", "", "a " * 30]


def seeing(seed: int = 0, **config: object) -> JointEmbedding:
    """A model of pictures of 32 pixels."""
    torch.manual_seed(seed)
    settings = {"text": GRUConfig(word_dimension=5, min_count=1), "dimension": 8} | config
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    return JointEmbedding.create(VSEConfig(image=image, **settings), CAPTIONS).eval()


def of_features(seed: int = 0, **config: object) -> JointEmbedding:
    """A model of rows of five numbers."""
    torch.manual_seed(seed)
    settings = {"text": GRUConfig(word_dimension=5, min_count=1), "dimension": 8} | config
    return JointEmbedding.create(VSEConfig(image=FeatureConfig(width=5), **settings), CAPTIONS).eval()


def pictures(folder: Path, count: int = 5) -> list[Path]:
    """Plain squares on noise, as files without loss."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    paths = []
    for number in range(count):
        pixels = draw.integers(0, 256, (40 + number, 50, 3), dtype=np.uint8)
        pixels[8:30, 8:30] = draw.integers(0, 256, 3)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        paths.append(folder / f"{number}.png")
        paths[-1].write_bytes(file.getvalue())
    return paths
