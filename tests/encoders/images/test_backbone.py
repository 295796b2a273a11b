from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.models.vgg import VGG
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.encoders.images import Backbone, ImageConfig, load_backbone

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


def pixels(count: int, side: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=generator)


@pytest.mark.parametrize("size", [32, 224])
def test_vgg_gives_fc7(size: int) -> None:
    """4096 numbers after the second fully connected layer and its ReLU (Faghri et al. 2018, section 4.1).

    Layer by layer, on a network whose convolutions are thin; the fully connected layers are those of VGG19.
    """
    thin = [8, "M", 8, "M", 8, "M", 8, "M", 8, "M"]
    torch.manual_seed(0)
    network = VGG(thin, num_classes=0, drop_rate=0.5).eval()
    network.pretrained_cfg = timm.create_model("vgg19", num_classes=0, device="meta").pretrained_cfg
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rungwise.encoders.images._backbone.create_network", lambda *_, **__: network)
        backbone = Backbone(ImageConfig("vgg19", weights="random", size=size)).eval()
    assert backbone.features == 4096
    pictures = pixels(2, size)
    with torch.inference_mode():
        seen = network.features(backbone.preprocessing.normalise(pictures))
        seen = F.adaptive_avg_pool2d(seen, 7) if size < 224 else seen  # VGG needs 7 x 7 for its first layer
        fc6 = F.relu(F.linear(seen.flatten(1), network.pre_logits.fc1.weight.flatten(1), network.pre_logits.fc1.bias))
        fc7 = F.relu(F.linear(fc6, network.pre_logits.fc2.weight.flatten(1), network.pre_logits.fc2.bias))
        torch.testing.assert_close(backbone(pictures), fc7, rtol=1e-4, atol=1e-5)
    assert (fc7 == 0).any()


WIDTHS = {"vgg19": 4096, "resnet152": 2048, "mobilenetv2_100": 1280, "convnext_tiny": 768, "vit_base_patch32_224": 768}


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDTHS)
def test_usual_networks_have_the_width_that_papers_name(name: str) -> None:
    """Shapes alone: on the meta device nothing is computed."""
    with torch.device("meta"):
        network = timm.create_model(name, num_classes=0).eval()
        assert network(torch.zeros(1, 3, 224, 224)).flatten(1).shape[1] == WIDTHS[name]


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_convnext", "test_efficientnet"])
def test_regions_are_the_places_of_the_last_map_or_the_patches(name: str) -> None:
    torch.manual_seed(0)
    backbone = Backbone(ImageConfig(name, weights="random", size=160, pool="regions")).eval()
    pictures = pixels(2, 160)
    with torch.inference_mode():
        found = backbone(pictures)
        last = backbone.network.forward_features(backbone.preprocessing.normalise(pictures))
    assert found.shape[1:] == backbone.feature_shape == (backbone.regions, backbone.features)
    if last.ndim == 3:
        prefix = backbone.network.num_prefix_tokens
        assert prefix == 1
        expected = [[last[n, prefix + r] for r in range(last.shape[1] - prefix)] for n in range(2)]
    else:
        places = [(y, x) for y in range(last.shape[2]) for x in range(last.shape[3])]
        expected = [[last[n, :, y, x] for y, x in places] for n in range(2)]
    assert torch.equal(found, torch.stack([torch.stack(one) for one in expected]).float())


def test_regions_of_networks_with_channels_last() -> None:
    backbone = Backbone(ImageConfig(SMALL, weights="random", size=64, pool="regions"))
    last = torch.arange(2 * 2 * 3 * 4.0).view(2, 2, 3, 4)
    backbone.network.output_fmt = "NHWC"
    assert torch.equal(backbone._as_regions(last), last.view(2, 6, 4))


@pytest.mark.parametrize("pool", ["", "avg", "token"])
def test_a_vision_transformer_pools_as_its_options_say(pool: str) -> None:
    options = {"global_pool": pool} if pool else {}
    torch.manual_seed(0)
    backbone = Backbone(ImageConfig("test_vit", weights="random", size=160, options=options)).eval()
    pictures = pixels(1, 160)
    with torch.inference_mode():
        tokens = backbone.network.forward_features(backbone.preprocessing.normalise(pictures))
        mean = backbone.network.fc_norm(tokens[:, 1:].mean(dim=1))
        expected = mean if pool == "avg" else backbone.network.fc_norm(tokens[:, 0])
        torch.testing.assert_close(backbone(pictures), expected)


