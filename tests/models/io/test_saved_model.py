"""Models as folders: dispatch on the kind, folders of the first programs, and folders that somebody damaged."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from rungwise.core import UserError, from_plain
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import (
    JointEmbedding,
    ModelConfig,
    PairScorer,
    SavedModel,
    VSEConfig,
    family,
    load,
    load_dual_encoder,
)
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine, Similarity
from rungwise.training.config import TrainConfig

CAPTIONS = ["a red dog", "a blue cat"]
COSINE = Cosine()


@dataclass(frozen=True)
class LengthsConfig(ModelConfig):
    kind: Literal["lengths"] = "lengths"
    unit: float = 1.0


class Lengths(SavedModel):
    """A pair scorer without vectors: how alike the numbers of bytes and of letters are."""

    kind, config_type = "lengths", LengthsConfig

    def __init__(self, config: LengthsConfig) -> None:
        super().__init__()
        self.config, self.provenance = config, {}
        self.weight = nn.Parameter(torch.ones(1))

    @classmethod
    def restore(cls, config: Any, folder: Any) -> "Lengths":
        return cls(config)

    def block(self, images: Any, captions: Any) -> np.ndarray:
        sizes = np.array([len(image) for image in images], np.float32)
        apart = abs(sizes[:, None] - np.array([len(text) for text in captions], np.float32))
        return float(self.weight.detach()) * -apart / np.float32(self.config.unit)


def reading_pictures(similarity: Similarity = COSINE, width: int = 6) -> JointEmbedding:
    """Every weight is set by a rule, so that nothing depends on a random generator."""
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    text = GRUConfig(word_dimension=5, min_count=1)
    return _ruled(JointEmbedding.create(VSEConfig("vse", image, text, width, similarity), CAPTIONS))


def reading_features(width: int = 3, **config: Any) -> JointEmbedding:
    text = GRUConfig(word_dimension=5, min_count=1)
    settings = VSEConfig(image=FeatureConfig(width=width), text=text, dimension=4)
    return _ruled(JointEmbedding.create(replace(settings, **config), CAPTIONS))


def _ruled(model: JointEmbedding) -> JointEmbedding:
    for number, (_, tensor) in enumerate(sorted(model.state_dict().items())):
        if tensor.is_floating_point():
            values = (torch.arange(tensor.numel()) * 7 + number * 3) % 11 - 5
            tensor.copy_(values.reshape(tensor.shape) / 16)
        else:
            tensor.zero_()
    return model.eval()


def edited(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite config.json."""
    facts = json.loads((folder / "config.json").read_text())
    answer = change(facts)
    (folder / "config.json").write_text(json.dumps(facts if answer is None else answer))


def one_line(folder: Path) -> str:
    """What a refused folder says, whose files are taken as they are: their values are checked all the same."""
    with pytest.raises(UserError) as caught:
        load(folder, "cpu", altered=True)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    assert len(message) < 1000
    return message


def test_the_kind_says_which_class_is_loaded(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path / "vse")
    Lengths(LengthsConfig(unit=2.0)).save_pretrained(tmp_path / "lengths")
    assert type(load(tmp_path / "vse")) is JointEmbedding
    scorer = load(tmp_path / "lengths")
    assert type(scorer) is Lengths
    assert scorer.config == LengthsConfig(unit=2.0)
    assert scorer.block([b"abc"], ["abcd", "a"]).tolist() == [[-0.5, -1.0]]
    assert not scorer.training


def test_a_pair_scorer_is_no_dual_encoder(tmp_path: Path) -> None:
    Lengths(LengthsConfig()).save_pretrained(tmp_path / "lengths")
    with pytest.raises(UserError, match="a model of kind 'lengths' scores pairs and gives no vectors"):
        load_dual_encoder(tmp_path / "lengths")
    with pytest.raises(UserError, match="a model of kind 'lengths', not 'vse'; use rungwise.models.load"):
        JointEmbedding.from_pretrained(tmp_path / "lengths")
    reading_features().save_pretrained(tmp_path / "vse")
    assert load_dual_encoder(tmp_path / "vse").dimension == 4
    assert isinstance(load(tmp_path / "lengths"), PairScorer)


def test_the_fingerprint_tells_what_decides_a_vector() -> None:
    same = reading_features()
    assert same.fingerprint == reading_features().fingerprint
    others = [
        reading_features(similarity=Order()),
        reading_features(similarity=Order(root=True)),
        reading_features(similarity=Order(absolute=True)),
        reading_features(similarity=ShiftedCosine()),
        reading_features(image=FeatureConfig(width=3, l2_normalise=False)),
        reading_features(width=2),
        reading_pictures(width=4),
    ]
    moved = reading_features()
    moved.image_projection.bias.data[0] += 1e-6
    assert len({one.fingerprint for one in [same, moved, *others]}) == len(others) + 2


