"""Preprocessing from a published model's files, field by field; a field that is not understood is refused.

Nothing is guessed: a picture prepared in another way gives vectors that look right and rank worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rungwise.core import UserError, read_json
from rungwise.encoders._preprocessing import Interpolation, Preprocessing, Resize
from rungwise.encoders.pretrained._patches import PatchPreprocessing

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"

_FILTERS: Mapping[object, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
"""Interpolations by Pillow's numbers."""
_PROCESSORS = {
    f"{name}{end}" for name in ("CLIP", "Siglip") for end in
    ("FeatureExtractor", "ImageProcessor", "ImageProcessorFast", "ImageProcessorPil")
}  # fmt: skip
_BY_PILLOW = "Pil"
_NO_MATTER = {
    "auto_map", "backend", "data_format", "device", "disable_grouping", "do_convert_rgb", "feature_extractor_type",
    "image_processor_type", "input_data_format", "processor_class", "return_tensors", "use_fast",
    "_processor_class", "_valid_processor_keys", "default_to_square",
}  # fmt: skip
"""Fields that change nothing in a picture that has been decoded to RGB."""


def transformers_preprocessing(folder: Path, side: int) -> Preprocessing:
    """The preprocessing of CLIP or SigLIP in a folder of transformers.

    ``side`` is the side of the pictures that the network reads.

    Raises:
        UserError: If the folder has no ``processor_config.json`` or ``preprocessor_config.json``, a field is not
            understood, or the result does not fit the network.
    """
    file, said = _described(folder)
    kind = said.get("image_processor_type") or said.get("feature_extractor_type")
    if not isinstance(kind, str) or kind not in _PROCESSORS:
        raise UserError(
            f"{file}: image_processor_type {str(kind)[:60]!r} is not known; known are those of CLIP and SigLIP at a"
            " fixed size"
        )
    left = _usual(said, file)
    if str(kind).startswith("Siglip"):
        left.setdefault("do_center_crop", False)
    if missing := {"size", "resample", "image_mean", "image_std", "do_center_crop"} - left.keys():
        raise UserError(f"{file}: does not say {sorted(missing)[0]}; copy the file from where the model comes from")
    cropped = left.pop("do_center_crop")
    size = left.pop("crop_size", None)
    window = _crop(size, file) if cropped else None
    resize, resized = _size(left.pop("size"), file)
    resample = left.pop("resample")
    interpolation = _FILTERS.get(resample) if _number(resample) else None
    mean, std = (_colour(left.pop(name), name, file) for name in ("image_mean", "image_std"))
    if left:
        raise UserError(f"{file}: {sorted(left)[0][:60]!r} is not understood; {_OTHER}")
    if interpolation is None:
        raise UserError(f"{file}: resample {said['resample']!r} is not understood; {_OTHER}")
    if resize == "short_side" and window is None:
        raise UserError(f"{file}: pictures of any shape are not cropped to the square that the network reads; {_OTHER}")
    seen = resized if window is None else window
    if seen != side or resized < seen:
        raise UserError(
            f"{file}: makes pictures of {min(seen, resized)} pixels, but config.json says that the network reads"
            f" {side}; the files belong to different models"
        )
    return Preprocessing(
        size=seen,
        mean=mean,
        std=std,
        crop=_share(seen, resized),
        interpolation=interpolation,
        resize=resize,
        resampling="pillow" if str(kind).endswith(_BY_PILLOW) or interpolation == "lanczos" else "torch",
        crop_corner="floor",
        decoding="full",
    )


def patches_preprocessing(folder: Path, patch: int) -> PatchPreprocessing:
    """The preprocessing of SigLIP 2 for pictures of any size in a folder of transformers.

    ``patch`` is the side of the patches that the network reads.

    Raises:
        UserError: If the folder has no ``processor_config.json`` or ``preprocessor_config.json``, a field is not
            understood, or the patches are not those of the network.
    """
    file, said = _described(folder)
    kind = said.get("image_processor_type")
    if kind not in ("Siglip2ImageProcessor", "Siglip2ImageProcessorFast"):
        raise UserError(f"{file}: image_processor_type {str(kind)[:60]!r} is not that of SigLIP 2; {_OTHER}")
    left = _usual(said, file)
    for name in ("resample", "image_mean", "image_std", "patch_size", "max_num_patches"):
        if name not in left:
            raise UserError(f"{file}: does not say {name}; copy the file from where the model comes from")
    resample = left.pop("resample")
    interpolation = _FILTERS.get(resample) if _number(resample) else None
    mean, std = (_colour(left.pop(name), name, file) for name in ("image_mean", "image_std"))
    found, most = left.pop("patch_size"), left.pop("max_num_patches")
    if left:
        raise UserError(f"{file}: {sorted(left)[0][:60]!r} is not understood; {_OTHER}")
    if interpolation is None or interpolation == "lanczos":
        raise UserError(f"{file}: resample {said['resample']!r} is not understood; {_OTHER}")
    if found != patch or not _whole(most):
        raise UserError(
            f"{file}: makes {str(most)[:40]} patches of {str(found)[:40]} pixels, but config.json says that the network"
            f" reads patches of {patch}; the files belong to different models"
        )
    return PatchPreprocessing(
        mean=mean, std=std, interpolation=interpolation, decoding="full", patch=patch, patches=int(most)
    )