def test_features_of_ten_crops_are_their_mean() -> None:
    torch.manual_seed(0)
    backbone = Backbone(ImageConfig(SMALL, weights="random", size=32, crops="10C")).eval()
    assert backbone.preprocessing.crop == 0.875
    picture = pixels(1, 50)[0]
    crops = backbone.preprocessing.apply(picture)
    assert crops.shape == (10, 3, 32, 32)
    with torch.inference_mode():
        one_by_one = torch.stack([backbone(crop[None])[0] for crop in crops])
        torch.testing.assert_close(backbone(crops[None]), one_by_one.mean(dim=0, keepdim=True))
        torch.testing.assert_close(backbone.inference(False)(crops[None]), one_by_one.mean(dim=0, keepdim=True))
    assert one_by_one.std(dim=0).max() > 0


def test_random_crops_are_mirrored_unless_told_otherwise() -> None:
    of = {mirrored: Backbone(ImageConfig(SMALL, "random", crops="RC", mirrored=mirrored)) for mirrored in (None, False)}
    assert of[None].preprocessing.mirrored
    assert not of[False].preprocessing.mirrored
    assert of[None].preprocessing.crop <= 0.875, "there is room to draw from"
    assert not Backbone(ImageConfig(SMALL, "random")).preprocessing.mirrored


@pytest.mark.parametrize("batch_norm", ["live", "frozen"])
def test_statistics_of_batch_normalisation_are_frozen_or_live(batch_norm: str) -> None:
    torch.manual_seed(0)
    backbone = Backbone(ImageConfig(SMALL, weights="random", size=32, frozen=False, batch_norm=batch_norm))
    norms = [module for module in backbone.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    before = [one.running_mean.clone() for one in norms]
    backbone.train()
    backbone(pixels(4, 32)).sum().backward()
    moved = [not torch.equal(one.running_mean, mean) for one, mean in zip(norms, before, strict=True)]
    assert all(moved) if batch_norm == "live" else not any(moved)
    assert all(one.weight.grad is not None for one in norms), "their weights are trained either way"
    assert backbone.training


@pytest.mark.parametrize(
    ("changes", "said"),
    [({}, True), ({"batch_norm": "frozen"}, False), ({"frozen": True}, False), ({"weights": "random"}, False)],
)
def test_trained_weights_without_statistics_are_said(changes: dict[str, Any], said: bool) -> None:
    config = replace(ImageConfig(SMALL, weights="hub", size=32, frozen=False), **changes)
    backbone = Backbone(config).requires_grad_(not config.frozen)
    assert bool(backbone.remarks()) is said
    assert all("set model.image.batch_norm: frozen" in line for line in backbone.remarks())
    next(module for module in backbone.modules() if isinstance(module, torch.nn.BatchNorm2d)).running_mean += 1
    assert not backbone.remarks()
    assert not any(module.training for module in backbone.eval().modules())


def test_the_cache_knows_pools_and_crops_apart() -> None:
    torch.manual_seed(0)
    base = Backbone(ImageConfig(SMALL, weights="random", size=64, crop=0.875))
    seen = {base.fingerprint()}
    for change in ({"pool": "regions"}, {"crops": "10C"}, {"crops": "RC"}, {"batch_norm": "frozen"}):
        other = Backbone(ImageConfig(SMALL, weights="random", size=64, **({"crop": 0.875} | change)))
        other.load_state_dict(base.state_dict())
        seen.add(other.fingerprint())
    assert len(seen) == 3, "random crops and batch statistics change no feature of evaluation"


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
        (ImageConfig("mobilnetv2_100", weights="random"), "'mobilnetv2_100'; close to it: mobilenetv2_100, "),
        (ImageConfig("resnet5O"), "'resnet5O'; close to it: resnet50, "),
        (ImageConfig("resnet50.tv_in1K", weights="random"), "'resnet50.tv_in1K'; close to it: resnet50.tv_in1k, "),
        (ImageConfig(SMALL, weights="random", options={"patch_size": 4}), "does not take patch_size"),
        (ImageConfig(SMALL, weights="random", size=8191, crop=0.9), "crop must lie in"),
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
    backbone = load_backbone(config)
    assert backbone.features == 1280
    assert (
        "say input 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5, and the configuration has input 64"
        in backbone.weights_warning
    )


SAME = {"size": 64, "options": {"pad_type": "same"}, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ()),
        ({"backbone": "test_efficientnet.r160_in1k"}, ()),
        ({"options": {}}, ("pad_type symmetric", "--model.image.options '{pad_type: same}'")),
        ({"mean": None}, ("mean 0.", "--model.image.mean 0.5 0.5 0.5")),
        ({"size": 96}, ("input 96", "--model.image.size 64")),
        ({"weights": "random"}, ()),
    ],
)
def test_a_file_that_says_otherwise_is_remarked_once(tmp_path: Path, changes: dict[str, Any], said: Any) -> None:
    network = timm.create_model("test_efficientnet", pretrained=False)
    file = tmp_path / "w.safetensors"
    metadata = {"timm": "test_efficientnet", "pad_type": "same", "mean": "0.5", "std": "0.5", "input": "64"}
    save_file(network.state_dict(), file, metadata)
    config = ImageConfig(**({"backbone": "test_efficientnet", "weights": str(file)} | SAME | changes))
    backbone = load_backbone(config).requires_grad_(False)
    assert len(backbone.remarks()) == bool(said)
    assert all(part in backbone.remarks()[0] for part in said)
    assert str(tmp_path) not in backbone.weights_warning
    save_file(network.state_dict(), file, {"format": "pt"})
    assert not load_backbone(ImageConfig("test_efficientnet", weights=str(file), size=96)).weights_warning