def test_the_default_fingerprint_knows_kind_configuration_files_and_weights() -> None:
    class Wordy(Lengths):
        kind = "wordy"

    class Other(Lengths):
        kind = "other lengths"

        def files(self) -> dict[str, str]:
            return {"words.txt": "a b"}

    moved = Lengths(LengthsConfig())
    moved.weight.data[0] = 2
    models = [
        Lengths(LengthsConfig()),
        Lengths(LengthsConfig(unit=2.0)),
        Wordy(LengthsConfig()),
        Other(LengthsConfig()),
    ]
    assert len({one.fingerprint for one in [*models, moved]}) == 5
    assert Lengths(LengthsConfig()).fingerprint == models[0].fingerprint


@pytest.mark.parametrize(
    "similarity", [Cosine(), Inner(), Order(), Order(root=True, absolute=True), ShiftedCosine()], ids=str
)
def test_similarity_with_its_options_is_saved(similarity: Similarity, tmp_path: Path) -> None:
    model = reading_features(similarity=similarity)
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert again.similarity == similarity
    assert again.fingerprint == model.fingerprint


def test_provenance_is_kept_when_a_loaded_model_is_saved_again(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path / "one", {"data": "scenes", "validation": {"rsum": 312.5}})
    load(tmp_path / "one").save_pretrained(tmp_path / "two")
    assert load(tmp_path / "two").provenance == {"data": "scenes", "validation": {"rsum": 312.5}}
    assert "rsum: 312.5" in (tmp_path / "two" / "README.md").read_text()
    load(tmp_path / "two").save_pretrained(tmp_path / "two", {})
    assert load(tmp_path / "two").provenance == {}
    edited(tmp_path / "one", lambda facts: facts.update(provenance=["a list"]))
    assert load(tmp_path / "one", altered=True).provenance == {}


def test_the_device_is_chosen_and_checked_before_anything_is_read(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    assert load(tmp_path, device="cpu").device == torch.device("cpu")
    with pytest.raises(UserError, match="device 'abacus' is unknown"):
        load(tmp_path / "nowhere", device="abacus")


def nested(depth: int) -> str:
    return '{"format": 1, "model": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "expected a JSON object"),
        ("null", "expected a JSON object"),
        ("", "not valid JSON"),
        (nested(100_000), "not valid JSON"),
        ('{"format": 1, "model": {"dimension": ' + "9" * 5000 + "}}", "not valid JSON"),
        ('{"format": 1, "kind": "vse"}', "expected a mapping of settings, found NoneType"),
        ('{"format": 1, "kind": "vse", "model": []}', "expected a mapping of settings, found list"),
        ('{"format": "1", "model": {}}', "model format '1', this version reads 1"),
        ('{"format": 1, "kind": null, "model": {}}', "kind: no model family None; there are .*vse"),
        ('{"format": 1, "kind": ["vse"], "model": {}}', r"kind: no model family \['vse'\]; there are .*vse"),
        ('{"format": 1, "kind": "from elsewhere", "model": {}}', "no model family 'from elsewhere'; there are .*vse"),
        ('{"format": 1, "kind": "", "model": {}}', "no model family ''; there are .*vse"),
    ],
)
def test_a_broken_config_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    assert re.search(message, one_line(tmp_path))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("dimension", 0, "dimension"),
        ("dimension", -4, "dimension"),
        ("dimension", 10**15, "dimension"),
        ("dimension", 10**30, "dimension"),
        ("dimension", float("nan"), "NaN is no number"),
        ("dimension", 5, r"image_projection.bias: \(4,\), but config.json asks for \(5,\)"),
        ("kind", "lengths", "kind"),
        ("colour", "blue", "colour"),
        ("similarity", "hamming", "similarity"),
        ("similarity", {"kind": "order", "root": "perhaps"}, "similarity.order.root"),
        ("similarity", {"kind": "cosine", "root": True}, "similarity.cosine.root"),
        ("text", None, "text"),
        ("text.word_dimension", 0, "text.*word_dimension"),
        ("text.word_dimension", -1, "text.*word_dimension"),
        ("text.word_dimension", 10**15, "text.*word_dimension"),
        ("image", "features", "image"),
        ("image.kind", "smells", "image"),
        ("image.width", float("nan"), "NaN is no number"),
        ("image.width", float("inf"), "Infinity is no number"),
        ("image.width", -3, "width"),
        ("image.width", 0, "width"),
        ("image.width", 10**30, "width"),
        ("image.width", 10**15, "width"),
        ("image.width", None, "width"),
        ("image.width", "wide", "width"),
        ("image.width", 7, "image_projection.weight"),
    ],
)
def test_a_hostile_setting_is_one_line(place: str, value: object, message: str, tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)

    def change(facts: dict[str, Any]) -> None:
        *above, last = place.split(".")
        inner = facts["model"]
        for name in above:
            inner = inner[name]
        inner[last] = value

    edited(tmp_path, change)
    assert re.search(message, one_line(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backbone", "no such network"),
        ("backbone", 5),
        ("options", {"depth": "deep"}),
        ("options", {"no_such_option": 1}),
        ("options", []),
        ("pool", "deep end"),
        ("size", "large"),
        ("mean", [0.5, 0.5]),
        ("crop", "centre"),
        ("interpolation", "guess"),
    ],
)
def test_a_hostile_backbone_is_one_line(name: str, value: object, tmp_path: Path) -> None:
    reading_pictures().save_pretrained(tmp_path)
    edited(tmp_path, lambda facts: facts["model"]["image"].update({name: value}))
    one_line(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 0),
        ("size", -1),
        ("size", 10**9),
        ("size", 10**30),
        ("crop", 0.0),
        ("crop", 1e-9),
        ("crop", float("nan")),
        ("mean", [1.0]),
        ("std", None),
        ("std", [1.0, 0.0, 1.0]),
        ("blur", 1),
    ],
)
def test_hostile_preprocessing_is_one_line(name: str, value: object, tmp_path: Path) -> None:
    reading_pictures().save_pretrained(tmp_path)
    path = tmp_path / "preprocessing.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    assert ("NaN is no number" if value != value else name) in one_line(tmp_path)


