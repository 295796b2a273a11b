"""What reaches timm from a configuration: listed options and names of its list, and nothing that could be run."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from rungwise.core import UserError, load_yaml
from rungwise.encoders.images import Backbone, ImageConfig, load_backbone
from rungwise.encoders.images._backbone import create_network
from rungwise.encoders.untrusted import check_options
from rungwise.encoders.untrusted._timm_options import OPTIONS
from rungwise.training.config import TrainConfig
from tests.pages import pages_below

SMALL = "test_resnet.r160_in1k"


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A checkpoint that has shown that it does harm where it is trusted."""
    mark, file = tmp_path / "ran", tmp_path / "evil.pth"
    torch.save({"state_dict": Evil(mark)}, file)
    torch.load(file, weights_only=False)
    assert mark.exists()
    mark.unlink()
    return file


@pytest.mark.parametrize(
    "options",
    [
        {"checkpoint_path": "EVIL"},
        {"pretrained_cfg": {"file": "EVIL"}},
        {"pretrained_cfg": {"url": "file://EVIL"}},
        {"pretrained_cfg": {"hf_hub_id": "somebody/evil", "hf_hub_filename": "evil.pth"}},
        {"pretrained_cfg": "EVIL"},
        {"pretrained_cfg_overlay": {"file": "EVIL", "custom_load": False}},
        {"pretrained_model_args": {"x": 1}},
        {"pretrained": True, "pretrained_cfg_overlay": {"file": "EVIL"}},
        {"pretrained_filter_fn": "os.system"},
        {"cache_dir": "EVIL"},
        {"scriptable": True},
        {"exportable": True},
        {"no_jit": True},
        {"features_only": True, "feature_cls": "hook"},
        {"pruned": True},
        {"kwargs_filter": ["img_size"]},
        {"model_cfg": {"a": 1}},
        {"block": "timm.models.resnet.Bottleneck"},
        {"device": "cuda"},
        {"dtype": "float16"},
        {"num_classes": 10},
        {"in_chans": 1},
        {5: True},
        {"": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", ["random", "hub"])
def test_what_could_read_write_fetch_or_run_is_no_option(
    options: dict[Any, Any], weights: str, evil: Path, tmp_path: Path
) -> None:
    given = json.loads(json.dumps(options).replace("EVIL", str(evil)))
    with pytest.raises(UserError, match=r"is no option of a backbone; there are act_layer, .*window_size") as caught:
        load_backbone(ImageConfig(SMALL, weights=weights, options=given, size=32))
    assert "\n" not in str(caught.value)
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps({"model": {"image": {"backbone": SMALL, "options": given}}}))
    with pytest.raises(UserError, match=r"run.yaml: image.options: '.*' is no option"):
        load_yaml(TrainConfig, file)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    ["hf-hub:somebody/model", "hf_hub:somebody/model", "local-dir:/some/model", "local-dir:.", "HF-HUB:a/b", "a/b",
     "../model", "/some/model", "C:\\model", "model.pth?x=1", "resnet18 ", "", ".", "resnet18.", "résnet18", "a\nb"],
)  # fmt: skip
def test_only_names_of_the_list_are_taken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: pytest.fail("timm was asked"))
    with pytest.raises(UserError, match="no name of timm's list; give one such as resnet152") as caught:
        ImageConfig(name, weights="random")
    assert "\n" not in str(caught.value)