def test_padding_of_tensorflow_without_an_option_is_known(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    save_file(timm.create_model("tf_efficientnet_lite0").state_dict(), file, {"pad_type": "same"})
    assert not load_backbone(ImageConfig("tf_efficientnet_lite0", weights=str(file), size=32)).weights_warning
    assert load_backbone(ImageConfig("efficientnet_lite0", weights=str(file), size=32)).weights_warning


def test_ten_crops_go_with_pooled_features_alone() -> None:
    with pytest.raises(UserError, match="keeps places apart"):
        ImageConfig(SMALL, pool="regions", crops="10C")


def test_weights_that_cannot_be_fetched_are_one_line_that_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*args: object, **options: object) -> str:
        raise ConnectionError("no route to the hub")

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", unreachable)
    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(UserError) as caught:
        load_backbone(ImageConfig("mobilenetv2_100.ra_in1k"))
    assert str(caught.value) == (
        "weights of mobilenetv2_100.ra_in1k cannot be fetched (no route to the hub); on a connected machine run:"
        " hf download timm/mobilenetv2_100.ra_in1k --include model.safetensors --local-dir mobilenetv2_100.ra_in1k;"
        " then copy mobilenetv2_100.ra_in1k/model.safetensors here and name that file by model.image.weights=FILE"
    )


def test_weights_of_the_hub_that_are_on_this_machine_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.manual_seed(3)
    theirs = timm.create_model("test_resnet.r160_in1k")
    save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **options: str(tmp_path))
    ours = load_backbone(ImageConfig("test_resnet.r160_in1k")).network.state_dict()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs.state_dict()[name]), name


@pytest.mark.parametrize(
    ("backbone", "size", "grid"),
    [
        ("test_resnet.r160_in1k", 64, (2, 2)),
        ("test_vit.r160_in1k", 160, (10, 10)),
        pytest.param("swin_tiny_patch4_window7_224", 224, (7, 7), marks=pytest.mark.slow),
    ],
)
def test_regions_know_how_they_stand_in_the_picture(backbone, size, grid):
    side = Backbone(ImageConfig(backbone, weights="random", size=size, pool="regions"))
    assert side.region_grid == grid
    assert side.regions == grid[0] * grid[1]
    assert side.region_boxes(50, 50).shape == (side.regions, 4)


def test_a_place_lights_up_where_its_box_is():
    """One bright square in a dark picture changes most the region whose box holds it."""
    side = Backbone(ImageConfig("test_vit.r160_in1k", weights="random", size=160, pool="regions", crop=1.0)).eval()
    plain = torch.zeros(3, 200, 400, dtype=torch.uint8)
    boxes = side.region_boxes(200, 400)
    patches = side.network.patch_embed
    for region in (0, 9, 37, 99):
        left, top, right, bottom = boxes[region] * [400, 200, 400, 200]
        lit = plain.clone()
        lit[:, int(top) + 2 : int(bottom) - 2, int(left) + 2 : int(right) - 2] = 255
        before, after = (
            patches(side.preprocessing.normalise(side.preprocessing.apply(one)[None])).flatten(0, -2)
            for one in (plain, lit)
        )
        assert int((after - before).norm(dim=-1).argmax()) == region


def test_a_vector_of_the_picture_has_no_place():
    side = Backbone(ImageConfig("test_resnet.r160_in1k", weights="random", size=64))
    assert side.region_grid is None
    assert side.region_boxes(10, 10) is None
