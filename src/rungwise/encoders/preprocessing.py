"""What a picture goes through before a network sees it; saved with every model that depends on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as vision
from torchvision.transforms.v2.functional import InterpolationMode

from rungwise.core.configuration import STRICT, check_size
from rungwise.core.errors import UserError

Interpolation = Literal["bicubic", "bilinear", "nearest"]
LARGEST_SIDE = 8192
_LONGEST = 16


@dataclass(frozen=True)
class Preprocessing:
    """Resize, centre crop (the papers' ``1C``), scale to 0..1, normalise per channel.

    Attributes:
        size: Side in pixels of the square that the network sees.
        mean: Per channel (RGB), of values in 0..1.
        std: Per channel (RGB).
        crop: Share of the resized side that the centre crop keeps; 0.875 resizes to 256 for a crop of 224.
        interpolation: Of the resize; antialiased.
        resize: ``"short_side"`` keeps the proportions (the VSE++ program), ``"square"`` does not (the papers'
            256 x 256).

    >>> Preprocessing(size=2, crop=1.0).apply(torch.zeros(3, 4, 8, dtype=torch.uint8)).shape
    torch.Size([3, 2, 2])
    """

    __pydantic_config__ = STRICT

    size: int = 224
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    crop: float = 0.875
    interpolation: Interpolation = "bicubic"
    resize: Literal["short_side", "square"] = "short_side"

    def __post_init__(self) -> None:
        check_size("size", self.size, LARGEST_SIDE)
        if not self.size / LARGEST_SIDE <= self.crop <= 1:
            raise UserError(f"crop must lie in {self.size / LARGEST_SIDE:g}..1 with size {self.size}, got {self.crop}")
        if not all(0 < one < math.inf for one in self.std):
            raise UserError(f"std must be positive, got {self.std}")
        if not all(map(math.isfinite, self.mean)):
            raise UserError(f"mean must be finite, got {self.mean}")

    @property
    def resized_side(self) -> int:
        """Pixels on the shorter side before the crop."""
        return max(self.size, int(self.size / self.crop))

    def apply(self, picture: Tensor) -> Tensor:
        """Resize and crop one picture.

        Args:
            picture: (3, H, W) uint8.

        Returns:
            (3, size, size) uint8: bytes are a quarter of floats until a batch is made.
        """
        side = self.resized_side
        target = [side, side] if self.resize == "square" else [side]
        mode = InterpolationMode(self.interpolation)
        if self.resize == "short_side":
            picture = _middle(picture)
        resized: Tensor = vision.resize(picture, target, interpolation=mode, antialias=True)
        cropped: Tensor = vision.center_crop(resized, [self.size, self.size])
        return cropped

    def normalise(self, pictures: Tensor) -> Tensor:
        """(n, 3, size, size) uint8 to float32, scaled and normalised, channels last."""
        mean = torch.tensor(self.mean, device=pictures.device).view(1, 3, 1, 1)
        std = torch.tensor(self.std, device=pictures.device).view(1, 3, 1, 1)
        scaled = (pictures.float() / 255 - mean) / std
        return scaled.contiguous(memory_format=torch.channels_last)

    @classmethod
    def of_timm(cls, declared: Mapping[str, Any], overrides: Mapping[str, Any]) -> Preprocessing:
        """What a timm model's weights were trained with, with the user's overrides.

        Args:
            declared: timm's ``pretrained_cfg`` as a mapping.
            overrides: Fields of this class; None means "as declared".

        >>> Preprocessing.of_timm({"input_size": (3, 160, 160), "crop_pct": 0.95}, {"crop": 1.0}).size
        160
        """
        known = {
            "size": declared["input_size"][-1] if declared.get("input_size") else None,
            "mean": declared.get("mean"),
            "std": declared.get("std"),
            "crop": declared.get("crop_pct"),
            "interpolation": declared.get("interpolation"),
        }
        if known["interpolation"] not in (None, *get_args(Interpolation)) and not overrides.get("interpolation"):
            raise UserError(
                f"the backbone's weights declare the interpolation {known['interpolation']!r}, which is not available;"
                f" set model.image.interpolation to one of {', '.join(get_args(Interpolation))}"
            )
        merged = known | {name: value for name, value in overrides.items() if value is not None}
        return cls(**{name: value for name, value in merged.items() if value is not None})


def _middle(picture: Tensor) -> Tensor:
    """The middle of a picture that is far longer than wide, which would become as much longer when it is resized."""
    height, width = picture.shape[-2:]
    most = _LONGEST * min(height, width)
    if max(height, width) <= most:
        return picture
    cut: Tensor = vision.center_crop(picture, [min(height, most), min(width, most)])
    return cut
