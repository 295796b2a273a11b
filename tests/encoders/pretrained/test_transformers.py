"""CLIP and SigLIP of transformers. Also tests rungwise.encoders.pretrained._towers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.encoders.pretrained._transformers import image_tower, load_tokenizer, open_image, open_text, text_tower
from rungwise.models import JointEmbedding, load
from tests.published import CAPTIONS, Published, opened, photos

transformers = pytest.importorskip("transformers")


def own_vectors(folder: Path, **text: Any) -> tuple[np.ndarray, np.ndarray]:
    """Vectors by the library's whole path, of length 1."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    with torch.inference_mode():
        images = model.get_image_features(**processor(images=opened(photos()), return_tensors="pt")).pooler_output
        words = processor(text=list(CAPTIONS), truncation=True, max_length=16, return_tensors="pt", **text)
        texts = model.get_text_features(**words).pooler_output
    return tuple(torch.nn.functional.normalize(one, dim=-1).numpy() for one in (images, texts))  # type: ignore[return-value]


def changed(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    said = json.loads(file.read_text())
    change(said)
    file.write_text(json.dumps(said))


@pytest.fixture
def clip(published: Published, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(published.clip, tmp_path / "clip")


@pytest.fixture
def siglip(published: Published, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(published.siglip2, tmp_path / "siglip")


@pytest.mark.parametrize("name", ["clip", "siglip2", "naflex"])
def test_vectors_are_those_of_the_library(name: str, published: Published) -> None:
    folder = getattr(published, name)
    images, texts = own_vectors(folder, padding=True if name == "clip" else "max_length")
    model = load(f"hf:{folder}", "cpu")
    assert model.encode_image(photos()).vectors == pytest.approx(images, abs=1e-5)
    assert model.encode_text(CAPTIONS) == pytest.approx(texts, abs=1e-5)


def test_vectors_are_those_of_the_library_where_texts_are_filled_up_on_the_left_and_masked(siglip: Path) -> None:
    changed(siglip / "tokenizer_config.json", lambda said: said.update(padding_side="left"))
    changed(
        siglip / "tokenizer_config.json", lambda said: said.update(model_input_names=["input_ids", "attention_mask"])
    )
    texts = own_vectors(siglip, padding="max_length")[1]
    model = load(f"hf:{siglip}", "cpu")
    assert (model.text_encoder.rules.side, model.text_encoder.rules.masked) == ("left", True)
    assert model.encode_text(CAPTIONS) == pytest.approx(texts, abs=1e-5)


def test_a_text_of_siglip_does_not_depend_on_its_neighbours(published: Published) -> None:
    model = load(f"hf:{published.siglip2}", "cpu")
    together = model.encode_text(CAPTIONS)
    assert np.concatenate([model.encode_text([one]) for one in CAPTIONS]) == pytest.approx(together, abs=1e-6)


def test_texts_that_are_cut_are_counted_and_keep_their_end(published: Published) -> None:
    model = load(f"hf:{published.clip}", "cpu")
    own = transformers.AutoTokenizer.from_pretrained(published.clip)
    lengths = [len(own(text)["input_ids"]) for text in CAPTIONS]
    assert model.too_long(CAPTIONS).tolist() == [place for place, length in enumerate(lengths) if length > 16]
    assert model.text_encoder.tokenise(CAPTIONS) == own(list(CAPTIONS), truncation=True, max_length=16)["input_ids"]
    assert model.longest_text == 16


def test_old_configurations_that_say_a_tower_twice_mean_the_second(clip: Path) -> None:
    def twice(said: dict[str, Any]) -> None:
        said["text_config_dict"] = {"num_hidden_layers": said["text_config"].pop("num_hidden_layers")}
        said["text_config"]["hidden_act"] = "quick_gelu"

    before = load(f"hf:{clip}", "cpu").fingerprint
    changed(clip / "config.json", twice)
    assert load(f"hf:{clip}", "cpu").fingerprint == before


def test_positions_in_old_checkpoints_are_passed_over(clip: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(clip / "model.safetensors")
    tensors["text_model.embeddings.position_ids"] = torch.arange(16)[None]
    save_file(tensors, clip / "model.safetensors")
    assert open_text(clip).tower.width == 24


def test_the_activation_is_part_of_the_fingerprint(clip: Path) -> None:
    before = load(f"hf:{clip}", "cpu")
    changed(clip / "config.json", lambda said: said["vision_config"].update(hidden_act="gelu"))
    after = load(f"hf:{clip}", "cpu")
    assert after.fingerprint != before.fingerprint
    assert after.backbone.fingerprint() != before.backbone.fingerprint()


def spoilt(file: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda folder: changed(folder / file, change)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "no preprocessing": (
        lambda folder: (folder / "preprocessor_config.json").unlink(),
        "does not say how pictures are prepared",
    ),
    "no tokenizer": (
        lambda folder: [file.unlink() for file in folder.glob("tokenizer*")],
        "has no tokenizer",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no weights here"),
    "pickled weights": (
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
        "weights as a pickle",
    ),
    "another family": (
        spoilt("config.json", lambda said: said.update(model_type="blip")),
        "model_type 'blip' is not read",
    ),
    "too many layers": (
        spoilt("config.json", lambda said: said["text_config"].update(num_hidden_layers=10**6)),
        "text_config: num_hidden_layers",
    ),
    "more layers than there are": (
        spoilt("config.json", lambda said: said["vision_config"].update(num_hidden_layers=3)),
        "16 tensors are missing",
    ),
    "a wider tower": (
        spoilt("config.json", lambda said: said["vision_config"].update(hidden_size=64)),
        "the files belong to different models",
    ),
    "heads that do not divide": (
        spoilt("config.json", lambda said: said["text_config"].update(num_attention_heads=5)),
        "not a multiple of the number of attention heads",
    ),
    "an activation that is none": (
        spoilt("config.json", lambda said: said["text_config"].update(hidden_act="os.system")),
        "text_config: hidden_act",
    ),
    "no end of a text": (
        spoilt("config.json", lambda said: said["text_config"].update(eos_token_id=None)),
        "text_config: eos_token_id is missing",
    ),
    "a text for a tower": (spoilt("config.json", lambda said: said.update(text_config="x")), "text_config: expected"),
    "another end": (
        spoilt("config.json", lambda said: said["text_config"].update(eos_token_id=7)),
        "its eos token has the number",
    ),
    "a class to import": (
        spoilt("tokenizer_config.json", lambda said: said.update(tokenizer_class="os.System")),
        "tokenizer_class 'os.System' is not read",
    ),
    "a pattern without end": (
        spoilt(
            "tokenizer.json",
            lambda said: said.update(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+"}}),
        ),
        "repeats a repetition",
    ),
    "padding on the left": (
        spoilt("tokenizer_config.json", lambda said: said.update(padding_side="left")),
        "fills up on the left",
    ),
    "a list for a configuration": (lambda folder: (folder / "config.json").write_text("[]"), "expected a JSON object"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_folder_is_refused_in_one_line(case: str, clip: Path) -> None:
    spoil, said = REFUSED[case]
    spoil(clip)
    with pytest.raises(UserError, match=said) as refused:
        load(f"hf:{clip}", "cpu")
    assert "\n" not in str(refused.value)


def test_the_tokenizer_of_another_model_is_refused(clip: Path, siglip: Path) -> None:
    for file in ("tokenizer.json", "tokenizer_config.json"):
        kept = (clip / file).read_bytes()
        shutil.copy(siglip / file, clip / file)
        (siglip / file).write_bytes(kept)
    for folder in (clip, siglip):
        with pytest.raises(UserError, match="the tokenizer belongs to another model"):
            load(f"hf:{folder}", "cpu")


def test_truncated_weights_are_refused(clip: Path) -> None:
    file = clip / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load(f"hf:{clip}", "cpu")


def test_numbers_that_are_none_are_refused(clip: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(clip / "model.safetensors")
    tensors["visual_projection.weight"][0, 0] = torch.nan
    save_file(tensors, clip / "model.safetensors")
    with pytest.raises(UserError, match="visual_projection.weight: holds NaN"):
        open_image(clip)


def test_the_first_siglip_is_read_by_the_rules_of_its_file(published: Published, siglip: Path) -> None:
    """Its tokenizer's class needs sentencepiece, which is not installed."""
    changed(siglip / "tokenizer_config.json", lambda said: said.update(tokenizer_class="SiglipTokenizer"))
    assert load_tokenizer(siglip)("a dog")["input_ids"] == load_tokenizer(published.siglip2)("a dog")["input_ids"]


def test_a_tower_is_made_again_from_its_description(published: Published) -> None:
    half, words = open_image(published.siglip2), open_text(published.siglip2)
    again = image_tower(half.tower.description.architecture, half.tower.description.settings)
    again.load_state_dict(half.tower.state_dict())
    pixels = torch.randn(2, 3, 48, 48)
    with torch.inference_mode():
        assert torch.equal(again.eval()(pixels), half.tower.eval()(pixels))
    assert text_tower("siglip", words.tower.description.settings).rows == words.tower.rows
    assert json.loads(half.tower.description.text(more=1))["more"] == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "vocab_size: is missing"),
        ({"code": "x"}, "code: unexpected, there is no such setting"),
        ({"eos_token_id": None}, r"text_encoder\.json: eos_token_id is missing"),
    ],
)
def test_a_description_holds_what_is_listed_and_no_more(
    settings: dict[str, Any], said: str, published: Published
) -> None:
    known = open_text(published.clip).tower.description.settings if settings else {}
    with pytest.raises(UserError, match=said):
        text_tower("clip", {**known, **settings}, "text_encoder.json")


def test_fields_of_the_library_that_are_not_listed_shape_no_network() -> None:
    """A field that the library adds is looked at before a model that sets it is read."""
    from rungwise.encoders.untrusted import TransformerText, TransformerVision

    idle = {
        "bos_token_id",
        "pad_token_id",
        "initializer_range",
        "initializer_factor",
        "projection_dim",
        "projection_size",
        "vision_use_head",
    }
    base = set(transformers.PreTrainedConfig.__dataclass_fields__)
    for config, listed in (
        (transformers.CLIPTextConfig, TransformerText),
        (transformers.SiglipTextConfig, TransformerText),
        (transformers.CLIPVisionConfig, TransformerVision),
        (transformers.SiglipVisionConfig, TransformerVision),
        (transformers.Siglip2TextConfig, TransformerText),
        (transformers.Siglip2VisionConfig, TransformerVision),
    ):
        known = set(listed.__dataclass_fields__) | idle | base
        assert set(config.__dataclass_fields__) <= known


def test_siglip_2_reads_lower_case_whatever_tokenizer_its_folder_names(published: Published, tmp_path: Path) -> None:
    as_published = tmp_path / "siglip2"
    shutil.copytree(published.siglip2, as_published)
    settings = as_published / "tokenizer_config.json"
    said = json.loads(settings.read_text())
    settings.write_text(json.dumps(said | {"tokenizer_class": "GemmaTokenizer"}))
    model, other = (load(f"hf:{folder}", "cpu") for folder in (as_published, published.siglip2))
    assert isinstance(model, JointEmbedding)
    first, second = model.text_encoder.tokenise(["Two DOGS running", "two dogs running"])
    assert first == second
    assert model.fingerprint == other.fingerprint
