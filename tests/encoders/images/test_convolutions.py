import numpy as np
import pytest
import torch

from rungwise.core import UserError, from_plain
from rungwise.encoders.images import ConvolutionsConfig
from rungwise.encoders.images._convolutions import Convolutions, moments
from rungwise.models import JointEmbedding, VSEConfig

TINY = {"kind": "convolutions", "size": 32, "channels": [4, 6, 8, 8], "halving": [0, 1, 2], "hidden": 5}


def side(**changes) -> Convolutions:
    torch.manual_seed(0)
    return from_plain(ConvolutionsConfig, TINY | changes, "test").build().eval()


def test_moments_are_those_of_a_slow_reference() -> None:
    found = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    expected = torch.zeros(2, 9)
    for row in range(4):
        for column in range(6):
            values = found[:, :, row, column] / 24
            x, y = -1 + 2 * column / 5, -1 + 2 * row / 3
            expected += torch.cat([values, values * x, values * y], dim=1)
    torch.testing.assert_close(moments(found), expected)


def test_a_map_of_one_place_has_moments() -> None:
    assert moments(torch.full((1, 2, 1, 1), 3.0)).isfinite().all()


def test_what_a_thing_is_stays_when_it_moves_and_where_it_is_changes() -> None:
    pictures = torch.full((2, 3, 128, 128), 255, dtype=torch.uint8)
    pictures[0, :, 56:64, 48:56] = 0
    pictures[1, :, 56:64, 72:80] = 0  # by a multiple of what the network halves, clear of the edges
    with torch.inference_mode():
        encoder = side(size=128)
        blank = encoder(torch.full_like(pictures[:1], 255))
        what, across, down = (encoder(pictures) - blank).chunk(3, dim=1)
    torch.testing.assert_close(what[0], what[1], atol=1e-6, rtol=1e-3)
    torch.testing.assert_close(down[0], down[1], atol=1e-6, rtol=1e-3)
    torch.testing.assert_close(across[1] - across[0], what[0] * 2 * 3 / 15, atol=1e-6, rtol=1e-3)
    assert what[0].abs().max() > 1e-4


def test_the_convolutions_see_no_colours() -> None:
    pictures = torch.full((2, 3, 32, 32), 255, dtype=torch.uint8)
    for picture, ink in zip(pictures, ((0, 90, 200), (200, 0, 90)), strict=True):
        picture[:, 8:24, 8:20] = torch.tensor(ink, dtype=torch.uint8).view(3, 1, 1)
    seen = []
    encoder = side()
    encoder.form.register_forward_hook(lambda module, inputs, found: seen.append(found))
    with torch.inference_mode():
        features = encoder(pictures)
    torch.testing.assert_close(seen[0][0], seen[0][1])
    assert (features[0] - features[1]).abs().max() > 1e-3


def test_in_training_features_are_standardised() -> None:
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (64, 3, 32, 32)).astype(np.uint8))
    features = side().train()(pixels)
    torch.testing.assert_close(features.mean(dim=0), torch.zeros(15), atol=1e-4, rtol=0)


def test_a_model_with_it_is_saved_and_restored(tmp_path) -> None:
    config = from_plain(VSEConfig, {"image": TINY, "text": {"word_dimension": 4}, "dimension": 6}, "test")
    model = JointEmbedding.create(config, ["a dog", "a cat"] * 4)
    model.save_pretrained(tmp_path / "model")
    again = JointEmbedding.from_pretrained(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (2, 3, 32, 32)).astype(np.uint8))
    with torch.inference_mode():
        torch.testing.assert_close(again.eval().embed_images(pixels), model.eval().embed_images(pixels))


def test_the_fingerprint_is_of_weights_and_make() -> None:
    one = side()
    assert one.fingerprint() == side().fingerprint()
    assert one.fingerprint() != side(size=40).fingerprint()
    with torch.no_grad():
        next(one.parameters()).add_(1)
    assert one.fingerprint() != side().fingerprint()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 4}, "size: must be at least 8"),
        ({"size": 0}, "size: must be at least 8"),
        ({"hidden": 0}, "hidden: must be at least 1"),
        ({"channels": []}, "channels: the number of its values must be at least 1"),
        ({"halving": [0, 4]}, r"image.halving must name convolutions in 0..3, got 0, 4"),
        ({"channels": [4, 4, -1]}, r"channels\.2: must be at least 1"),
        ({"depth": 3}, "depth"),
    ],
)
def test_settings_that_make_no_network_are_one_line(changes, message) -> None:
    with pytest.raises(UserError, match=message) as caught:
        side(**changes)
    assert "\n" not in str(caught.value)
