import numpy as np
import pytest
import torch

from rungwise.encoders import Preprocessing
from rungwise.encoders.images._random_crops import RandomCrops


def noise(height: int, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator)


SHAPES = [(16, 16), (40, 61), (61, 40), (20, 90), (90, 20), (17, 500), (300, 310), (9, 8)]


@pytest.mark.parametrize("corner", ["round", "floor"])
@pytest.mark.parametrize("resize", ["short_side", "square"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_centre_of_what_is_kept_is_what_evaluation_sees(shape: tuple[int, int], resize: str, corner: str) -> None:
    seen = Preprocessing(8, crop=0.6, resize=resize, crops="RC", mirrored=True, crop_corner=corner)
    crops = RandomCrops(seen)
    row = crops.keep(noise(*shape))
    assert row.shape == crops.shape
    assert row.dtype == torch.uint8
    assert torch.equal(crops.centre(row[None])[0], seen.apply(noise(*shape)))


def windows(picture: np.ndarray, size: int) -> set[bytes]:
    """Every crop of a picture and its mirror image, by brute force."""
    found = set()
    for top in range(picture.shape[1] - size + 1):
        for left in range(picture.shape[2] - size + 1):
            one = picture[:, top : top + size, left : left + size]
            found |= {one.tobytes(), one[:, :, ::-1].tobytes()}
    return found


@pytest.mark.parametrize("resize", ["short_side", "square"])
@pytest.mark.parametrize("shape", [(12, 17), (17, 12), (14, 14)])
def test_draws_are_crops_of_the_resized_picture_and_reach_each_of_them(shape: tuple[int, int], resize: str) -> None:
    seen = Preprocessing(8, crop=0.8, resize=resize, crops="RC", mirrored=True)
    crops = RandomCrops(seen)
    row = crops.keep(noise(*shape))
    torch.manual_seed(0)
    drawn = {one.numpy().tobytes() for one in crops.drawn(row.expand(600, -1))}
    assert drawn == windows(seen.resized(noise(*shape)).numpy(), 8)


def test_draws_follow_from_the_seed_and_differ_between_rows() -> None:
    crops = RandomCrops(Preprocessing(8, crop=0.5, crops="RC"))
    rows = crops.keep(noise(30, 40)).expand(6, -1)
    torch.manual_seed(3)
    first = crops.drawn(rows)
    torch.manual_seed(3)
    assert torch.equal(crops.drawn(rows), first)
    assert len({one.numpy().tobytes() for one in first}) > 1


def test_mirrored_alone_is_the_centre_or_its_mirror_image() -> None:
    seen = Preprocessing(8, crop=0.5, mirrored=True)
    crops = RandomCrops(seen)
    torch.manual_seed(0)
    drawn = {one.numpy().tobytes() for one in crops.drawn(crops.keep(noise(30, 40)).expand(20, -1))}
    centre = seen.apply(noise(30, 40)).numpy()
    assert drawn == {centre.tobytes(), np.ascontiguousarray(centre[:, :, ::-1]).tobytes()}


def test_random_crops_alone_are_not_mirrored() -> None:
    crops = RandomCrops(Preprocessing(8, crop=1.0, crops="RC"))
    torch.manual_seed(0)
    drawn = crops.drawn(crops.keep(noise(8, 8)).expand(10, -1))
    assert all(torch.equal(one, noise(8, 8)) for one in drawn)


def test_nothing_is_nothing() -> None:
    crops = RandomCrops(Preprocessing(8, crops="RC"))
    assert crops.centre(torch.zeros(0, *crops.shape, dtype=torch.uint8)).shape == (0, 3, 8, 8)
    assert crops.drawn(torch.zeros(0, *crops.shape, dtype=torch.uint8)).shape == (0, 3, 8, 8)
