"""Halves of checkpoints. Also tests rungwise.encoders.untrusted._network_settings."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from rungwise.core import UserError
from rungwise.encoders.pretrained._weights import INDEX, checkpoint_files, load_half
from rungwise.encoders.untrusted import TransformerVision, read_settings

NAMES = ("model.safetensors",)


def tower() -> nn.Module:
    return nn.Linear(2, 3)


def mine(name: str) -> str | None:
    return name.removeprefix("mine.") if name.startswith("mine.") else None


def weights(**others: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"mine.weight": torch.ones(3, 2), "mine.bias": torch.zeros(3), "theirs.weight": torch.ones(9), **others}


def saved(folder: Path, tensors: dict[str, torch.Tensor], name: str = NAMES[0]) -> Path:
    save_file(tensors, folder / name)
    return folder


def test_a_half_is_taken_in_float32(tmp_path: Path) -> None:
    saved(tmp_path, {name: one.to(torch.bfloat16) for name, one in weights().items()})
    found = load_half(tower, checkpoint_files(tmp_path, NAMES), mine, tmp_path / "config.json")
    assert found.weight.dtype == torch.float32
    assert found.weight.tolist() == [[1, 1]] * 3


def test_a_checkpoint_in_several_files_is_read(tmp_path: Path) -> None:
    parts = {"a.safetensors": ["mine.weight"], "b.safetensors": ["mine.bias", "theirs.weight"]}
    for file, names in parts.items():
        saved(tmp_path, {name: weights()[name] for name in names}, file)
    where = {name: file for file, names in parts.items() for name in names}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": where}))
    assert [file.name for file in checkpoint_files(tmp_path, NAMES)] == sorted(parts)
    load_half(tower, checkpoint_files(tmp_path, NAMES), mine, tmp_path / "config.json")


@pytest.mark.parametrize(
    "said",
    [{"weight_map": {"a": "../b.safetensors"}}, {"weight_map": {"a": []}}, {"weight_map": {}}, {"weight_map": 3}, []],
)
def test_an_index_that_leads_elsewhere_is_refused(said: object, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps(said))
    with pytest.raises(UserError, match="names no safetensors files of this folder"):
        checkpoint_files(tmp_path, NAMES)


def test_a_pickle_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    with pytest.raises(UserError, match=r"pytorch_model\.bin: weights as a pickle, .*; get model\.safetensors from"):
        checkpoint_files(tmp_path, NAMES)


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (weights(**{"mine.bias": torch.zeros(4)}), r"mine\.bias: \(4,\), but config\.json asks for \(3,\)"),
        (weights(**{"mine.bias": torch.zeros(3, dtype=torch.int32)}), r"mine\.bias: \(3,\) of torch\.int32"),
        (weights(**{"mine.more": torch.zeros(3)}), r"mine\.more: config\.json asks for no such tensor"),
        ({"mine.weight": torch.ones(3, 2)}, "1 tensors are missing, such as bias"),
        (weights(**{"mine.bias": torch.tensor([0.0, torch.inf, 0.0])}), "bias: holds NaN or infinite numbers"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tensors: dict[str, torch.Tensor], said: str, tmp_path: Path) -> None:
    saved(tmp_path, tensors)
    with pytest.raises(UserError, match=said):
        load_half(tower, checkpoint_files(tmp_path, NAMES), mine, tmp_path / "config.json")


def test_a_network_that_no_memory_holds_is_refused_by_its_shapes(tmp_path: Path) -> None:
    saved(tmp_path, weights())
    with pytest.raises(UserError, match="belong to different models"):
        load_half(
            lambda: nn.Linear(1 << 20, 1 << 20), checkpoint_files(tmp_path, NAMES), mine, tmp_path / "config.json"
        )


SHAPE = {
    "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "num_channels": 3,
    "image_size": 8, "patch_size": 4, "hidden_act": "gelu", "layer_norm_eps": 1e-5, "attention_dropout": 0.0,
    "projection": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", 0), ("hidden_size", "8"), ("hidden_size", True), ("hidden_size", 1 << 20), ("hidden_size", 8.0),
        ("num_hidden_layers", 513), ("num_channels", 1), ("image_size", [8, 8]), ("hidden_act", "lambda"),
        ("layer_norm_eps", 0), ("attention_dropout", 1), ("attention_dropout", float("nan")), ("projection", None),
    ],
)  # fmt: skip
def test_settings_of_another_kind_are_refused(name: str, value: object) -> None:
    assert read_settings(TransformerVision, SHAPE, "config.json").hidden_size == 8
    with pytest.raises(UserError, match=f"config.json: vision_config: {name}: "):
        read_settings(TransformerVision, {**SHAPE, name: value}, "config.json: vision_config")
