import copy
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.models import JointEmbedding, load
from rungwise.models.joint import import_vsepp
from rungwise.models.joint._vsepp import BACKBONES, config_of, image_side, image_tensors
from rungwise.models.joint._vsepp import _Options as Options
from rungwise.similarity import Cosine, Inner, Order
from tests.models.vsepp_program import WORDS, Images, Texts, checkpoint, options, save_vocabulary

CAPTIONS = ["A dog's dog runs.", "Two cats", "a"]
TOKENS = [[1, 4, 5, 6, 5, 7, 8, 2], [1, 9, 3, 2], [1, 4, 2]]


def imported(folder: Path, opt: Namespace, seed: int = 0, **saving: Any) -> tuple[JointEmbedding, Images, Texts]:
    torch.manual_seed(seed)
    images, texts = Images(opt).eval(), Texts(opt).eval()
    torch.save(checkpoint(images, texts, opt), folder / "model_best.pth.tar", **saving)
    return import_vsepp(folder / "model_best.pth.tar", save_vocabulary(folder / "vocab.pkl")), images, texts


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("changed", "similarity"),
    [
        ({}, Cosine()),
        ({"no_imgnorm": True}, Inner()),
        ({"measure": "order", "use_abs": True}, Order(root=True, absolute=True)),
        ({"measure": "order"}, Order(root=True)),
        ({"num_layers": 2}, Cosine()),
    ],
)
def test_features_and_captions_get_the_vectors_of_the_program(
    tmp_path: Path, changed: dict[str, Any], similarity: Any, zipped: bool
) -> None:
    opt = options(**changed)
    model, images, texts = imported(tmp_path, opt, _use_new_zipfile_serialization=zipped)
    rows = np.random.default_rng(1).random((4, 5), np.float32) * 3  # of any length: the program takes them as they are
    with torch.inference_mode():
        theirs = images(torch.from_numpy(rows)), texts(TOKENS)
    np.testing.assert_allclose(model.encode_image(FeatureRows(rows)).vectors, theirs[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(model.encode_text(CAPTIONS), theirs[1].numpy(), atol=1e-6)
    assert model.similarity == similarity


def test_an_imported_model_is_saved_and_read_as_any_other(tmp_path: Path) -> None:
    model, _, _ = imported(tmp_path, options())
    model.save_pretrained(tmp_path / "ours")
    again = load(tmp_path / "ours", "cpu")
    assert isinstance(again, JointEmbedding)
    np.testing.assert_array_equal(again.encode_text(CAPTIONS), model.encode_text(CAPTIONS))
    assert again.fingerprint == model.fingerprint
    assert again.provenance["run"]["best_rsum"] == 312.5
    assert again.provenance["run"]["max_violation"] is True


@pytest.mark.slow
def test_pictures_under_a_resnet_get_the_vectors_of_the_program(tmp_path: Path) -> None:
    model, images, _ = imported(tmp_path, options(data_name="coco", cnn_type="resnet18"))
    noise = np.random.default_rng(0).integers(0, 256, (3, 300, 260, 3), dtype=np.uint8)
    for number, pixels in enumerate(noise):
        Image.fromarray(pixels).resize((520, 400), Image.Resampling.BICUBIC).save(tmp_path / f"{number}.png")
    files = sorted(tmp_path.glob("*.png"))
    theirs = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    batch = torch.stack([theirs(Image.open(file)) for file in files])
    with torch.inference_mode():
        whole = images(batch).numpy()
        same_pixels = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8)
        of_pixels = images(model.backbone.preprocessing.normalise(same_pixels)).numpy()  # type: ignore[union-attr]
        np.testing.assert_allclose(model.embed_images(same_pixels).numpy(), of_pixels, atol=1e-6)
    ours = model.encode_image([file.read_bytes() for file in files]).vectors
    np.testing.assert_allclose(ours, whole, atol=1e-6)
    assert model.config.image.frozen


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("name", ["vgg19", "resnet152", "vgg11_bn"])
def test_the_tensors_of_large_networks_all_find_their_place(name: str, early: bool) -> None:
    opt = options(data_name="f30k", cnn_type=name, finetune=True)
    with torch.device("meta"):
        theirs = Images(opt).state_dict()
        config = config_of(Options(Path("a.pth.tar"), vars(opt)))
        ours = JointEmbedding(config, image_side(config), lambda: Stub()).state_dict()
    if early:  # as torchvision counted the layers before 2017
        later = {"cnn.classifier.0.": "cnn.classifier.1.", "cnn.classifier.3.": "cnn.classifier.4."}
        theirs = {later.get(key[:17], key[:17]) + key[17:]: tensor for key, tensor in theirs.items()}
    found = {key: tuple(tensor.shape) for key, tensor in image_tensors(theirs, config).items()}
    assert found == {key: tuple(tensor.shape) for key, tensor in ours.items()}


class Stub(torch.nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width = width


@pytest.mark.slow
def test_a_vgg_sees_pictures_as_the_program_does() -> None:
    opt = options(data_name="f8k", cnn_type="vgg11", finetune=True, embed_size=64)
    theirs = Images(opt).eval()
    config = config_of(Options(Path("a.pth.tar"), vars(opt)))
    ours = JointEmbedding(config, image_side(config), lambda: Stub(64)).eval()
    ours.load_state_dict(image_tensors(theirs.state_dict(), config))
    pixels = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8)
    with torch.inference_mode():
        wanted = theirs(ours.backbone.preprocessing.normalise(pixels)).numpy()  # type: ignore[union-attr]
        np.testing.assert_allclose(ours.embed_images(pixels).numpy(), wanted, atol=1e-6)
    assert not config.image.frozen


def test_every_listed_network_is_known_to_timm() -> None:
    import timm

    assert set(BACKBONES) <= set(timm.list_models())


def fewer_words(said: dict[str, Any]) -> None:
    said["model"][1]["embed.weight"] = said["model"][1]["embed.weight"][:-1]


def whole_numbers(said: dict[str, Any]) -> None:
    said["model"][1]["rnn.bias_hh_l0"] = torch.zeros(24, dtype=torch.int64)


def nan(said: dict[str, Any]) -> None:
    said["model"][0]["fc.bias"][0] = float("nan")


def endless(said: dict[str, Any]) -> None:
    said["model"][0]["fc.weight"] = torch.zeros(1, 1).expand(1 << 30, 1 << 30)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda said: said["opt"].__dict__.update(embed_size=9), r"image_projection\.bias: \(8,\), but .* \(9,\)"),
        (lambda said: said["opt"].__dict__.update(embed_size=1 << 20, img_dim=1 << 20), "but opt asks for"),
        (lambda said: said["opt"].__dict__.update(embed_size=1 << 60), "dimension: must be at most"),
        (lambda said: said["opt"].__dict__.update(embed_size="8"), "opt.embed_size: expected int, got '8'"),
        (lambda said: said["opt"].__dict__.pop("word_dim"), "opt.word_dim: expected int, got None"),
        (lambda said: said["opt"].__dict__.update(num_layers=2), r"_l1: no such tensor"),
        (lambda said: said["opt"].__dict__.update(num_layers=10**9), "layers: must be at most"),
        (lambda said: said["model"][1].update({"embed.weight": torch.tensor(1.0)}), "has vectors of 1"),
        (lambda said: said["opt"].__dict__.update(measure="l2"), "'l2' is neither cosine nor order"),
        (lambda said: said["opt"].__dict__.update(use_abs=True), "absolute values compared by the cosine"),
        (lambda said: said["opt"].__dict__.update(measure="order", no_imgnorm=True), "not normed cannot be imported"),
        (lambda said: said["opt"].__dict__.update(data_name="coco", cnn_type="../x"), "is none of vgg11"),
        (lambda said: said["model"][0].pop("fc.bias"), r"image_projection\.bias: no such tensor"),
        (lambda said: said["model"][0].update({"fc.more": torch.zeros(1)}), r"more: \(1,\), but .* no such tensor"),
        (lambda said: said["model"][1].pop("embed.weight"), "10 words, but .* has vectors of 0"),
        (fewer_words, "10 words, but .* has vectors of 9"),
        (whole_numbers, "numbers of type torch.int64"),
        (nan, "holds NaN or infinite numbers"),
        (endless, "claims .*, more than the file has"),
        (lambda said: said.pop("opt"), "no dictionary with the options of a run"),
        (lambda said: said["model"].pop(), "no model of two sides"),
        (lambda said: said["model"].__setitem__(0, [1]), "the image side is no table of tensors"),
        (lambda said: said["model"][0].update({"fc.weight": 3}), "'fc.weight', which is no plain tensor"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path: Path, change: Callable[[dict[str, Any]], object], line: str) -> None:
    opt = options()
    said = copy.deepcopy(checkpoint(Images(opt), Texts(opt), opt))
    change(said)
    torch.save(said, tmp_path / "a.pth.tar")
    with pytest.raises(UserError, match=line) as refused:
        import_vsepp(tmp_path / "a.pth.tar", save_vocabulary(tmp_path / "vocab.pkl"))
    assert "\n" not in str(refused.value)


def test_the_vocabulary_of_another_run_is_refused(tmp_path: Path) -> None:
    imported(tmp_path, options())
    with pytest.raises(UserError, match=r"11 words, but .* has vectors of 10; give the vocabulary of its run"):
        import_vsepp(tmp_path / "model_best.pth.tar", save_vocabulary(tmp_path / "other.pkl", (*WORDS, "cat")))
