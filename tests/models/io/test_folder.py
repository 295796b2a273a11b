"""Sealed model folders: what was altered, taken out, put in, linked or exchanged while it was read."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rungwise.core import UserError, limited
from rungwise.core.disk import SEAL, write_seal
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import AlteredModelError, JointEmbedding, VSEConfig, load, load_dual_encoder
from rungwise.models.io import ModelFolder
from rungwise.models.io import _folder as folder_module
from rungwise.models.io._folder import PATTERNS

CAPTIONS = ["a red dog", "a blue cat"]
FILES = {"config.json", "tokenizer.json", "model.safetensors", "README.md", SEAL}


def small(seed: int = 0, dimension: int = 4) -> JointEmbedding:
    torch.manual_seed(seed)
    text = GRUConfig(word_dimension=5, min_count=1)
    return JointEmbedding.create(VSEConfig(image=FeatureConfig(width=3), text=text, dimension=dimension), CAPTIONS)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    small().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def refusal(folder: Path, kind: type[UserError] = AlteredModelError) -> str:
    with pytest.raises(kind) as caught:
        load(folder, "cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_saved_model_is_sealed(saved: Path) -> None:
    assert {one.name for one in saved.iterdir()} == FILES
    assert json.loads((saved / "config.json").read_text())["format"] == 1
    sealed = [line.split("  ") for line in (saved / SEAL).read_text().splitlines()]
    assert {name for _, name in sealed} == FILES - {SEAL}
    assert all(digest == hashlib.sha256((saved / name).read_bytes()).hexdigest() for digest, name in sealed)
    assert load(saved, "cpu").fingerprint == small().fingerprint


@pytest.mark.slow
def test_the_coreutils_check_the_seal(saved: Path) -> None:
    checked = subprocess.run(["sha256sum", "-c", SEAL], cwd=saved, capture_output=True, text=True, check=True)
    assert checked.stdout.count(": OK") == 4


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_one_changed_byte_is_refused_or_taken_with_a_word(name: str, saved: Path) -> None:
    file = saved / name
    data = bytearray(file.read_bytes())
    place = data.index(b'"min_count": 1') + 13 if name == "config.json" else len(data) - 1
    data[place] ^= 1 if name != "tokenizer.json" else 0
    file.write_bytes(bytes(data) + (b" " if name == "tokenizer.json" else b""))
    said = refusal(saved)
    assert said.startswith(f"{file}: altered or damaged since it was saved (SHA256SUMS says otherwise)")
    assert "get the model anew, or take it as it is with altered=True" in said
    with pytest.raises(AlteredModelError):
        JointEmbedding.from_pretrained(saved, "cpu")
    with pytest.raises(AlteredModelError):
        load_dual_encoder(saved, "cpu")
    assert load(saved, "cpu", altered=True).encode_text(CAPTIONS).shape == (2, 4)
    assert load_dual_encoder(saved, "cpu", altered=True).dimension == 4
    assert JointEmbedding.from_pretrained(saved, "cpu", altered=True).dimension == 4


def test_what_is_not_read_may_change(saved: Path) -> None:
    (saved / "README.md").write_text("our model")
    (saved / "notes.txt").write_text("kept here")
    assert load(saved, "cpu").dimension == 4


def test_a_seal_that_was_taken_away_is_missed(saved: Path) -> None:
    (saved / SEAL).unlink()
    assert refusal(saved).startswith(f"{saved / SEAL}: missing, so nobody knows whether the model is as it was saved")
    assert load(saved, "cpu", altered=True).dimension == 4


@pytest.mark.parametrize(
    ("seal", "message"),
    [
        ("", "config.json: was put here after the model was saved"),
        ("nonsense\n", "SHA256SUMS, line 1: damaged"),
        ("0" * 64 + "  ../config.json\n", "line 1: damaged"),
        ("0" * 64 + "  config.json\n", "config.json: altered or damaged"),
        ("\xff\n", "damaged"),
    ],
)
def test_a_seal_that_is_none_has_one_line(seal: str, message: str, saved: Path) -> None:
    (saved / SEAL).write_text(seal)
    assert message in refusal(saved)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("sealed", [True, False])
def test_a_pipe_in_place_of_a_file_holds_nobody_up(name: str, sealed: bool, saved: Path) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(UserError) as caught:
        load(saved, "cpu", altered=not sealed)
    assert "\n" not in str(caught.value)


def test_a_pipe_as_a_seal_is_no_seal(saved: Path) -> None:
    (saved / SEAL).unlink()
    os.mkfifo(saved / SEAL)
    assert "SHA256SUMS: missing" in refusal(saved)
    assert load(saved, "cpu", altered=True).dimension == 4


def test_links_that_leave_the_folder_are_not_followed(saved: Path, tmp_path: Path) -> None:
    shutil.move(saved / "tokenizer.json", tmp_path / "elsewhere.json")
    (saved / "tokenizer.json").symlink_to(tmp_path / "elsewhere.json")
    assert "tokenizer.json: a link that leaves the model folder; put the file itself there" in refusal(saved, UserError)
    (saved / "tokenizer.json").unlink()
    shutil.move(tmp_path / "elsewhere.json", saved / "words.json")
    (saved / "tokenizer.json").symlink_to("words.json")
    assert load(saved, "cpu").dimension == 4
    (tmp_path / "link").symlink_to(saved)
    assert load(tmp_path / "link", "cpu").dimension == 4


def hub_cache(saved: Path, root: Path) -> Path:
    """A repository as the hub's cache keeps it: links into a store of blobs."""
    snapshot, blobs = root / "models--a--b" / "snapshots" / ("0" * 40), root / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(sorted(saved.iterdir())):
        shutil.copy(file, blobs / str(number))
        (snapshot / file.name).symlink_to(Path("..") / ".." / "blobs" / str(number))
    return snapshot