def test_tensors_must_be_those_of_the_configuration(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    first = "image_projection.bias"
    save_file({name: one for name, one in tensors.items() if name != first}, file)
    assert "image_projection.bias: no such tensor, but config.json asks for (4,)" in one_line(tmp_path)
    save_file(tensors | {"zzz": torch.zeros(2)}, file)
    assert "zzz: (2,), but config.json asks for no such tensor" in one_line(tmp_path)
    save_file(tensors | {first: torch.zeros(4, 1)}, file)
    assert "image_projection.bias: (4, 1), but config.json asks for (4,)" in one_line(tmp_path)
    save_file(tensors | {first: torch.zeros(4, dtype=torch.int64)}, file)
    assert "image_projection.bias: (4,) of torch.int64, but config.json asks for (4,)" in one_line(tmp_path)
    save_file({name: one.to(torch.bfloat16) for name, one in tensors.items()}, file)
    assert load(tmp_path, "cpu", altered=True).image_projection.bias.dtype == torch.float32


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x05", (2**62).to_bytes(8, "little") + b"{}", None])
def test_weights_that_are_no_safetensors_are_one_line(content: bytes | None, tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    assert "safetensors" in one_line(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff\xfe\x00", b'{"version": "1.0"}', b'{"model": {"type": "WordLevel"}}', None]
)
def test_a_vocabulary_that_is_none_is_one_line(content: bytes | None, tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    assert "tokenizer.json" in one_line(tmp_path)


def test_word_numbers_beyond_the_table_are_refused(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    words = json.loads(file.read_text())
    words["model"]["vocab"]["dog"] = 4000
    file.write_text(json.dumps(words))
    assert "tokenizer.json" in one_line(tmp_path)


def test_files_that_are_folders_are_one_line(tmp_path: Path) -> None:
    reading_features().save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    assert "no model here" in one_line(tmp_path)


def test_a_configuration_names_any_family() -> None:
    assert from_plain(TrainConfig, {"model": "lengths"}, "run.yaml").model == LengthsConfig()
    assert from_plain(TrainConfig, {"model": {"kind": "lengths", "unit": 2}}, "run.yaml").model.unit == 2.0
    assert from_plain(TrainConfig, {"model": {"dimension": 7}}, "run.yaml").model == VSEConfig(dimension=7)
    for value in ("nobody", {"kind": "nobody"}, ["vse"], 5, {"kind": ["vse"]}):
        with pytest.raises(UserError, match="run.yaml: model: .*") as caught:
            from_plain(TrainConfig, {"model": value}, "run.yaml")
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="run.yaml: model"):
        from_plain(TrainConfig, {"model": {"kind": "lengths", "units": 2}}, "run.yaml")
    assert family("lengths") is Lengths


def test_a_saved_model_names_no_folder_of_the_machine_that_made_it(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "words.txt").write_text("dog 1 2 3\n")
    text = GRUConfig(3, 1, word_vectors=str(tmp_path / "secret" / "words.txt"))
    model = JointEmbedding.create(VSEConfig(image=FeatureConfig(width=3), text=text, dimension=4), ["a dog"])
    model.save_pretrained(tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        assert str(tmp_path).encode() not in file.read_bytes(), file.name
    again = load(tmp_path / "model", "cpu")
    assert again.config.text.word_vectors == "words.txt"  # type: ignore[attr-defined]
    assert again.fingerprint == model.fingerprint
