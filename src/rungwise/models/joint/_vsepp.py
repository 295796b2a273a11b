"""Import of models that the VSE++ program (Faghri et al. 2018) trained: same weights, same words, same vectors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from rungwise.core import UserError
from rungwise.core.output import printable
from rungwise.encoders import FeatureConfig, ImageSide, Preprocessing
from rungwise.encoders.images import Backbone, ImageConfig
from rungwise.encoders.texts import GRUConfig, GRUEncoder
from rungwise.encoders.vocabulary import treebank_vocabulary
from rungwise.models.joint._config import VSEConfig
from rungwise.models.joint._joint_embedding import JointEmbedding
from rungwise.models.joint._vsepp_files import END, START, UNKNOWN, VSEPPCheckpoint, read_checkpoint, read_words
from rungwise.similarity import Cosine, Inner, Order

T = TypeVar("T")

BACKBONES = (
    *("vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"),
    *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
)
"""Networks that the program can take from torchvision, each under the same name in timm."""

_PRECOMPUTED = "_precomp"
_TOLD = (
    *("data_name", "cnn_type", "finetune", "margin", "max_violation", "measure", "batch_size", "learning_rate"),
    *("num_epochs", "use_restval"),
)
"""Options of the run that are kept in the provenance."""


def import_vsepp(checkpoint: Path | str, vocabulary: Path | str) -> JointEmbedding:
    """Import a model that the VSE++ program trained; it gives the same vectors as there.

    Supported are networks on pictures (VGG and ResNet) and precomputed features, cosine and order embeddings, and VSE0.
    Captions are cut into words by the program's rules; :mod:`rungwise.encoders.vocabulary._treebank` says where they
    differ.

    Args:
        checkpoint: ``model_best.pth.tar`` of the run; nothing in it is run.
        vocabulary: Vocabulary of the same run, ``NAME_vocab.pkl`` or JSON; nothing in it is run.

    Raises:
        UserError: If a file is missing, damaged, or holds more than such files do, or the two do not fit each other.
    """
    place = Path(checkpoint)
    found, words = read_checkpoint(place), read_words(Path(vocabulary))
    options = _Options(place, found.options)
    config = config_of(options)
    rows = found.text["embed.weight"].shape[:1].numel() if "embed.weight" in found.text else 0
    if rows != len(words):
        raise UserError(
            f"{vocabulary}: {len(words)} words, but {checkpoint} has vectors of {rows}; give the vocabulary of its run"
        )
    tokenizer = treebank_vocabulary(words, UNKNOWN, (START, END))

    def text_side() -> GRUEncoder:
        assert isinstance(config.text, GRUConfig)
        return GRUEncoder(tokenizer, config.text.word_dimension, config.dimension, layers=config.text.layers)

    def build() -> JointEmbedding:
        return JointEmbedding(config, image_side(config), text_side)

    with torch.device("meta"):  # shapes without memory, so that sizes which no file holds take none
        wanted = build().state_dict()
    tensors = _checked(wanted, {**image_tensors(found.image, config), **text_tensors(found.text)}, place)
    model = build()
    model.load_state_dict(tensors, strict=False)
    model.provenance = _provenance(found)
    return model.eval()


class _Options:
    """The options of a run, each checked when it is read."""

    def __init__(self, place: Path, said: Mapping[str, Any]) -> None:
        self.place, self._said = place, said

    def __call__(self, name: str, kind: type[T], usual: T | None = None) -> T:
        value = self._said.get(name, usual)
        if type(value) is not kind:
            raise UserError(
                f"{self.place}: opt.{name}: expected {kind.__name__}, got {printable(repr(value))[:60]}; give a"
                " checkpoint of the VSE++ program"
            )
        return value

    def refuse(self, name: str, why: str) -> UserError:
        return UserError(f"{self.place}: opt.{name}: {why}")


def config_of(options: _Options) -> VSEConfig:
    """The configuration that a run's options amount to."""
    image: ImageConfig | FeatureConfig
    if options("data_name", str).endswith(_PRECOMPUTED):
        # The program takes precomputed features as they are.
        image = FeatureConfig(width=options("img_dim", int), l2_normalise=False)
    else:
        backbone = options("cnn_type", str, "vgg19")
        if backbone not in BACKBONES:
            raise options.refuse("cnn_type", f"{printable(backbone)[:40]!r} is none of {', '.join(BACKBONES)}")
        image = ImageConfig(backbone, weights="random", frozen=not options("finetune", bool, False))
    return VSEConfig(
        image=image,
        text=GRUConfig(options("word_dim", int), layers=options("num_layers", int, 1)),
        dimension=options("embed_size", int),
        similarity=_similarity(options),
    )


