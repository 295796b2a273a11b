"""Also tests rungwise.models._encoder_pair, rungwise.models._dual_encoder and rungwise.models.joint._config."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from rungwise.core import UserError, identity
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import AdapterHead, FeatureConfig, LinearHead, TextFeatureConfig
from rungwise.encoders._heads import MLPHead, StackHead
from rungwise.encoders.images import ImageConfig, pixel_rows
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig, load
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine

NAMED = {"cosine": Cosine(), "inner": Inner(), "order": Order(), "shifted_cosine": ShiftedCosine()}
CAPTIONS = ["a red dog", "a blue cat", "two dogs and a cat"]


def make(frozen: bool = True, similarity: str = "cosine", dimension: int = 6) -> JointEmbedding:
    torch.manual_seed(0)
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32, frozen=frozen)
    config = VSEConfig(
        image=image, text=GRUConfig(word_dimension=5, min_count=1), dimension=dimension, similarity=NAMED[similarity]
    )
    return JointEmbedding.create(config, CAPTIONS).eval()


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    draw = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path in paths:
        Image.fromarray(draw.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return paths


@pytest.mark.parametrize("frozen", [True, False])
def test_saved_and_loaded_it_encodes_alike(frozen: bool, pictures: list[Path], tmp_path: Path) -> None:
    model = make(frozen)
    model.save_pretrained(tmp_path / "model", {"data": "nothing", "seed": 3})
    assert JointEmbedding.from_pretrained(tmp_path / "model").provenance == {"data": "nothing", "seed": 3}
    again = load(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    images, cache = [m.encode_image(pictures, cache=tmp_path / "cache") for m in (model, again)], tmp_path / "cache"
    np.testing.assert_array_equal(images[0].vectors, images[1].vectors)
    np.testing.assert_array_equal(model.encode_text(CAPTIONS), again.encode_text(CAPTIONS))
    assert cache.exists() == frozen
    assert not list((tmp_path / "model").glob("*.bin"))


def test_files_and_bytes_give_the_same_vectors(pictures: list[Path], tmp_path: Path) -> None:
    model = make()
    from_files = model.encode_image(pictures, cache=tmp_path / "cache").vectors
    from_bytes = model.encode_image([path.read_bytes() for path in pictures], batch=2).vectors
    np.testing.assert_allclose(from_files, from_bytes, atol=1e-5)


def test_vectors_have_unit_length_where_the_similarity_says_so(pictures: list[Path], tmp_path: Path) -> None:
    for similarity, unit in (("cosine", True), ("inner", False)):
        model = make(similarity=similarity)
        norms = np.linalg.norm(model.encode_image(pictures, cache=tmp_path / "cache").vectors, axis=1)
        assert np.allclose(norms, 1, atol=1e-5) == unit
        assert np.allclose(np.linalg.norm(model.encode_text(CAPTIONS), axis=1), 1, atol=1e-5)


def test_order_and_batches_of_texts_do_not_matter() -> None:
    model = make()
    texts = [*CAPTIONS, "", "a", "unheard of words " * 9]
    together = model.encode_text(texts)
    for position, text in enumerate(texts):
        np.testing.assert_allclose(model.encode_text([text])[0], together[position], atol=1e-6)
    np.testing.assert_allclose(model.encode_text(texts, batch=2), together, atol=1e-6)


def test_unreadable_pictures_are_reported(pictures: list[Path], tmp_path: Path) -> None:
    encoded = make().encode_image([b"no picture", pictures[0].read_bytes()])
    assert encoded.kept.tolist() == [1]
    assert encoded.issues[0].where == "<uploaded picture>"
    none = make().encode_image([b"no picture"])
    assert none.vectors.shape == (0, 6)


def test_a_frozen_backbone_stays_frozen_in_training() -> None:
    model = make().train()
    assert not model.backbone.training
    assert not any(parameter.requires_grad for parameter in model.backbone.parameters())
    assert make(frozen=False).train().backbone.training


def test_linear_layer_starts_as_published() -> None:
    model = make(dimension=256)
    bound = (6 / (model.backbone.features + 256)) ** 0.5
    weight = model.image_projection.weight.detach()
    assert bound * 0.98 < float(weight.abs().max()) <= bound
    assert float(model.image_projection.bias.detach().abs().max()) == 0
    assert float(model.text_encoder.words.weight.detach().abs().max()) <= 0.1


def test_mixed_up_folders_are_refused(tmp_path: Path) -> None:
    make().save_pretrained(tmp_path / "six")
    make(dimension=7).save_pretrained(tmp_path / "seven")
    (tmp_path / "six" / "model.safetensors").write_bytes((tmp_path / "seven" / "model.safetensors").read_bytes())
    with pytest.raises(UserError, match=r"image_projection.bias: \(7,\), but config.json asks for \(6,\)"):
        load(tmp_path / "six", altered=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "not valid JSON"),
        ("config.json", json.dumps({"format": 99}), "model format 99"),
        ("preprocessing.json", None, "preprocessing.json: missing"),
        ("tokenizer.json", None, "tokenizer.json: missing"),
        ("model.safetensors", None, "no such weights file"),
    ],
)
def test_a_damaged_folder_has_one_line(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        load(tmp_path, altered=text is not None)
    assert "\n" not in str(caught.value)


def test_no_model_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no model here"):
        load(tmp_path)

    def offline(name: str, **_: object) -> str:
        raise OSError("the network is unreachable")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(UserError, match="absent/model: no such folder, and no model of that name could be fetched"):
        load("absent/model")


def test_a_hub_repository_is_read_like_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make()
    model.save_pretrained(tmp_path / "snapshot")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(tmp_path / "snapshot"))
    assert load("somebody/model").fingerprint == model.fingerprint


def test_an_extra_tensor_is_refused(tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(tensors | {"head.weight": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"head.weight"):
        load(tmp_path, altered=True)


def test_encoding_in_the_middle_of_training_uses_and_changes_no_batch_statistics(
    pictures: list[Path], tmp_path: Path
) -> None:
    model = make(frozen=False)
    expected = model.encode_image(pictures).vectors
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.train()
    rows = pixel_rows(model.backbone.preprocessing, pictures, tmp_path / "cache")
    np.testing.assert_allclose(model.encode_rows(rows), expected, atol=1e-6)
    np.testing.assert_allclose(model.encode_image(pictures).vectors, expected, atol=1e-6)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("frozen", [True, False])
def test_a_picture_is_read_first_and_encoded_later(frozen: bool, pictures: list[Path]) -> None:
    model = make(frozen)
    picture = pictures[0].read_bytes()
    encode = model.prepare_image(picture)
    np.testing.assert_array_equal(encode().vectors, model.encode_image([picture]).vectors)
    assert encode().kept.tolist() == [0]
    with pytest.raises(UserError, match="not a picture"):
        model.prepare_image(b"no picture")


def test_rows_of_features_may_stand_on_both_sides(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows, words = FeatureRows(draw.normal(size=(3, 5))), FeatureRows(draw.normal(size=(4, 2)))
    data = ImageCaptions(("a", "b", "c"), ("", "", "", ""), np.array([0, 1, 2, 2]), features=rows, text_features=words)
    config = VSEConfig(
        image=FeatureConfig(), text=TextFeatureConfig(), dimension=6, text_head=MLPHead(hidden=(4,), activation="tanh")
    )
    model = JointEmbedding.create(config, data.texts, data.features).eval()
    scores = model.on(data)
    assert scores.block([0, 1, 2], [0, 1, 2, 3]).shape == (3, 4)
    pairs = model.read(data, np.arange(3))
    torch.testing.assert_close(
        model.embed(model.batch(pairs, np.array([3])))[1].detach().numpy(), model.encode_text(words.take([3]))
    )
    np.testing.assert_allclose(model.scores_of(pairs).block([2], [1]), scores.block([2], [1]), rtol=1e-5)
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model", "cpu")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_text(words), model.encode_text(words))
    assert [(one.reads_pictures, one.reads_words) for one in (again, make())] == [(False, False), (True, True)]
    with pytest.raises(UserError, match="reads no words"):
        model.encode_text(["a dog"])
    with pytest.raises(UserError, match="shape"):
        model.encode_text(FeatureRows(np.zeros((1, 3))))
    with pytest.raises(UserError, match="in place of texts"):
        make().encode_text(words)


def test_what_decides_a_vector_is_in_the_identity() -> None:
    plain = identity(make().config)
    assert (plain["kind"], plain["image_head"]["kind"], plain["text_head"]["kind"]) == ("vse", "linear", "none")
    assert not {"weights", "frozen"} & plain["image"].keys()
    assert identity(replace(make().config, text_head=MLPHead()))["text_head"]["kind"] == "mlp"


IMAGE_OPTIONS = [
    ({"pool": "regions"}, True),
    ({"pool": "flatten"}, False),
    ({"crops": "10C"}, True),
    ({"crops": "10C"}, False),
    ({"crops": "RC"}, True),
    ({"crops": "RC", "resize": "square", "mirrored": False}, False),
    ({"mirrored": True}, True),
    ({"mirrored": True}, False),
    ({"batch_norm": "frozen"}, False),
    ({"resize": "long_side"}, True),
]


@pytest.mark.parametrize(("options", "frozen"), IMAGE_OPTIONS)
def test_every_image_option_is_trained_saved_and_loaded(
    options: dict[str, object], frozen: bool, pictures: list[Path], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    image = replace(make(frozen).config.image, **options)
    text = GRUConfig(word_dimension=5, min_count=1)
    model = JointEmbedding.create(VSEConfig(image=image, text=text, dimension=6), CAPTIONS)
    ids = tuple(path.name for path in pictures)
    data = ImageCaptions(ids, (*CAPTIONS, "a", "dog"), np.arange(5), paths=tuple(pictures))
    pairs = model.read(data, np.arange(5), cache=tmp_path / "cache")
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=1e-3)
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    model.train()
    for seed in (1, 2):
        torch.manual_seed(seed)
        images, texts = model.embed(model.batch(pairs, np.arange(5)))
        (images * texts).sum().backward()
        optimizer.step()
    changed = {name for name, tensor in model.named_parameters() if not torch.equal(tensor, before[name])}
    assert any(name.startswith("backbone") for name in changed) == (not frozen)
    draws = model.backbone.preprocessing.draws
    seen = [model.batch(pairs, np.arange(5)).rows for _ in range(2)]
    assert torch.equal(*seen) == (not draws)
    assert (seen[0].dtype == torch.uint8) == (draws or not frozen)
    model.eval()
    vectors = model.encode_image(pictures, cache=tmp_path / "cache").vectors
    np.testing.assert_allclose(model.encode_rows(pairs.rows), vectors, atol=1e-5)
    np.testing.assert_allclose(model.encode_image([one.read_bytes() for one in pictures]).vectors, vectors, atol=1e-5)
    np.testing.assert_allclose(model.prepare_image(pictures[0].read_bytes())().vectors, vectors[:1], atol=1e-5)
    model.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.encode_image(pictures, cache=tmp_path / "cache").vectors, vectors)


def test_a_model_with_heads_on_top_of_each_other_has_a_fingerprint(tmp_path: Path) -> None:
    head = StackHead(of=(LinearHead(), AdapterHead(hidden=2)))
    config = VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4, image_head=head)
    model = JointEmbedding.create(config, ["a dog"])
    model.save_pretrained(tmp_path / "model")
    assert JointEmbedding.from_pretrained(tmp_path / "model", "cpu").fingerprint == model.fingerprint
