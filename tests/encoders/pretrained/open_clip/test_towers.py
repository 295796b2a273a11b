"""Models of open_clip.

Also tests rungwise.encoders.pretrained.open_clip._tower_settings and rungwise.encoders.pretrained.open_clip._texts.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rungwise.core import UserError
from rungwise.encoders.pretrained.open_clip import cleaner
from rungwise.encoders.pretrained.open_clip._texts import own_rules
from rungwise.encoders.pretrained.open_clip._tower_settings import OpenClipText, OpenClipVision
from rungwise.encoders.pretrained.open_clip.towers import PATTERNS
from rungwise.encoders.untrusted import PretrainedTokenizer, TokenRules
from rungwise.models import load
from tests.published import CAPTIONS, Published, opened, photos

open_clip = pytest.importorskip("open_clip")

TEXTS = (
    *CAPTIONS,
    "",
    "  two  spaces\tand a line\n",
    "Caf\u00c3\u00a9 &amp; <b>IT'S</b> we've 12 1/2 e-mail_me #tag :-)",
    "<end_of_text> in the middle",
    "\u0130stanbul \U0001f600\u200d\U0001f52c नमस्ते",
)


@pytest.fixture
def folder(published: Published, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(published.open_clip, tmp_path / "model")


def change(folder: Path, changed: Callable[[dict[str, Any]], Any]) -> None:
    file = folder / "open_clip_config.json"
    said = json.loads(file.read_text())
    changed(said)
    file.write_text(json.dumps(said))


def own_vectors(folder: Path) -> tuple[Any, Any]:
    """Vectors by the library's whole path, of length 1."""
    model, prepare = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    words = open_clip.get_tokenizer(f"local-dir:{folder}")(list(TEXTS))
    with torch.inference_mode():
        images = model.eval().encode_image(torch.stack([prepare(one) for one in opened(photos())]), normalize=True)
        return images.numpy(), model.encode_text(words, normalize=True).numpy()


@pytest.mark.parametrize("name", ["open_clip", "open_clip_siglip"])
def test_vectors_are_those_of_the_library(name: str, published: Published) -> None:
    folder = getattr(published, name)
    images, texts = own_vectors(folder)
    model = load(f"open_clip:{folder}", "cpu")
    assert model.encode_image(photos()).vectors == pytest.approx(images, abs=1e-5)
    assert model.encode_text(TEXTS) == pytest.approx(texts, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{"proj_bias": True}, pytest.param({"pool_type": "last"}, marks=pytest.mark.slow), {"no_causal_mask": True}],
)
def test_texts_of_other_towers_are_those_of_the_library(settings: dict[str, Any], folder: Path) -> None:
    """Short texts are computed without the empty places after them where that changes nothing."""
    from safetensors.torch import load_file, save_file

    change(folder, in_part("text_cfg", **settings))
    if "proj_bias" in settings:
        file = folder / "open_clip_model.safetensors"
        tensors = load_file(file)
        tensors["text_projection.weight"] = tensors.pop("text_projection").T.contiguous()
        tensors["text_projection.bias"] = torch.randn(24)
        save_file(tensors, file)
    texts = own_vectors(folder)[1]
    model = load(f"open_clip:{folder}", "cpu")
    assert model.text_encoder.rules.padded == ("proj_bias" not in settings)
    assert model.encode_text(TEXTS) == pytest.approx(texts, abs=1e-5)


