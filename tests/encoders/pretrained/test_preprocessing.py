import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core import UserError
from rungwise.encoders.pretrained._preprocessing import open_clip_preprocessing, transformers_preprocessing

transformers = pytest.importorskip("transformers")

CLIP = {
    "crop_size": 224, "do_center_crop": True, "do_normalize": True, "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28],
    "resample": 3, "size": 224,
}  # fmt: skip
"""As openai/clip-vit-base-patch32 has it."""
SIGLIP = {
    "do_convert_rgb": None, "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "SiglipImageProcessor", "image_std": [0.5, 0.5, 0.5], "processor_class": "SiglipProcessor",
    "resample": 2, "rescale_factor": 0.00392156862745098, "size": {"height": 256, "width": 256},
}  # fmt: skip
"""As google/siglip2-base-patch32-256 has it."""


def put(folder: Path, said: object, name: str = "preprocessor_config.json") -> Path:
    (folder / name).write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize(
    ("said", "side"),
    [
        (CLIP, 224),
        (CLIP | {"crop_size": {"height": 31, "width": 31}, "size": {"shortest_edge": 47}, "resample": 2}, 31),
        (CLIP | {"crop_size": 32, "size": {"shortest_edge": 37}, "image_processor_type": "CLIPImageProcessor"}, 32),
        (CLIP | {"crop_size": 33, "size": {"shortest_edge": 33}, "image_processor_type": "CLIPImageProcessorFast"}, 33),
        (CLIP | {"crop_size": 33, "size": {"shortest_edge": 40}, "image_processor_type": "CLIPImageProcessorPil"}, 33),
        (SIGLIP, 256),
        (SIGLIP | {"size": {"height": 48, "width": 48}, "resample": 3}, 48),
    ],
)  # fmt: skip
def test_pixels_are_those_of_the_library(said: dict[str, Any], side: int, tmp_path: Path) -> None:
    mine = transformers_preprocessing(put(tmp_path, said), side)
    kind = str(said.get("image_processor_type", "CLIPImageProcessor")).removesuffix("Fast")
    own = getattr(transformers, kind).from_pretrained(tmp_path)
    for shape in ((75, 50, 3), (53, 97, 3), (200, 41, 3), (16, 16, 3)):
        pixels = np.random.default_rng(shape[0]).integers(0, 256, shape, dtype=np.uint8)
        found = mine.normalise(mine.apply(torch.from_numpy(pixels).permute(2, 0, 1))[None])
        wanted = own(images=Image.fromarray(pixels), return_tensors="pt")["pixel_values"]
        assert found.numpy() == pytest.approx(wanted.numpy(), abs=1e-5)


def test_the_file_of_the_whole_processor_is_read_first(tmp_path: Path) -> None:
    put(tmp_path, CLIP)
    put(tmp_path, {"image_processor": SIGLIP}, "processor_config.json")
    assert transformers_preprocessing(tmp_path, 256).resize == "square"


