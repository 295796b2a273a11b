"""Small models and data that the tests of models of regions share."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig

CAPTIONS = (
    "a red dog",
    "a blue cat runs",
    "dog",
    "two dogs and a red cat",
    "a green bird",
    "blue",
    "a dog",
    "cats run",
)
COLOURS = ("red", "green", "blue", "white")


def sides_of_pictures() -> dict[str, Any]:
    """A backbone whose last map has several places, and words in both directions."""
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=64, pool="regions", l2_normalise=False)
    return {"image": image, "text": GRUConfig(word_dimension=5, min_count=1, directions="both")}


def sides_of_features() -> dict[str, Any]:
    """Rows of regions, and words in both directions."""
    return {
        "image": FeatureConfig(l2_normalise=False),
        "text": GRUConfig(word_dimension=6, min_count=1, directions="both"),
    }


def coloured_regions(images: int = 48, regions: int = 5, width: int = 7) -> ImageCaptions:
    """Images of regions that hold a direction for a colour each, with one to three captions that name it."""
    draw = np.random.default_rng(1)
    meanings = draw.normal(size=(4, width))
    rows = meanings[np.arange(images) % 4][:, None] + 0.3 * draw.normal(size=(images, regions, width))
    phrases = ("a {} picture", "something that is all {}", "{}")
    captions, owners = [], []
    for image in range(images):
        for phrase in phrases[: 1 + image % 3]:
            captions.append(phrase.format(COLOURS[image % 4]))
            owners.append(image)
    ids = tuple(f"{image}.jpg" for image in range(images))
    splits = tuple("test" if i >= 40 else "val" if i >= 32 else "train" for i in range(images))
    return ImageCaptions(
        ids,
        tuple(captions),
        np.array(owners, np.int64),
        tuple(f"{ids[owner]}#{at}" for at, owner in enumerate(owners)),
        splits=splits,
        features=FeatureRows(rows.astype(np.float32)),
        name="coloured regions",
    )


def pictures_in(folder: Path, count: int = 4) -> list[Path]:
    """Files of noise."""
    folder.mkdir(exist_ok=True)
    draw = np.random.default_rng(0)
    paths = [folder / f"{number}.png" for number in range(count)]
    for path in paths:
        Image.fromarray(draw.integers(0, 256, (70, 90, 3), dtype=np.uint8)).save(path)
    return paths


def varied(model: torch.nn.Module) -> None:
    """Weights of zeros and ones drawn anew, so that none of them leaves its layer without effect."""
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.std() == 0 or parameter.numel() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw, dtype=parameter.dtype))