@pytest.mark.parametrize(
    "seen",
    [
        {"interpolation": "bilinear", "resize_mode": "longest", "fill_color": 77},
        {"interpolation": "random", "resize_mode": "squash", "size": 32},
        pytest.param(
            {"interpolation": "bilinear", "resize_mode": "shortest", "size": [32, 32], "mode": "RGB"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_pictures_are_prepared_as_the_configuration_says(seen: dict[str, Any], folder: Path) -> None:
    change(folder, lambda said: said["preprocess_cfg"].update(seen))
    images = own_vectors(folder)[0]
    assert load(f"open_clip:{folder}", "cpu").encode_image(photos()).vectors == pytest.approx(images, abs=1e-5)


def test_its_tokenizer_as_rules_gives_the_same_numbers() -> None:
    own = open_clip.SimpleTokenizer(context_length=77)
    rules = PretrainedTokenizer(own_rules(), TokenRules(77, 0, clean="lower"), "rules", 49408, cleaner("lower"))
    for text, tokens in zip(TEXTS, rules.tokenise(TEXTS), strict=True):
        assert tokens == own([text])[0][: len(tokens)].tolist()
        assert not own([text])[0][len(tokens) :].any()


@pytest.mark.parametrize("clean", ["whitespace", "canonicalize"])
def test_its_tokenizer_as_rules_cuts_as_it_does(clean: str) -> None:
    own = open_clip.SimpleTokenizer(context_length=8, clean=clean)
    rules = PretrainedTokenizer(own_rules(), TokenRules(8, 0, clean=clean), "rules", 49408, cleaner(clean))  # type: ignore[arg-type]
    found = [tokens + [0] * (8 - len(tokens)) for tokens in rules.tokenise(TEXTS)]
    assert found == own(list(TEXTS)).tolist()
    lengths = [2 + len(own.encode(text)) for text in TEXTS]
    assert rules.too_long(TEXTS).tolist() == [place for place, length in enumerate(lengths) if length > 8]


def test_listed_settings_are_those_of_the_library() -> None:
    """What the library adds is looked at before a model that sets it is read."""
    elsewhere = {"timm_model_pretrained", "hf_tokenizer_name", "tokenizer_kwargs", "tokenizer_mode"}
    elsewhere |= {name for name in open_clip.CLIPTextCfg.__dataclass_fields__ if name.startswith("hf_")}
    assert set(open_clip.CLIPVisionCfg.__dataclass_fields__) - elsewhere == set(OpenClipVision.__dataclass_fields__)
    assert set(open_clip.CLIPTextCfg.__dataclass_fields__) - elsewhere == set(OpenClipText.__dataclass_fields__)


def test_a_checkpoint_of_several_processes_is_read(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    before = load(f"open_clip:{folder}", "cpu").fingerprint
    file = folder / "open_clip_model.safetensors"
    save_file({f"module.{name}": tensor for name, tensor in load_file(file).items()}, file)
    assert load(f"open_clip:{folder}", "cpu").fingerprint == before


def in_model(**settings: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda said: said["model_cfg"].update(settings)


def in_part(part: str, **settings: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda said: said["model_cfg"][part].update(settings)


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no preprocessing": (lambda said: said.pop("preprocess_cfg"), "preprocess_cfg is missing"),
    "no mean": (lambda said: said["preprocess_cfg"].pop("mean"), "does not say mean"),
    "SigLIP without a mode": (in_model(init_logit_bias=-10), "does not say interpolation"),
    "unknown preprocessing": (lambda said: said["preprocess_cfg"].update(blur=3), "'blur' is not understood"),
    "no model": (lambda said: said.pop("model_cfg"), "model_cfg is missing"),
    "a decoder": (in_model(multimodal_cfg={}), "'multimodal_cfg' is not read"),
    "a repository for a tower": (
        in_part("vision_cfg", timm_model_name="hf-hub:somebody/model"), "is no name of timm's list"
    ),
    "a tower that timm has not": (in_part("vision_cfg", timm_model_name="nonesuch"), "no network can be built"),
    "another's text tower": (
        in_part("text_cfg", hf_model_name="somebody/model"),
        "hf_model_name 'somebody/model' is not read",
    ),
    "too many layers": (in_part("text_cfg", layers=10**6), "text_cfg: layers"),
    "another width": (in_part("vision_cfg", width=48), "belong to different models"),
    "another vocabulary": (in_part("text_cfg", vocab_size=30000), "belongs to another model"),
    "tokens left out at random": (
        in_part("text_cfg", tokenizer_kwargs={"reduction_mask": "random"}), "are not understood"
    ),
    "an unknown cleaning": (in_part("text_cfg", tokenizer_kwargs={"clean": "eval"}), "clean 'eval'"),
    "no tokenizer": (in_part("text_cfg", hf_tokenizer_name="somebody/model"), "has no tokenizer"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_is_refused_in_one_line(case: str, folder: Path) -> None:
    spoil, said = REFUSED[case]
    change(folder, spoil)
    with pytest.raises(UserError, match=said) as refused:
        load(f"open_clip:{folder}", "cpu")
    assert "\n" not in str(refused.value)


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "open_clip_model.safetensors").rename(folder / "open_clip_pytorch_model.bin")
    with pytest.raises(UserError, match="weights as a pickle"):
        load(f"open_clip:{folder}", "cpu")


def test_the_tokenizer_of_another_model_is_refused(published: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(published.open_clip_siglip, tmp_path / "model")
    shutil.copy(published.clip / "tokenizer.json", folder)
    shutil.copy(published.clip / "tokenizer_config.json", folder)
    with pytest.raises(UserError, match="the tokenizer belongs to another model"):
        load(f"open_clip:{folder}", "cpu")


def test_a_name_with_a_tag_is_found_in_the_cache(
    folder: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    towers = json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]
    monkeypatch.setattr(open_clip, "get_model_config", lambda name: towers)
    asked = []

    def fetched(name: str, patterns: tuple[str, ...], prefix: str = "") -> Path:
        asked.append((name, patterns, prefix))
        return folder

    monkeypatch.setattr("rungwise.encoders.pretrained.open_clip.towers.hub_folder", fetched)
    model = load("open_clip:ViT-B-32/laion2b_s34b_b79k", "cpu")
    assert set(asked) == {("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", PATTERNS, "open_clip:")}
    seen = model.backbone.preprocessing
    assert (seen.mean, seen.resize) == ((0.48145466, 0.4578275, 0.40821073), "short_side")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ViT-B-32/nonesuch", "has no weights 'nonesuch'; there are openai, "),
        ("ViT-B-32", "has no weights ''; there are openai, "),
        ("ViT-B-32/openai", "another activation; use open_clip:ViT-B-32-quickgelu/openai"),
        ("./nowhere", r"open_clip:\./nowhere: no such folder"),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(f"open_clip:{name}", "cpu")
