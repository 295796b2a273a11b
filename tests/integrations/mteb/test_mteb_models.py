"""Models of mteb that lie on this machine: a tiny CLIP under a name that mteb knows."""

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import rungwise
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import FeatureRows
from rungwise.models import load
from tests.published import CAPTIONS, Published, photos

pytestmark = pytest.mark.slow  # importing mteb alone takes seconds
NAME, REVISION = "openai/clip-vit-base-patch32", "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"


@pytest.fixture(scope="module")
def ours() -> ModuleType:
    from rungwise.integrations import mteb

    return mteb


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub's client."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def clip(hub: Path, published: Published) -> Path:
    """The tiny CLIP, as the hub's client keeps the one that mteb names; a copy to spoil."""
    place = hub / f"models--{NAME.replace('/', '--')}" / "snapshots" / REVISION
    return shutil.copytree(published.clip, place)


def test_its_vectors_are_those_of_the_same_model_here(ours: ModuleType, clip: Path) -> None:
    from huggingface_hub import constants

    model, same = ours.load_mteb(NAME, "cpu"), load(f"hf:{clip}", "cpu")
    short = [one for one in CAPTIONS if len(one) < 60]  # of the long one both read the beginning, in their own ways
    pictures = photos()
    assert model.encode_image(pictures).vectors == pytest.approx(same.encode_image(pictures).vectors, abs=1e-5)
    assert model.encode_text(short) == pytest.approx(same.encode_text(short), abs=1e-5)
    assert (model.dimension, model.similarity.kind, model.kind) == (24, "cosine", "mteb")
    assert model.block(pictures, short) == pytest.approx(same.block(pictures, short), abs=1e-5)
    assert model.encode_text([]).shape == (0, 24)
    assert not constants.HF_HUB_OFFLINE


def test_unreadable_pictures_are_listed_and_progress_is_told(ours: ModuleType, clip: Path) -> None:
    model, told = ours.load_mteb(NAME, "cpu"), []
    found = model.encode_image([b"no picture", *photos()], progress=told.append)
    assert found.kept.tolist() == [1, 2, 3, 4, 5]
    assert sum(told) == 6
    assert [one.kind for one in found.issues] == ["unreadable picture"]
    assert model.encode_image([b"no picture"]).vectors.shape == (0, 24)


def test_features_are_refused_in_a_line(ours: ModuleType, clip: Path) -> None:
    model, rows = ours.load_mteb(NAME, "cpu"), FeatureRows(np.zeros((2, 3), np.float32))
    with pytest.raises(UserError, match="reads pictures, and the data have features"):
        model.encode_image(rows)
    with pytest.raises(UserError, match="reads words, and the data have features"):
        model.encode_text(rows)


def test_the_fingerprint_is_of_the_files(ours: ModuleType, clip: Path) -> None:
    first = ours.load_mteb(NAME, "cpu").fingerprint
    assert ours.load_mteb(NAME, "cpu").fingerprint == first
    said = json.loads((clip / "preprocessor_config.json").read_text())
    (clip / "preprocessor_config.json").write_text(json.dumps({**said, "image_mean": [0.4, 0.4, 0.4]}))
    assert ours.load_mteb(NAME, "cpu").fingerprint != first


def test_a_folder_of_its_name_is_taken(
    ours: ModuleType, hub: Path, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(published.clip, tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    assert ours.load_mteb(NAME, "cpu").dimension == 24


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "openai/clip-vit-base-patch23",
            r"knows no such model; did you mean openai/clip-vit-base-patch32 or openai/clip-vit-base-patch16\?",
        ),
        ("nobody", r"knows no such model; mteb.get_model_metas\(\) lists those it knows"),
        (NAME, f"is not on this machine, and nothing is fetched; on a .* hf download {NAME} --revision {REVISION}"),
        ("sentence-transformers/all-MiniLM-L6-v2", "reads text, and no image; give a model of texts and pictures"),
        ("mongodb/voyage-multimodal-3", "is a service on the network, which is not asked"),
    ],
)
def test_what_cannot_be_had_gets_a_line(name: str, line: str, ours: ModuleType, hub: Path) -> None:
    with pytest.raises(UserError, match=f"^mteb:{name}: .*{line}") as refused:
        ours.load_mteb(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "inner"])
def test_code_of_a_model_is_not_run(file: str, ours: ModuleType, clip: Path) -> None:
    place, own = clip / file.replace("inner", "config.json"), {"auto_map": {"AutoModel": "evil.Model"}}
    said: dict[str, Any] = json.loads(place.read_text())
    said.update({"text_config": {**said["text_config"], **own}} if file == "inner" else own)
    place.write_text(json.dumps(said))
    (clip / "evil.py").write_text("raise SystemExit('run')")
    with pytest.raises(UserError, match="brings code of its own, which is not run"):
        ours.load_mteb(NAME)


def test_modules_of_no_library_are_not_run(ours: ModuleType, clip: Path) -> None:
    (clip / "modules.json").write_text(json.dumps([{"type": "custom.Model"}]))
    with pytest.raises(UserError, match="brings code of its own"):
        ours.load_mteb(NAME)


def test_a_damaged_model_gets_a_line(ours: ModuleType, clip: Path) -> None:
    (clip / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserError, match="mteb cannot load it") as refused:
        ours.load_mteb(NAME)
    assert "\n" not in str(refused.value)


def test_evaluate_measures_it(ours: ModuleType, clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    rows = ["image,caption"]
    for number, file in enumerate(photos()):
        (folder / f"{number}.png").write_bytes(file)
        rows += [f"{number}.png,picture {number} {word}" for word in ("of a dog", "seen from afar")[: 1 + number % 2]]
    (folder / "captions.csv").write_text("\n".join(rows))
    assert main(["evaluate", f"mteb:{NAME}", str(folder), "--split", "all", "--out", str(tmp_path / "a.json")]) == 0
    assert "R@1" in capsys.readouterr().out
    other = rungwise.evaluate(f"hf:{clip}", folder, split="all", quiet=True)
    found = rungwise.evaluate(f"mteb:{NAME}", folder, split="all", quiet=True)
    assert found.numbers == other.numbers
    assert found.model_hash == rungwise.load(f"mteb:{NAME}", device="cpu").fingerprint
    assert main(["evaluate", "mteb:nobody", str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("rungwise evaluate: mteb:nobody: mteb ")
    assert said.count("\n") == 1
    assert main(["evaluate", f"mteb:{NAME}", str(folder), "--cache", str(tmp_path / "cache")]) == 2
    assert "--cache changes nothing for a model of mteb" in capsys.readouterr().err


def test_pictures_of_any_mode_are_read(ours: ModuleType, clip: Path, tmp_path: Path) -> None:
    model = ours.load_mteb(NAME, "cpu")
    for mode in ("L", "RGBA", "CMYK", "P", "1"):
        Image.new(mode, (9, 7)).save(tmp_path / f"{mode}.tif")
    assert len(model.encode_image(sorted(tmp_path.glob("*.tif"))).vectors) == 5
