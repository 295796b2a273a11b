import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core import UserError
from rungwise.encoders.pretrained._patches import PatchPreprocessing

transformers = pytest.importorskip("transformers")

CASES = [
    ((75, 50), 1),
    ((75, 50), 256),
    ((53, 97), 16),
    ((53, 97), 1024),
    ((300, 41), 25),
    ((300, 41), 256),
    ((9, 1000), 16),
    ((9, 1000), 25),
    ((1, 1), 1),
    ((1, 1), 1024),
    ((333, 500), 64),  # the search for its grid must end as near as the library's
    ((240, 320), 16),
    ((240, 320), 256),
]
"""Shape of a picture, and how many patches it is cut to."""


@pytest.mark.parametrize(("shape", "patches"), CASES)
def test_patches_are_those_of_the_library(shape: tuple[int, int], patches: int) -> None:
    mine = PatchPreprocessing(
        patch=4, patches=patches, mean=(0.5, 0.4, 0.3), std=(0.5, 0.6, 0.7), interpolation="bilinear"
    )
    own = transformers.Siglip2ImageProcessor(
        patch_size=4, max_num_patches=patches, image_mean=mine.mean, image_std=mine.std
    )
    pixels = np.random.default_rng(patches).integers(0, 256, (*shape, 3), dtype=np.uint8)
    wanted = own(images=Image.fromarray(pixels), return_tensors="pt")
    prepared = mine.apply(torch.from_numpy(pixels).permute(2, 0, 1))
    assert prepared.shape == mine.prepared_shape
    found = mine.normalise(prepared[None])
    assert found[0, -1, :2].tolist() == wanted["spatial_shapes"][0].tolist()
    assert found[:, :-1].numpy() == pytest.approx(wanted["pixel_values"].numpy(), abs=1e-5)


@pytest.mark.parametrize(
    "settings", [{"patch": 0}, {"patch": 257}, {"patches": 0}, {"patches": 1 << 20}, {"std": (0, 1, 1)}]
)
def test_sizes_that_no_network_reads_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(settings))):
        PatchPreprocessing(**settings)  # type: ignore[arg-type]


def test_it_is_not_computed_without_torch() -> None:
    with pytest.raises(UserError, match="is not exported"):
        PatchPreprocessing().apply_array(np.zeros((3, 4, 4), np.uint8))