def test_every_share_resizes_to_the_side_that_was_said(tmp_path: Path) -> None:
    for size in range(1, 60):
        for crop in {1, max(1, size - 1), (size + 1) // 2, size}:
            said = CLIP | {"crop_size": crop, "size": size}
            assert transformers_preprocessing(put(tmp_path, said), crop).resized_side == size, (size, crop)


WITHOUT_CROP = CLIP | {"do_center_crop": False}
REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "nothing": ({}, 224, "image_processor_type 'None' is not known"),
    "another processor": (CLIP | {"image_processor_type": "BlipImageProcessor"}, 224, "'BlipImageProcessor' is not"),
    "a list of processors": (CLIP | {"image_processor_type": ["CLIPImageProcessor"]}, 224, "is not known"),
    "a filter that is a truth value": (CLIP | {"resample": True}, 224, "resample True is not understood"),
    "a number beyond all": (CLIP | {"rescale_factor": 10**400}, 224, "rescale_factor 1000"),
    "patches of any size": (SIGLIP | {"image_processor_type": "Siglip2ImageProcessor"}, 256, "is not known"),
    "another size": (SIGLIP, 224, "makes pictures of 256 pixels, but config.json says that the network reads 224"),
    "an unknown field": (SIGLIP | {"do_blur": True}, 256, "'do_blur' is not understood"),
    "no resize": (SIGLIP | {"do_resize": False}, 256, "do_resize False is not understood: only True is"),
    "padding": (CLIP | {"do_pad": True}, 224, "do_pad True is not understood"),
    "another scale": (SIGLIP | {"rescale_factor": 1 / 127.5}, 256, "rescale_factor 0.0078"),
    "an unknown filter": (SIGLIP | {"resample": 9}, 256, "resample 9 is not understood"),
    "no filter": ({key: SIGLIP[key] for key in SIGLIP if key != "resample"}, 256, "does not say resample"),
    "no crop": (WITHOUT_CROP, 224, "not cropped to the square"),
    "a crop that is larger": (CLIP | {"size": 200}, 224, "makes pictures of 200 pixels"),
    "no square": (SIGLIP | {"size": {"height": 256, "width": 128}}, 256, "size .* is not understood"),
    "a longest edge": (CLIP | {"size": {"shortest_edge": 224, "longest_edge": 448}}, 224, "size .* is not understood"),
    "two means": (CLIP | {"image_mean": [0.5, 0.5]}, 224, "image_mean .* must be three numbers"),
    "NaN": (CLIP | {"image_std": [0.5, 0.5, "nan"]}, 224, "image_std .* must be three numbers"),
    "no division": (CLIP | {"image_std": [0.5, 0.5, 0]}, 224, r"std\.2: must be above 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused(case: str, tmp_path: Path) -> None:
    said, side, line = REFUSED[case]
    with pytest.raises(UserError, match=line):
        transformers_preprocessing(put(tmp_path, said), side)


def test_a_folder_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"preprocessor_config\.json is missing"):
        transformers_preprocessing(tmp_path, 224)
    with pytest.raises(UserError, match="expected a JSON object"):
        transformers_preprocessing(put(tmp_path, [1]), 224)


SEEN = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
OPEN_CLIP: dict[str, tuple[Callable[[], object], str]] = {
    "nothing": (lambda: None, "preprocess_cfg is missing"),
    "a list of modes": (lambda: SEEN | {"resize_mode": ["shortest"]}, "is not understood"),
    "a mapping of filters": (lambda: SEEN | {"interpolation": {"bicubic": 1}}, "is not understood"),
    "another mode": (lambda: SEEN | {"resize_mode": "crop"}, "'crop' by None is not understood"),
    "another filter": (lambda: SEEN | {"interpolation": "nearest"}, "by 'nearest' is not understood"),
    "grey": (lambda: SEEN | {"mode": "L"}, "mode 'L' is not understood"),
    "a colour that is none": (lambda: SEEN | {"fill_color": 300}, "fill_color 300"),
    "another size": (lambda: SEEN | {"size": 240}, "makes pictures of 240, but the network reads 224"),
    "no square": (lambda: SEEN | {"size": [224, 200]}, r"makes pictures of \[224, 200\]"),
    "one number": (lambda: SEEN | {"std": 0.5}, "std 0.5 must be three numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", OPEN_CLIP)
def test_what_is_not_understood_of_open_clip_is_refused(case: str) -> None:
    said, line = OPEN_CLIP[case]
    with pytest.raises(UserError, match=line):
        open_clip_preprocessing(said(), 224, Path("open_clip_config.json"), siglip=False)


def test_defaults_of_open_clip_are_not_those_of_siglip() -> None:
    """Its files say so; read offline by name, open_clip takes the wrong ones without a word."""
    file = Path("open_clip_config.json")
    assert open_clip_preprocessing(SEEN, 224, file, siglip=False).resize == "short_side"
    with pytest.raises(UserError, match="does not say interpolation"):
        open_clip_preprocessing(SEEN, 224, file, siglip=True)
    said = SEEN | {"interpolation": "bicubic", "resize_mode": "squash"}
    assert open_clip_preprocessing(said, 224, file, siglip=True).resize == "square"