def test_a_repository_of_the_hub_is_sealed_too(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = hub_cache(saved, tmp_path / "hub")
    asked: list[Any] = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **how: asked.append((name, how)) or str(snapshot)
    )
    assert load("a/b", "cpu").fingerprint == small().fingerprint
    assert asked == [("a/b", {"allow_patterns": list(PATTERNS), "local_files_only": True})]
    assert not any(pattern.endswith((".bin", ".pth", ".pt", ".pkl", "*", ".py")) for pattern in PATTERNS)
    (snapshot / "config.json").resolve().write_text((saved / "config.json").read_text() + " ")
    assert "config.json: altered" in refusal(Path("a/b"))
    (tmp_path / "outside.json").write_text("{}")
    (snapshot / "tokenizer.json").unlink()
    (snapshot / "tokenizer.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(UserError, match=r"tokenizer.json: a link that leaves the model folder"):
        load("a/b", "cpu", altered=True)


def test_a_name_that_looks_like_a_path_asks_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("the network was asked"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for name in ("runs/vsepp", "runs/vsepp/model", "./model", "/no/model", tmp_path / "model"):
        with pytest.raises(UserError, match="no such folder; correct the path"):
            load(name, "cpu")


def test_a_model_that_takes_the_place_while_it_is_read_is_read_whole(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(1, dimension=6).save_pretrained(tmp_path / "other")
    text, exchanged = ModelFolder.text, []

    def meanwhile(self: ModelFolder, name: str, *rest: Any) -> str:
        answer = text(self, name, *rest)
        if not exchanged:
            exchanged.append(True)
            saved.rename(tmp_path / "aside")
            (tmp_path / "other").rename(saved)
        return answer

    monkeypatch.setattr(ModelFolder, "text", meanwhile)
    model = load(saved, "cpu")
    assert exchanged
    assert model.fingerprint == small(1, dimension=6).fingerprint


@pytest.mark.parametrize("how", ["written into", "another file"])
def test_weights_that_change_between_hash_and_use_are_refused(
    how: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(1).save_pretrained(tmp_path / "other")
    read = folder_module.read_tensors

    def meanwhile(path: Path) -> Any:
        data = (tmp_path / "other" / "model.safetensors").read_bytes()
        if how == "written into":
            path.write_bytes(data)
        else:
            (tmp_path / "new").write_bytes(data)
            (tmp_path / "new").replace(path)
        return read(path)

    monkeypatch.setattr(folder_module, "read_tensors", meanwhile)
    with pytest.raises(AlteredModelError, match=r"model.safetensors: (changed while it was read|altered)"):
        load(saved, "cpu")


def test_each_text_is_read_once(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, opened = folder_module.read_bytes, []

    def counted(path: Path, *rest: Any) -> bytes:
        opened.append(path.name)
        return read(path, *rest)

    monkeypatch.setattr(folder_module, "read_bytes", counted)
    load(saved, "cpu")
    assert sorted(opened) == ["config.json", "tokenizer.json"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_weights_that_are_no_finite_numbers_are_refused(value: float, kind: torch.dtype, saved: Path) -> None:
    tensors = {name: one.to(kind) for name, one in load_file(saved / "model.safetensors").items()}
    tensors["image_projection.weight"][2, 1] = value
    save_file(tensors, saved / "model.safetensors")
    write_seal(saved)
    said = refusal(saved, UserError)
    assert "model.safetensors: image_projection.weight: holds NaN or infinite numbers" in said


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8, torch.bool, torch.complex64])
def test_weights_of_another_kind_of_number_are_refused(kind: torch.dtype, saved: Path) -> None:
    tensors = {name: one.to(kind) for name, one in load_file(saved / "model.safetensors").items()}
    save_file(tensors, saved / "model.safetensors")
    write_seal(saved)
    assert f"of {kind}, but config.json asks for" in refusal(saved, UserError)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.update(dimension=1 << 20),
        lambda model: model["text"].update(word_dimension=1 << 20),
        lambda model: model["image"].update(width=1 << 20),
        lambda model: model.update(image={"kind": "pictures", "backbone": "vit_7b_patch16_dinov3"}),
        lambda model: model.update(
            image={
                "kind": "pictures",
                "backbone": "test_vit",
                "options": {"img_size": 8192, "patch_size": 1},
                "size": 9,
            }
        ),
    ],
)
def test_sizes_that_no_memory_holds_are_refused_before_any_is_taken(
    change: Callable[[dict[str, Any]], None], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[torch.device] = []
    build = JointEmbedding.__init__

    def watched(self: JointEmbedding, *arguments: Any) -> None:
        build(self, *arguments)
        made.append(self.image_projection.weight.device)

    monkeypatch.setattr(JointEmbedding, "__init__", watched)
    facts = json.loads((saved / "config.json").read_text())
    change(facts["model"])
    (saved / "config.json").write_text(json.dumps(facts))
    (saved / "preprocessing.json").write_text(json.dumps({"size": 32, "crop": 1.0}))
    write_seal(saved)
    refusal(saved, UserError)
    assert all(device.type == "meta" for device in made)


def test_weights_much_larger_than_the_model_are_not_read_through(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(saved / "model.safetensors", 1 << 40)  # takes no room on the disk
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("the file was read through"))
    assert "model.safetensors: 1.0 TiB, more than the tensors take" in refusal(saved, UserError)


def test_a_file_larger_than_its_kind_is_refused(saved: Path) -> None:
    folder, size = ModelFolder.open(saved), (saved / "config.json").stat().st_size
    assert folder.data("config.json", size) == (saved / "config.json").read_bytes()
    with pytest.raises(UserError, match=r"config\.json: .*, where at most .* are read"):
        folder.data("config.json", size - 1)


def test_large_and_deep_files_have_one_line(saved: Path) -> None:
    facts = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(facts | {"provenance": {"log": "x" * (2 << 20)}}))
    write_seal(saved)
    with limited(json_bytes=1 << 20):
        assert "config.json: 2.0 MiB, where at most 1.0 MiB are read" in refusal(saved, UserError)
    deep: Any = {}
    for _ in range(900):
        deep = {"a": deep}
    (saved / "config.json").write_text(json.dumps(facts | {"provenance": deep}))
    write_seal(saved)
    assert load(saved, "cpu").provenance == deep


def test_files_get_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    model = JointEmbedding.create(VSEConfig(image=image, dimension=4, text=GRUConfig(min_count=1)), CAPTIONS)
    before = os.umask(0o027)
    try:
        model.save_pretrained(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "model").iterdir()}
    assert modes == dict.fromkeys(FILES | {"preprocessing.json"}, 0o640)
    np.testing.assert_array_equal(
        load(tmp_path / "model", "cpu").encode_text(CAPTIONS), model.eval().encode_text(CAPTIONS)
    )