def image_side(config: VSEConfig) -> ImageSide:
    """The image encoder without its weights, with the pictures prepared as in the program's tests."""
    if not isinstance(config.image, ImageConfig):
        return config.image.build()
    seen = Preprocessing(size=224, crop=0.875, interpolation="bilinear", resampling="pillow", decoding="full")
    return Backbone(config.image, seen)


def _similarity(options: _Options) -> Cosine | Inner | Order:
    measure = options("measure", str, "cosine")
    absolute, as_they_are = options("use_abs", bool, False), options("no_imgnorm", bool, False)
    if measure == "order" and not as_they_are:
        return Order(root=True, absolute=absolute)
    if measure == "order":
        raise options.refuse("no_imgnorm", "order embeddings of images that are not normed cannot be imported")
    if measure != "cosine":
        raise options.refuse("measure", f"{printable(measure)[:40]!r} is neither cosine nor order")
    if absolute:
        raise options.refuse("use_abs", "absolute values compared by the cosine cannot be imported")
    return Inner() if as_they_are else Cosine()


_PARALLEL = re.compile(r"^cnn\.(features\.)?module\.")
_VGG_LAYERS = {"0": "fc1", "3": "fc2"}
_EARLY_VGG_LAYERS = {"1": "fc1", "4": "fc2"}
"""timm's names of the fully connected layers by number; early torchvision counted the dropout before each."""


def image_tensors(said: Mapping[str, Tensor], config: VSEConfig) -> dict[str, Tensor]:
    """The tensors of the image side under our names; wrappers of torch's ``DataParallel`` are removed.

    >>> config = VSEConfig(image=ImageConfig("resnet18", weights="random"))
    >>> list(image_tensors({"cnn.module.conv1.weight": torch.zeros(1), "fc.bias": torch.zeros(1)}, config))
    ['backbone.network.conv1.weight', 'image_projection.bias']
    """
    if isinstance(config.image, FeatureConfig):
        said = {name: tensor for name, tensor in said.items() if not name.startswith("cnn.")}
    early = any(name.startswith("cnn.classifier.1.") for name in said)
    found = {}
    for name, tensor in said.items():
        plain = _PARALLEL.sub(lambda match: f"cnn.{match[1] or ''}", name)
        if plain.startswith("cnn.classifier."):
            _, _, number, what = plain.split(".", 3)
            layer = (_EARLY_VGG_LAYERS if early else _VGG_LAYERS).get(number, f"layer {number}")
            plain = f"cnn.pre_logits.{layer}.{what}"
            if tensor.ndim == 2:  # a convolution over the whole map, and one over a single point
                side = 7 if layer == "fc1" and tensor.shape[1] % 49 == 0 else 1
                tensor = tensor.reshape(tensor.shape[0], tensor.shape[1] // side**2, side, side)
        found[re.sub(r"^cnn\.", "backbone.network.", re.sub(r"^fc\.", "image_projection.", plain))] = tensor
    return found


def text_tensors(said: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the text side under our names."""
    return {
        re.sub(r"^embed\.", "text_encoder.words.", re.sub(r"^rnn\.", "text_encoder.recurrent.", name)): tensor
        for name, tensor in said.items()
    }


def _checked(wanted: Mapping[str, Tensor], tensors: Mapping[str, Tensor], place: Path) -> Mapping[str, Tensor]:
    # Networks that torch saved before version 0.4 did not count the batches that they had seen, which no vector needs.
    needed = {name for name in wanted if not name.endswith("num_batches_tracked")} | tensors.keys()
    for name in sorted(needed):
        asked, given = (None if one is None else tuple(one.shape) for one in (wanted.get(name), tensors.get(name)))
        if asked != given:
            said, needs = ("no such tensor" if shape is None else str(shape) for shape in (given, asked))
            raise UserError(
                f"{place}: {printable(name)[:80]}: {said}, but opt asks for {needs}; the parts of the file belong to"
                " different models"
            )
        if tensors[name].is_floating_point() != wanted[name].is_floating_point():
            raise UserError(f"{place}: {name}: numbers of type {tensors[name].dtype}; copy the file anew")
        if not torch.isfinite(tensors[name]).all():
            raise UserError(f"{place}: {name}: holds NaN or infinite numbers, which rank nothing")
    return tensors


def _provenance(found: VSEPPCheckpoint) -> dict[str, Any]:
    said = {name: found.options[name] for name in _TOLD if name in found.options} | dict(found.facts)
    plain = {
        name: value
        for name, value in said.items()
        if type(value) in (int, bool) or (type(value) is float and math.isfinite(value)) or type(value) is str
    }
    return {
        "imported": "a checkpoint of the VSE++ program (Faghri et al. 2018)",
        "run": {name: value[:200] if isinstance(value, str) else value for name, value in plain.items()},
    }
