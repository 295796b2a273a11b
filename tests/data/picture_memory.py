"""``python -m tests.data.picture_memory [SIDE ...]``: the memory that decoding takes, by format, mode and options.

Each picture is decoded in each way in which the package does it. The table says the bytes of
the peak for each pixel, and what :meth:`PictureHeader.memory` reckons: it must be more.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms
from pillow_heif import register_heif_opener

SIDES = (1000, 4000)
"""In pixels; pictures are three quarters as high as wide."""
WAYS = ("whole", "array", "hint", "thumbnail")
_SMALL = 256

_SAVED: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "JPEG": ("JPEG", ("L", "RGB", "CMYK"), {}),
    "JPEG, progressive": ("JPEG", ("L", "RGB", "CMYK"), {"progressive": True, "subsampling": 0}),
    "MPO": ("MPO", ("RGB",), {"save_all": True}),
    "PNG": ("PNG", ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), {"compress_level": 1}),
    "WebP, lossy": ("WEBP", ("RGB", "RGBA"), {"method": 0}),
    "WebP, lossless": ("WEBP", ("RGB", "RGBA"), {"lossless": True, "method": 0, "quality": 0}),
    "AVIF": ("AVIF", ("L", "RGB", "RGBA"), {"speed": 10}),
    "AVIF, 4:4:4": ("AVIF", ("RGB", "RGBA"), {"speed": 10, "subsampling": "4:4:4"}),
    "GIF": ("GIF", ("L", "P", "RGB"), {}),
    "BMP": ("BMP", ("1", "L", "P", "RGB", "RGBA"), {}),
    "PPM": ("PPM", ("1", "L", "RGB", "I;16"), {}),
    **{
        f"TIFF, {compression}": (
            "TIFF",
            ("L", "P", "RGB", "RGBA", "CMYK", "I;16"),
            {"compression": compression},
        )
        for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd")
    },
    "TIFF, numbers": ("TIFF", ("I", "F", "LAB"), {}),
    "JPEG 2000": ("JPEG2000", ("L", "LA", "RGB", "RGBA", "I;16"), {}),
    "JPEG 2000, lossy": ("JPEG2000", ("RGB",), {"irreversible": True, "quality_layers": [20]}),
    "JPEG 2000, tiles": ("JPEG2000", ("RGB",), {"tile_size": (512, 512)}),
    "JPEG 2000, not smaller": ("JPEG2000", ("RGB",), {"num_resolutions": 1}),
    "HEIC": ("HEIF", ("L", "RGB", "RGBA"), {"quality": 60}),
    "HEIC, 4:4:4": ("HEIF", ("RGB", "RGBA"), {"quality": 60, "chroma": 444}),
    "HEIC, tiles": ("HEIF", ("RGB",), {"quality": 60, "tile_size": 512}),
    "TIFF, JPEG": ("TIFF", ("L", "RGB"), {"compression": "jpeg"}),
    "TIFF, group 4": ("TIFF", ("1",), {"compression": "group4"}),
}


@dataclass(frozen=True)
class Peak:
    """What decoding a picture took.

    Attributes:
        saved: How it was saved.
        mode: Its pixels before.
        side: Its width.
        way: How it was decoded.
        taken: Bytes at the peak, the file left out.
        reckoned: From its header.
        pixels: How many it has.
    """

    saved: str
    mode: str
    side: int
    way: str
    taken: int
    reckoned: int
    pixels: int


def pictures() -> list[tuple[str, str]]:
    """Every way of saving, with every mode that it knows."""
    return [(saved, mode) for saved, (_, modes, _) in _SAVED.items() for mode in modes]


def peaks(sides: Sequence[int], folder: Path) -> list[Peak]:
    """What the pictures take in each way, each picture and way by itself, one after another in one process.

    Args:
        sides: Widths of the pictures.
        folder: For their files.
    """
    kinds = [(saved, mode, side) for side in sides for saved, mode in pictures()]
    for number, kind in enumerate(kinds):
        (folder / str(number)).write_bytes(encoded(*kind))
    command = [sys.executable, "-m", "tests.data.picture_memory", "--of", str(folder)]
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    told = subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout.splitlines()
    found = []
    for line in told:
        number, way, *numbers = line.split()
        found.append(Peak(*kinds[int(number)], way, *map(int, numbers)))
    return found


def encoded(saved: str, mode: str, side: int) -> bytes:
    """A picture with shapes and some noise, as a file."""
    form, _, options = _SAVED[saved]
    if form == "HEIF":
        register_heif_opener()
    x, y = np.meshgrid(np.arange(side), np.arange(side * 3 // 4))
    colours = np.stack([x * 255 // side, y * 255 // side, (x + y) % 256, (x * y) % 256], 2).astype(np.uint8)
    if mode == "I;16":
        image = Image.fromarray(colours[:, :, 0].astype(np.uint16) * 257)
    else:
        image = Image.fromarray(colours).convert("RGB" if mode == "P" else mode if mode == "RGBA" else "RGB")
        image = _as_lab(image) if mode == "LAB" else image.convert(mode)
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def _as_lab(image: Image.Image) -> Image.Image:
    made = ImageCms.profileToProfile(
        image, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert made is not None
    return made


def _tell(folder: Path) -> None:
    """Prints what the pictures of a folder take."""
    from rungwise.core.compute import peak_within
    from rungwise.data.pictures import load_array, load_picture, read_header, thumbnail
    from rungwise.encoders import Preprocessing

    ways: dict[str, Callable[[bytes], object]] = {
        "whole": lambda data: Preprocessing().apply(load_picture(data)),
        "array": lambda data: Preprocessing().apply_array(load_array(data)),
        "hint": lambda data: Preprocessing().apply(load_picture(data, shorter_side=_SMALL)),
        "thumbnail": lambda data: thumbnail(data, _SMALL),
    }
    small = io.BytesIO()
    Image.new("RGB", (40, 30)).save(small, "PNG")
    trim = getattr(ctypes.CDLL(None), "malloc_trim", int)
    for path in sorted(folder.iterdir(), key=lambda path: int(path.name)):
        data = path.read_bytes()
        header = read_header(data)
        for name, way in ways.items():
            way(small.getvalue())  # what is imported and kept is not the picture's
            gc.collect()
            trim(0)
            with peak_within() as peak:
                before = peak()
                way(data)
                taken = (peak() or 0) - (before or 0)
            reckoned = header.memory(None if name in ("whole", "array") else _SMALL) + 2 * len(data)
            print(path.name, name, taken, reckoned, header.pixels, flush=True)


def main(sides: Sequence[int]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for one in peaks(sides, Path(folder)):
            wrong = "" if one.taken <= one.reckoned else "  TOO LITTLE"
            a, b = one.taken / one.pixels, one.reckoned / one.pixels
            print(f"{one.saved:24} {one.mode:5} {one.side:6} {one.way:10} {a:7.1f} taken {b:7.1f} reckoned{wrong}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        _tell(Path(sys.argv[2]))
    else:
        main([int(one) for one in sys.argv[1:]] or SIDES)
