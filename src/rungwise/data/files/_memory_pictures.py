"""Pictures that a program holds in memory, or in the cells of its tables, as they stand in a collection."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rungwise.core import UserError, limits, too_large
from rungwise.data.files._packed_pictures import PackedPicture

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

IN_MEMORY = Path("memory")
"""The file that pictures in memory name, which is none."""
_OF_PNG = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
_OF_TIFF = ("I", "F", "CMYK", "LAB", "YCbCr")


@dataclass(frozen=True, eq=False)
class MemoryPicture(PackedPicture):
    """A picture in memory, or in a cell that a program's own table reads when it is asked.

    No other process finds it again: an index, whose pictures are opened later, refuses it. Equal is what is the same.

    Attributes:
        name: Name for messages.
        content: Gives the bytes of a picture's file; called each time that they are read.

    >>> picture = MemoryPicture(IN_MEMORY, "a", lambda: b"...")
    >>> str(picture), picture.read()
    ("picture 'a' in memory", b'...')
    """

    name: str
    content: Callable[[], bytes] = field(repr=False)

    def __str__(self) -> str:
        return f"picture {self.name!r} in memory"

    @property
    def place(self) -> dict[str, int | str]:
        """Its name, for messages only."""
        return {"name": self.name}

    def read(self) -> bytes:
        """The bytes of a picture's file."""
        data = self.content()
        if len(data) > limits().picture_bytes:
            raise too_large(self, len(data), "picture_bytes")
        return data


class EncodedOnce:
    """The file of a Pillow picture or of an array of pixels, made once without a loss, when it is first asked for.

    An orientation that the picture brings along is carried out, as it is where a file is read. Equal pixels give equal
    bytes, in any process with the same version of Pillow.

    >>> from PIL import Image
    >>> make = EncodedOnce(Image.new("RGB", (4, 2), (255, 0, 0)))
    >>> make() == EncodedOnce(np.full((2, 4, 3), (255, 0, 0), np.uint8))(), Image.open(io.BytesIO(make())).size
    (True, (4, 2))
    """

    def __init__(self, picture: Image.Image | NDArray[Any]) -> None:
        self._picture: Image.Image | NDArray[Any] | None = picture
        self._data = b""

    def __getstate__(self) -> dict[str, Any]:
        return {"_picture": None, "_data": self()}  # an open file behind the picture cannot be copied

    def __call__(self) -> bytes:
        """The bytes of a PNG file, or of TIFF where PNG does not hold such pixels."""
        picture = self._picture
        if picture is not None:
            self._data = _encoded(_of_array(picture) if isinstance(picture, np.ndarray) else picture)
            self._picture = None
        return self._data


def _encoded(picture: Image.Image) -> bytes:
    from PIL import ImageOps

    try:
        upright = ImageOps.exif_transpose(picture)
        if upright.mode not in (*_OF_PNG, *_OF_TIFF):
            upright = upright.convert("RGBA" if "A" in upright.mode or "a" in upright.mode else "RGB")
        file = io.BytesIO()
        own = {name: upright.info[name] for name in ("icc_profile", "transparency") if upright.info.get(name)}
        upright.info = {}
        if upright.mode in _OF_PNG:
            upright.save(file, "PNG", compress_level=1, **own)
        else:
            own.pop("transparency", None)
            upright.save(file, "TIFF", **own)
    # Pillow raises whatever it likes on a picture whose file is damaged or closed.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"a picture in memory cannot be written as a file ({reason}); load it anew") from error
    return file.getvalue()


def fault_of_pixels(pixels: NDArray[Any]) -> str:
    """Why an array is no picture, and what to give; empty if it is one.

    >>> fault_of_pixels(np.zeros((2, 3, 3), np.uint8)), fault_of_pixels(np.zeros((2, 3, 3)))[:47]
    ('', 'an array of float64 and shape (2, 3, 3) is no p')
    """
    has_shape = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if pixels.dtype == np.uint8 and has_shape and pixels.size:
        return ""
    return (
        f"an array of {pixels.dtype} and shape {pixels.shape} is no picture; give uint8 (height, width, 3),"
        " (height, width) or (height, width, 4)"
    )


def _of_array(pixels: NDArray[Any]) -> Image.Image:
    from PIL import Image

    if fault := fault_of_pixels(pixels):
        raise UserError(fault)
    return Image.fromarray(np.ascontiguousarray(pixels))