def test_a_folder_of_a_stranger_is_not_read(tmp_path: Path, evil: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet18", "pretrained_cfg": {}}))
    (tmp_path / "pytorch_model.bin").write_bytes(evil.read_bytes())
    with pytest.raises(UserError, match="image.backbone"):
        load_backbone(ImageConfig(f"local-dir:{tmp_path}"))
    assert not (tmp_path / "ran").exists()


def test_the_timm_that_is_here_does_not_unpickle_by_itself(evil: Path, tmp_path: Path) -> None:
    """The floor in pyproject.toml: weights of timm's own list may still be pickles."""
    network = timm.create_model(SMALL)
    with pytest.raises(RuntimeError, match="weights_only=True"):
        timm.models.load_checkpoint(network, str(evil))
    assert not (tmp_path / "ran").exists()


def test_a_pickle_in_place_of_weights_is_not_unpickled(evil: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_backbone(ImageConfig(SMALL, weights=str(evil), size=32))
    plain = tmp_path / "plain.safetensors"
    plain.write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_backbone(ImageConfig(SMALL, weights=str(plain), size=32))
    assert not (tmp_path / "ran").exists()


GOOD: dict[str, list[Any]] = {
    "img_size": [1, 8192, [224, 160], (32, 32)],
    "patch_size": [16],
    "window_size": [[7, 7]],
    "output_stride": [8, 16, 32],
    "init_values": [1e-5, 1],
    "norm_eps": [1e-6],
    "pad_type": ["same"],
    "act_layer": ["gelu", "hard_swish"],
    "norm_layer": ["layernorm2d"],
    "global_pool": ["avg", "token"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_takes_its_own_kind_of_value_and_no_other(name: str) -> None:
    kind = OPTIONS[name].what
    usual: list[Any] = [True, False] if kind == "true or false" else [0, 0.1] if "at least 0" in kind else []
    good = GOOD.get(name, usual)
    assert good
    for value in good:
        check_options({name: value})
    never: list[Any] = [
        None,
        [],
        {},
        "os.system",
        "",
        [1, 2, 3],
        -1,
        10**9,
        float("nan"),
        float("inf"),
        print,
        ["a", "b"],
    ]
    for value in [*never, {"file": "x"}, *([True] if kind != "true or false" else [1, "true"])]:
        with pytest.raises(UserError, match=rf"image.options: {name} must be .*, got") as caught:
            check_options({name: value})
        assert len(str(caught.value)) < 500


def test_the_page_on_training_lists_them_all() -> None:
    page = pages_below("guide")
    rows: dict[str, list[str]] = {}
    for name, kind in OPTIONS.items():
        rows.setdefault(kind.what, []).append(f"`{name}`")
    for kind, names in rows.items():
        assert f"| {', '.join(names)} | {kind} |" in page


def test_options_shape_the_network() -> None:
    same = Backbone(ImageConfig("mobilenetv2_100", weights="random", size=32, options={"pad_type": "same"}))
    assert "Conv2dSame" in str(same.network)
    sized = Backbone(ImageConfig("test_vit.r160_in1k", weights="random", size=32, options={"img_size": [32, 32]}))
    assert sized.features == sized.network.num_features


@pytest.mark.parametrize(
    "options",
    [{"patch_size": 4}, {"global_pool": "map"}, {"norm_layer": "groupnorm"}, {"output_stride": 8, "window_size": 3}],
    ids=str,
)
def test_an_option_that_this_network_does_not_take_has_one_line(options: dict[str, Any]) -> None:
    named = list(options)[-1]
    with pytest.raises(
        UserError, match=rf"^image.options: backbone {SMALL} does not take {named} \(.*leave it out"
    ) as caught:
        Backbone(ImageConfig(SMALL, weights="random", size=32, options=options))
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_whatever_a_network_says_of_an_option_is_one_line() -> None:
    """One network of every family, on a device without memory."""
    families: dict[str, str] = {}
    for name in timm.list_models():
        families.setdefault(timm.models.model_entrypoint(name).__module__, name)
    assert len(families) > 60
    built, said = 0, []
    for name in families.values():
        for option in OPTIONS:
            value = GOOD.get(option, [True if OPTIONS[option].what == "true or false" else 0.1])[0]
            try:
                with torch.device("meta"):
                    create_network(ImageConfig(name, options={option: value}), pretrained=False)
                built += 1
            except UserError as error:
                said.append(str(error))
    assert built > 500
    assert not [line for line in said if "\n" in line]


def test_an_option_that_is_spelt_alike_is_offered() -> None:
    with pytest.raises(UserError, match="'padtype' is no option of a backbone; .*; do you mean pad_type"):
        check_options({"padtype": "same"})