def open_clip_preprocessing(said: object, side: int, file: Path, *, siglip: bool) -> Preprocessing:
    """The preprocessing that ``preprocess_cfg`` of open_clip describes.

    Args:
        said: ``preprocess_cfg``.
        side: Side of the pictures that the network reads; open_clip uses it whatever the file says.
        file: File that holds it, for errors.
        siglip: Whether the network is of SigLIP, for which open_clip's defaults are wrong.

    Raises:
        UserError: If it is missing, or a field is not understood.
    """
    if not isinstance(said, dict) or not said:
        raise UserError(
            f"{file}: preprocess_cfg is missing, and open_clip would take the one of CLIP without a word; copy the file"
            " from where the model comes from"
        )
    left = {name: value for name, value in said.items() if value is not None}
    if not siglip:  # what files that leave it out were trained with
        left = {"interpolation": "bicubic", "resize_mode": "shortest"} | left
    for name in ("mean", "std", "interpolation", "resize_mode"):
        if name not in left:
            raise UserError(
                f"{file}: preprocess_cfg does not say {name}; copy the file from where the model comes from"
            )
    mean, std = (_colour(left.pop(name), name, file) for name in ("mean", "std"))
    resize, interpolation = _MODES.get(str(left.pop("resize_mode"))), _NAMES.get(str(left.pop("interpolation")))
    if resize is None or interpolation is None:
        how = f"{said.get('resize_mode')!r} by {said.get('interpolation')!r}"
        raise UserError(f"{file}: preprocess_cfg: {how[:80]} is not understood; {_OTHER}")
    if left.pop("mode", "RGB") != "RGB":
        raise UserError(f"{file}: preprocess_cfg: mode {said['mode']!r} is not understood: only RGB is; {_OTHER}")
    fill = left.pop("fill_color", 0)
    if not isinstance(fill, int) or isinstance(fill, bool) or not 0 <= fill <= 255:
        raise UserError(f"{file}: preprocess_cfg: fill_color {fill!r} is no number in 0..255; {_OTHER}")
    size = left.pop("size", side)
    if size not in (side, [side, side], (side, side)):
        raise UserError(
            f"{file}: preprocess_cfg makes pictures of {size}, but the network reads {side}; the parts belong to"
            " different models"
        )
    if left:
        raise UserError(f"{file}: preprocess_cfg: {sorted(left)[0][:60]!r} is not understood; {_OTHER}")
    return Preprocessing(
        size=side,
        mean=mean,
        std=std,
        crop=1.0,
        interpolation=interpolation,
        resize=resize,
        resampling="pillow",
        decoding="full",
        fill=(fill, fill, fill),
    )


_OTHER = "give another model"
_ANY = 1e30
"""Bound beyond every number in a preprocessing; a whole number may be too large for a float."""
_MODES: Mapping[str, Resize] = {"shortest": "short_side", "squash": "square", "longest": "long_side"}
_NAMES: Mapping[str, Interpolation] = {"bicubic": "bicubic", "bilinear": "bilinear", "random": "bicubic"}
"""Interpolations that open_clip uses outside of training."""


def _described(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The file, and its fields on pictures; transformers reads the processor's file first."""
    processor = folder / PROCESSOR
    if processor.exists():
        said = read_json(processor)
        inner = said.get("image_processor") if isinstance(said, dict) else None
        if isinstance(inner, dict):
            return processor, inner
    file = folder / PREPROCESSOR
    if not file.exists():
        raise UserError(
            f"{folder}: does not say how pictures are prepared ({PREPROCESSOR} is missing); copy that file from where"
            " the model comes from"
        )
    said = read_json(file)
    if not isinstance(said, dict):
        raise UserError(f"{file}: expected a JSON object; copy the file from where the model comes from")
    return file, said


def _usual(said: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The fields left to be understood, after checking those that every network here needs alike."""
    left = {name: value for name, value in said.items() if name not in _NO_MATTER and value is not None}
    usual = {"do_resize": True, "do_rescale": True, "do_normalize": True, "do_pad": False}
    for name, needed in usual.items():
        if left.pop(name, needed) is not needed:
            raise UserError(f"{file}: {name} {said[name]!r} is not understood: only {needed} is; {_OTHER}")
    factor = left.pop("rescale_factor", 1 / 255)
    if not _number(factor) or not math.isclose(factor, 1 / 255, rel_tol=1e-6):
        raise UserError(f"{file}: rescale_factor {factor!r} is not understood: only 1/255 is; {_OTHER}")
    return left


def _size(size: object, file: Path) -> tuple[Resize, int]:
    """Kind of resize, and its number of pixels."""
    if _whole(size):
        return "short_side", int(str(size))
    if isinstance(size, dict):
        given = {name: value for name, value in size.items() if value is not None}
        if given.keys() == {"shortest_edge"} and _whole(given["shortest_edge"]):
            return "short_side", given["shortest_edge"]
        if given.keys() == {"height", "width"} and given["height"] == given["width"] and _whole(given["height"]):
            return "square", given["height"]
    raise UserError(f"{file}: size {str(size)[:80]} is not understood; {_OTHER}")


def _crop(size: object, file: Path) -> int:
    if _whole(size):
        return int(str(size))
    if isinstance(size, dict) and size.get("height") == size.get("width") and _whole(size.get("height")):
        return int(size["height"])
    raise UserError(f"{file}: crop_size {str(size)[:80]} is not understood; {_OTHER}")


def _share(size: int, resized: int) -> float:
    """Value of ``crop`` by which :class:`Preprocessing` resizes to this side, whatever division rounds."""
    share = size / resized
    return share if int(size / share) == resized else math.nextafter(share, 0)


def _colour(value: object, name: str, file: Path) -> tuple[float, float, float]:
    if isinstance(value, list | tuple) and len(value) == 3 and all(map(_number, value)):
        return float(value[0]), float(value[1]), float(value[2])
    raise UserError(
        f"{file}: {name} {str(value)[:60]} must be three numbers; copy the file from where the model comes from"
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _ANY


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 8192
