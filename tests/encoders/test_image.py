from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from rungwise.core.errors import UserError
from rungwise.encoders.image import Backbone, ImageConfig, load_backbone

SMALL = "test_resnet.r160_in1k"


def test_weights_from_a_file_are_those_of_timm(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole = timm.create_model(SMALL, pretrained=False)
    save_file(whole.state_dict(), tmp_path / "weights.safetensors")
    backbone = load_backbone(ImageConfig(SMALL, weights=str(tmp_path / "weights.safetensors"), size=32)).eval()
    pictures = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.inference_mode():
        expected = whole.eval().forward_head(
            whole.forward_features(backbone.preprocessing.normalise(pictures)), pre_logits=True
        )
        torch.testing.assert_close(backbone(pictures), expected)


def test_flatten_keeps_the_last_map() -> None:
    backbone = Backbone(ImageConfig(SMALL, weights="random", size=64, pool="flatten")).eval()
    with torch.inference_mode():
        features = backbone(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    assert features.shape[1] == backbone.features == backbone.network.num_features * 4


def test_preprocessing_is_as_declared_unless_overridden() -> None:
    declared = timm.create_model(SMALL).pretrained_cfg
    assert Backbone(ImageConfig(SMALL, weights="random")).preprocessing.mean == tuple(declared["mean"])
    changed = Backbone(ImageConfig(SMALL, weights="random", size=48, mean=(0.5, 0.5, 0.5), resize="square"))
    assert changed.preprocessing.size == 48
    assert changed.preprocessing.mean == (0.5, 0.5, 0.5)
    assert changed.preprocessing.std == tuple(declared["std"])
    assert changed.preprocessing.resize == "square"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ImageConfig("resnet_of_dreams", weights="random"), "timm knows no backbone 'resnet_of_dreams'"),
        (ImageConfig(SMALL, weights="random", options={"patch_size": 4}), "does not take these options"),
        (ImageConfig(SMALL, weights="absent.safetensors"), "absent.safetensors: no such weights file"),
    ],
)
def test_mistakes_have_one_line(config: ImageConfig, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load_backbone(config)
    assert "\n" not in str(caught.value)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    other = timm.create_model("test_vit.r160_in1k", pretrained=False)
    save_file(other.state_dict(), tmp_path / "vit.safetensors")
    with pytest.raises(UserError, match="is it another model?"):
        load_backbone(ImageConfig(SMALL, weights=str(tmp_path / "vit.safetensors")))
    (tmp_path / "broken.safetensors").write_bytes(b"1234")
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_backbone(ImageConfig(SMALL, weights=str(tmp_path / "broken.safetensors")))


@pytest.mark.real_data
def test_the_real_weights_fit(real_data: Path) -> None:
    weights = real_data / "weights" / "mobilenetv2_100_imagenet.safetensors"
    config = ImageConfig("mobilenetv2_100", weights=str(weights), options={"pad_type": "same"}, size=64)
    assert load_backbone(config).features == 1280
