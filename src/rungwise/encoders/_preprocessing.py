"""Preprocessing of a picture before a network sees it; saved with every model that depends on it.

:meth:`Preprocessing.apply_array` and :meth:`Preprocessing.normalise_array` need only numpy and Pillow, for programs
that run a network without torch. Their tensor forms import torch when called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from rungwise.core import STRICT, Bounded, Positive, UserError, identity

if TYPE_CHECKING:
    from torch import Tensor

Interpolation = Literal["bicubic", "bilinear", "nearest", "lanczos"]
Resize = Literal["short_side", "square", "long_side"]
Crops = Literal["1C", "10C", "RC"]
LARGEST_SIDE = 8192
_LONGEST = 16
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Byte = Annotated[int, Field(ge=0, le=255)]


@dataclass(frozen=True)
class Preprocessing(Bounded):
    """Resize, crop, scale to 0..1, normalise per channel.

    Attributes:
        size: Side in pixels of the square that the network sees.
        mean: Mean per channel (RGB), of values in 0..1.
        std: Standard deviation per channel (RGB).
        crop: Share of the resized side that the centre crop keeps; 0.875 resizes to 256 for a crop of 224.
        interpolation: Interpolation of the resize; antialiased. ``"lanczos"`` needs the resampling of Pillow.
        resize: ``"short_side"`` keeps the proportions (the VSE++ program), ``"square"`` does not (the papers'
            256 x 256), ``"long_side"`` keeps them and the whole picture, and fills the rest of the square.
        crops: Which part of the resized picture is seen: ``"1C"`` the centre; ``"10C"`` the four corners and the
            centre, and these mirrored; ``"RC"`` the centre, but in training a random place on each visit (Faghri et al.
            2018, section 4.1).
        mirrored: Whether pictures are mirrored at random on each visit in training.
        resampling: Library whose resize is followed: ``"torch"`` for torchvision's of byte tensors, or ``"pillow"``.
        crop_corner: How half a pixel of the centre crop's corner is rounded: ``"round"`` to even as torchvision does,
            ``"floor"`` as the processors of transformers do.
        decoding: ``"scaled"`` lets the decoder make a JPEG smaller where it is at least twice too large; ``"full"``
            decodes every pixel, as most libraries do.
        fill: Colour (RGB) around a picture that does not fill the square.
    """

    __pydantic_config__ = STRICT

    size: Annotated[int, Field(ge=1, le=LARGEST_SIDE)] = 224
    mean: tuple[_Finite, _Finite, _Finite] = (0.485, 0.456, 0.406)
    std: tuple[Positive, Positive, Positive] = (0.229, 0.224, 0.225)
    crop: float = 0.875
    interpolation: Interpolation = "bicubic"
    resize: Resize = "short_side"
    crops: Crops = "1C"
    mirrored: bool = False
    resampling: Literal["torch", "pillow"] = "torch"
    crop_corner: Literal["round", "floor"] = "round"
    decoding: Literal["scaled", "full"] = "scaled"
    fill: tuple[_Byte, _Byte, _Byte] = (0, 0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.size / LARGEST_SIDE <= self.crop <= 1:
            raise UserError(f"crop must lie in {self.size / LARGEST_SIDE:g}..1 with size {self.size}, got {self.crop}")
        if self.interpolation == "lanczos" and self.resampling == "torch":
            raise UserError("interpolation lanczos goes with resampling: pillow; choose bicubic, or set that")
        if self.resize == "long_side" and self.crops != "1C":
            raise UserError(f"resize: long_side shows the whole picture, and crops: {self.crops} parts; choose one")
        if self.mirrored and self.resize == "long_side":
            raise UserError("mirrored goes with resize: short_side or square; choose one, or leave it out")
        if self.mirrored and self.crops == "10C":
            raise UserError("crops: 10C holds the mirrored pictures already; leave mirrored out")

    @property
    def resized_side(self) -> int:
        """Pixels on the shorter side (the longer one for ``"long_side"``) before the crop."""
        return max(self.size, int(self.size / self.crop))

    @property
    def decoded_side(self) -> int | None:
        """The ``shorter_side`` that :meth:`apply` needs decoded; None for every pixel."""
        return self.resized_side if self.decoding == "scaled" else None

    @property
    def prepared_shape(self) -> tuple[int, ...]:
        """Shape of the result of :meth:`apply`: (3, size, size), or (10, 3, size, size) for ten crops."""
        one = (3, self.size, self.size)
        return (10, *one) if self.crops == "10C" else one

    @property
    def draws(self) -> bool:
        """Whether training sees another crop, or the mirror image, on each visit."""
        return self.crops == "RC" or self.mirrored

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that decide the result of :meth:`apply`, for cache keys."""
        still = replace(self, crops="10C" if self.crops == "10C" else "1C", mirrored=False)
        return identity(still)

    def apply(self, picture: Tensor) -> Tensor:
        """Resize and crop one (3, H, W) uint8 picture, as evaluation and search see it.

        Returns:
            :attr:`prepared_shape` uint8: bytes are a quarter of floats until a batch is made.
        """
        import torch

        resized = self.resized(picture)
        if self.crops != "10C":
            window: Tensor = self._window(resized)
            return window
        height, width = resized.shape[-2:]
        views = torch.stack(
            [resized[:, top:, left:][:, : self.size, : self.size] for top, left in self._five(height, width)]
        )
        return torch.cat([views, views.flip(-1)])

    def resized(self, picture: Tensor) -> Tensor:
        """Resize one (3, H, W) uint8 picture to (3, h, w) without cropping.

        Only the middle is kept of a picture more than 16 times as long as wide.
        """
        import torch
        from torchvision.transforms.v2 import functional as vision

        top, left, height, width = self._seen(*picture.shape[-2:])
        picture = picture[:, top : top + height, left : left + width]
        target = self._resized_to(height, width)
        if self.resampling == "pillow":
            return torch.from_numpy(self._by_pillow(picture.numpy(), target))
        mode = vision.InterpolationMode(self.interpolation)
        made: Tensor = vision.resize(picture, list(target), interpolation=mode, antialias=True)
        return made

    def apply_array(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """:meth:`apply` by Pillow and numpy alone.

        It takes (3, H, W) uint8 pictures of :func:`~rungwise.data.pictures.load_array`. Where torchvision
        would resize, pixels differ by at most 2 levels of 255.
        """
        top, left, height, width = self._seen(*picture.shape[-2:])
        resized = self._by_pillow(picture[:, top : top + height, left : left + width], self._resized_to(height, width))
        if self.crops == "10C":
            corners = self._five(*resized.shape[-2:])
            views = np.stack([resized[:, top:, left:][:, : self.size, : self.size] for top, left in corners])
            return np.concatenate([views, views[..., ::-1]])
        window: NDArray[np.uint8] = self._window(resized)
        return np.ascontiguousarray(window)

    def normalise(self, pictures: Tensor) -> Tensor:
        """(n, 3, size, size) float32, scaled and normalised, channels last, from uint8."""
        import torch

        mean, std = (torch.tensor(one, device=pictures.device).view(3, 1, 1) for one in (self.mean, self.std))
        traced = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined,no-untyped-call]
        if traced or not pictures.is_cpu:
            whole: Tensor = (pictures.float() / 255 - mean) / std
            return whole.contiguous(memory_format=torch.channels_last)
        made = torch.empty(pictures.shape, memory_format=torch.channels_last)
        for place, picture in zip(made, pictures, strict=True):  # the cache holds one through all steps
            place.copy_(picture.to(torch.float32, copy=True).div_(255).sub_(mean).div_(std))
        return made

    def normalise_array(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, 3, size, size) float32, scaled and normalised, from uint8."""
        mean, std = (np.array(one, np.float32).reshape(1, 3, 1, 1) for one in (self.mean, self.std))
        return (pictures.astype(np.float32) / np.float32(255) - mean) / std

    def _seen(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Top, left, height and width of the part that is resized: the middle of a far too long picture.

        Resized to a short side, such a picture would otherwise become as much longer than the square.
        """
        most = _LONGEST * min(height, width)
        if self.resize != "short_side" or max(height, width) <= most:
            return 0, 0, height, width
        seen = min(height, most), min(width, most)
        return round((height - seen[0]) / 2), round((width - seen[1]) / 2), *seen

    def _resized_to(self, height: int, width: int) -> tuple[int, int]:
        side = self.resized_side
        if self.resize == "square":
            return side, side
        if self.resize == "long_side":
            longer = max(height, width)
            return max(1, round(height * side / longer)), max(1, round(width * side / longer))
        return (side, int(side * width / height)) if height <= width else (int(side * height / width), side)

    def _by_pillow(self, picture: NDArray[np.uint8], target: tuple[int, int]) -> NDArray[np.uint8]:
        if self.interpolation == "nearest" and self.resampling == "torch":
            return picture[:, _nearest(picture.shape[1], target[0])][:, :, _nearest(picture.shape[2], target[1])]
        # Channel by channel, so that no second copy of a large picture is made on the way.
        bands = [Image.fromarray(np.ascontiguousarray(band)) for band in picture]
        size = (target[1], target[0])
        small = Image.merge("RGB", bands).resize(size, Image.Resampling[self.interpolation.upper()])
        return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))

    def _window(self, resized: Any) -> Any:
        """The middle square of a tensor or an array, padded with colour where that is smaller."""
        height, width = resized.shape[-2:]
        top, left = self.middle(height), self.middle(width)
        seen = resized[:, max(0, top) :, max(0, left) :][:, : self.size, : self.size]
        if seen.shape[-2:] == (self.size, self.size):
            return seen
        height, width = seen.shape[-2:]
        top, left = (self.size - height) // 2, (self.size - width) // 2
        window = np.empty((3, self.size, self.size), np.uint8)
        window[:] = np.array(self.fill, np.uint8).reshape(3, 1, 1)
        window[:, top : top + height, left : left + width] = seen
        return window if isinstance(resized, np.ndarray) else resized.new_tensor(window)

    def middle(self, side: int) -> int:
        """First pixel of the centre crop on a side of this length."""
        left = (side - self.size) / 2
        return round(left) if self.crop_corner == "round" else math.floor(left)

    def window(self, height: int, width: int) -> tuple[float, float, float, float]:
        """The part of a picture that :meth:`apply` shows; of ten crops, the centre.

        For a picture that is decoded at a smaller size, it may be off by a pixel of that size.

        Args:
            height: Height of the picture in pixels.
            width: Width of the picture in pixels.

        Returns:
            Left, top, right and bottom as shares of width and height; below 0 or above 1 where the square shows colour
            around the picture.

        >>> Preprocessing(size=100, crop=1.0).window(100, 200)
        (0.25, 0.0, 0.75, 1.0)
        """
        top, left, seen_height, seen_width = self._seen(height, width)
        down, across = self._resized_to(seen_height, seen_width)
        y = [(top + (self._corner(down) + edge) * seen_height / down) / height for edge in (0, self.size)]
        x = [(left + (self._corner(across) + edge) * seen_width / across) / width for edge in (0, self.size)]
        return x[0], y[0], x[1], y[1]

    def _corner(self, side: int) -> int:
        """First pixel of the square on a resized side; below 0 where that is shorter than the square."""
        return self.middle(side) if side >= self.size else -((self.size - side) // 2)

    def _five(self, height: int, width: int) -> list[tuple[int, int]]:
        """Top and left of the four corners and of the centre."""
        lower, right = height - self.size, width - self.size
        return [(0, 0), (0, right), (lower, 0), (lower, right), (self.middle(height), self.middle(width))]

    @classmethod
    def of_timm(cls, declared: Mapping[str, Any], overrides: Mapping[str, Any]) -> Preprocessing:
        """The preprocessing of a timm model's weights, with the user's overrides.

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


def _nearest(before: int, after: int) -> NDArray[np.int64]:
    """(after,) positions that torchvision takes when it resizes a side without interpolation."""
    scale = np.float32(before) / np.float32(after)
    places = np.floor(np.arange(after, dtype=np.float32) * scale).astype(np.int64)
    last: NDArray[np.int64] = np.minimum(places, before - 1)
    return last
