"""Image side: a timm backbone with its preprocessing, from pictures to feature vectors.

The linear layer that takes features into the joint space belongs to the model (:mod:`rungwise.models`): features of a
frozen backbone are cached, the layer is trained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import timm
import torch
from torch import Tensor, nn

from rungwise.core.configuration import ELSEWHERE, LATER, STRICT, from_plain
from rungwise.core.errors import UserError
from rungwise.core.tensors import add_tensors, read_tensors
from rungwise.encoders.options import check_model_name, check_options
from rungwise.encoders.preprocessing import Interpolation, Preprocessing
from rungwise.encoders.sides import PREPROCESSING, PictureSide, SavedFiles


@dataclass(frozen=True)
class ImageConfig:
    """Which backbone, with which weights, seeing what.

    Attributes:
        kind: Pictures under a backbone; the other kind is features.
        backbone: A name of timm's list; its prefixes for repositories and folders are not taken.
        weights: hub for timm's pretrained weights, random for none, or a safetensors file in timm's layout.
        options: Of the network, such as {pad_type: same}; those of rungwise.encoders.options and no others.
        pool: backbone pools as the network does; flatten keeps the last map, and with it the positions.
        frozen: Features are computed once and cached; otherwise the backbone is trained with the rest.
        l2_normalise: Normalise features before the linear layer, as the VSE++ program does.
        size: Side of the square that the network sees; None here and below means as its weights declare.
        mean: Mean of each channel, subtracted from pixels in 0..1.
        std: Standard deviation of each channel, by which they are divided.
        crop: Share of the resized side that the centre crop keeps.
        interpolation: How pixels are interpolated when the picture is resized.
        resize: short_side keeps the proportions of the picture, square does not.
    """

    __pydantic_config__ = STRICT

    backbone: str = "resnet152"
    weights: str = field(default="hub", metadata=ELSEWHERE)
    options: dict[str, Any] = field(default_factory=dict)
    pool: Literal["backbone", "flatten"] = "backbone"
    frozen: bool = field(default=True, metadata=ELSEWHERE)
    l2_normalise: bool = True
    size: int | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    crop: float | None = None
    interpolation: Interpolation | None = None
    resize: Literal["short_side", "square"] | None = None
    kind: Literal["pictures"] = field(default="pictures", metadata=LATER)

    def __post_init__(self) -> None:
        check_model_name(self.backbone)
        check_options(self.options)

    def build(self) -> Backbone:
        """The backbone with the weights that are named.

        Raises:
            UserError: If the weights cannot be had or do not fit the network.
        """
        return load_backbone(self)

    def restore(self, files: SavedFiles) -> Backbone:
        """The backbone of a saved model, without its weights.

        Raises:
            UserError: If the files do not fit.
        """
        where = str(files.path / PREPROCESSING)
        preprocessing = from_plain(Preprocessing, files.json(PREPROCESSING), where)
        try:
            return Backbone(self, preprocessing)
        except UserError as error:
            raise UserError(f"{files.path}: model.image: {error}") from None


class Backbone(PictureSide):
    """A timm network without its classifier, and the preprocessing its weights expect.

    >>> backbone = Backbone(ImageConfig("test_resnet.r160_in1k", weights="random", size=32))
    >>> backbone(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape == (2, backbone.features)
    True
    """

    def __init__(self, config: ImageConfig, preprocessing: Preprocessing | None = None) -> None:
        """Build the network; ``config.weights`` is not read here (see :func:`load_backbone`).

        Raises:
            UserError: If timm does not know the name or refuses the options.
        """
        super().__init__()
        self.config = config
        self.network = create_network(config, pretrained=False)
        overrides = {name: getattr(config, name) for name in ("size", "mean", "std", "crop", "interpolation", "resize")}
        if config.size and config.crop is None:
            overrides["crop"] = 1.0  # a size of one's own means: show the whole picture at that size
        declared: Mapping[str, Any] = self.network.pretrained_cfg
        self.preprocessing = preprocessing or Preprocessing.of_timm(declared, overrides)
        self.features = self._count_features()

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, 3, size, size) uint8 to (n, features) float32."""
        pixels = self.preprocessing.normalise(pictures)
        if self.config.pool == "flatten":
            return torch.as_tensor(self.network.forward_features(pixels)).flatten(1).float()
        return torch.as_tensor(self.network(pixels)).flatten(1).float()

    def fingerprint(self) -> str:
        """Hash of everything that a feature depends on besides the picture."""
        digest = hashlib.sha256()
        identity = (self.config.backbone, sorted(self.config.options.items()), self.config.pool)
        digest.update(repr((identity, asdict(self.preprocessing))).encode())
        add_tensors(digest, self.network.state_dict())
        return digest.hexdigest()

    def files(self) -> Mapping[str, str]:
        """The preprocessing."""
        return {PREPROCESSING: json.dumps(asdict(self.preprocessing), indent=2)}

    def _count_features(self) -> int:
        side = self.preprocessing.size
        same = repr((self.config.backbone, sorted(self.config.options.items()), self.config.pool, side))
        if same not in _widths:
            _widths[same] = self._width(side)
        return _widths[same]

    def _width(self, side: int) -> int:
        training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                width = self(torch.zeros(1, 3, side, side, dtype=torch.uint8)).shape[1]
        except _UNFIT as error:
            raise UserError(
                f"backbone {self.config.backbone} does not run on pictures of {side} x {side} ({_first_line(error)});"
                " set another size"
            ) from error
        self.train(training)
        return int(width)


_widths: dict[str, int] = {}
"""Features by what decides their number, so that a model which is built twice computes one blank picture."""


def load_backbone(config: ImageConfig) -> Backbone:
    """Build a backbone and give it the weights that ``config.weights`` names.

    Raises:
        UserError: If the weights cannot be had or do not fit the network.
    """
    backbone = Backbone(config)
    if config.weights == "hub":
        _copy(
            create_network(config, pretrained=True).state_dict(),
            backbone,
            f"hub weights of {config.backbone}",
        )
    elif config.weights != "random":
        _copy(read_tensors(Path(config.weights)), backbone, config.weights)
    return backbone


def create_network(config: ImageConfig, *, pretrained: bool) -> Any:
    """``timm.create_model`` without a classifier, in channels-last memory (faster on CPUs and tensor cores)."""
    try:
        network = timm.create_model(config.backbone, pretrained=pretrained, num_classes=0, **config.options)
    except RuntimeError as error:
        if "Unknown model" in str(error):
            close = ", ".join(timm.list_models(f"*{config.backbone.split('_')[0]}*")[:3]) or "see timm.list_models()"
            raise UserError(f"timm knows no backbone {config.backbone!r}; close to it: {close}") from None
        raise UserError(f"backbone {config.backbone}: {_first_line(error)}") from error
    except (OSError, ValueError) as error:
        if not pretrained and isinstance(error, ValueError):
            raise _unfit(config, error) from error
        raise UserError(
            f"weights of {config.backbone} cannot be fetched ({_first_line(error)}); without a network name a"
            " local safetensors file in model.image.weights"
        ) from error
    except _UNFIT as error:
        raise _unfit(config, error) from error
    assert isinstance(network, nn.Module)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


_UNFIT = (AssertionError, RuntimeError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""As networks say that a size or an option does not suit them."""


def _unfit(config: ImageConfig, error: Exception) -> UserError:
    return UserError(f"backbone {config.backbone} does not take these options: {_first_line(error)}")


def _copy(tensors: dict[str, Tensor], backbone: Backbone, where: str) -> None:
    wanted = backbone.network.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors:
            raise UserError(
                f"{where}: has no tensor {name!r}, which {backbone.config.backbone} needs; is it another model?"
            )
        if tensors[name].shape != tensor.shape:
            raise UserError(
                f"{where}: tensor {name!r} has shape {tuple(tensors[name].shape)}, {backbone.config.backbone} needs"
                f" {tuple(tensor.shape)}; is it another model?"
            )
    backbone.network.load_state_dict({name: tensors[name] for name in wanted})


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
