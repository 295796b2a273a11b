"""Image side: a timm backbone with its preprocessing, from pictures to feature vectors.

The linear layer from features to the joint space belongs to the model (:mod:`rungwise.models`): features of a frozen
backbone are cached, the layer is trained.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rungwise.core import ELSEWHERE, Cancelled, UserError, from_plain
from rungwise.core.formats import digest_of_tensors, read_metadata, read_tensors
from rungwise.core.network import fetching, folder_of, hub_folder
from rungwise.core.text import near_names
from rungwise.encoders._precision import copied_in
from rungwise.encoders._preprocessing import Crops, Interpolation, Preprocessing, Resize
from rungwise.encoders._sides import PREPROCESSING, ImageSideConfig, PictureSide, SavedFiles
from rungwise.encoders.images._batch_norm_fusion import with_batch_norms_fused
from rungwise.encoders.untrusted import NetworkOptions, WeightsMetadata, check_model_name, check_options


@dataclass(frozen=True)
class ImageConfig(ImageSideConfig):
    """Backbone, weights and view of the pictures.

    Attributes:
        kind: Name of the side: pictures under a backbone, not features.
        backbone: A name of timm's list; its prefixes for repositories and folders are not taken.
        weights: hub for timm's pretrained weights, random for none, or a safetensors file in timm's layout.
        options: Options of the network, a mapping in YAML such as {pad_type: same}; docs/guide lists all.
        pool: backbone pools as the network does; flatten keeps the last map, and with it the positions; regions keeps
            a vector for each place of the last map or for each patch.
        frozen: Compute features once and cache them; otherwise the backbone is trained with the rest.
        l2_normalise: Normalise features before the linear layer, as the VSE++ program does.
        size: Side of the square that the network sees; None here and below means as its weights declare.
        mean: Mean of each channel, subtracted from pixels in 0..1.
        std: Standard deviation of each channel, by which they are divided.
        crop: Share of the resized side that the centre crop keeps.
        interpolation: How pixels are interpolated when the picture is resized.
        resize: short_side keeps the proportions of the picture, square does not; long_side keeps the whole picture.
        crops: 1C sees the centre; 10C averages the features of the corners, the centre and their mirror images; RC sees
            a random place on each visit in training, mirrored at random, and the centre otherwise.
        mirrored: Mirror pictures at random on each visit in training; None means for RC alone.
        batch_norm: Statistics of a trained backbone: live takes those of each batch, frozen keeps those of the weights.
    """

    backbone: str = "resnet152"
    weights: str = field(default="hub", metadata=ELSEWHERE)
    options: NetworkOptions = field(default_factory=dict)
    pool: Literal["backbone", "flatten", "regions"] = "backbone"
    frozen: bool = field(default=True, metadata=ELSEWHERE)
    l2_normalise: bool = True
    size: int | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    crop: float | None = None
    interpolation: Interpolation | None = None
    resize: Resize | None = None
    kind: Literal["pictures"] = "pictures"
    crops: Crops | None = None
    mirrored: bool | None = None
    batch_norm: Literal["live", "frozen"] = field(default="live", metadata=ELSEWHERE)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_model_name(self.backbone)
        check_options(self.options)
        if self.crops == "10C" and self.pool != "backbone":
            raise UserError(
                f"image.crops: 10C averages features of different places, and image.pool: {self.pool} keeps places"
                " apart; choose one"
            )

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Batch statistics of a frozen backbone, and mirror images where all are seen."""
        if self.frozen and self.batch_norm != ImageConfig.batch_norm:
            yield Cancelled(
                f"{place}.batch_norm {self.batch_norm} changes nothing: {place}.frozen true keeps the statistics as"
                f" they are; leave it out, or set {place}.frozen to false"
            )
        if self.crops == "10C" and self.mirrored:
            yield Cancelled(
                f"{place}.mirrored true changes nothing: {place}.crops 10C sees every crop and its mirror image; leave"
                f" it out, or set {place}.crops to RC"
            )

    def build(self) -> Backbone:
        """The backbone with the configured weights.

        Raises:
            UserError: If the weights cannot be loaded or do not fit the network.
        """
        return load_backbone(self)

    def fetch(self) -> None:
        """Download the configured weights if they are not on this machine.

        Raises:
            UserError: If they cannot be fetched.
        """
        if self.weights == "hub":
            _fetched(self.backbone)

    def restore(self, files: SavedFiles) -> Backbone:
        """A saved model's backbone, without its weights."""
        where = str(files.path / PREPROCESSING)
        preprocessing = from_plain(Preprocessing, files.json(PREPROCESSING), where)
        try:
            return Backbone(self, preprocessing)
        except UserError as error:
            raise UserError(f"{files.path}: model.image: {error}") from None


class Backbone(PictureSide):
    """A timm network without its classifier, and the preprocessing its weights expect."""

    compiles = True

    def __init__(self, config: ImageConfig, preprocessing: Preprocessing | None = None) -> None:
        """Build the network; ``config.weights`` is not read here (see :func:`load_backbone`)."""
        super().__init__()
        self.config = config
        self.network = create_network(config, pretrained=False)
        seen = {one.name for one in fields(Preprocessing)}
        overrides = {one.name: getattr(config, one.name) for one in fields(config) if one.name in seen}
        if config.size and config.crop is None:
            overrides["crop"] = 1.0  # a size of one's own means: show the whole picture at that size
        declared: Mapping[str, Any] = self.network.pretrained_cfg
        if config.crops in ("10C", "RC") and config.crop is None:
            overrides["crop"] = _ROOM if config.size else min(_ROOM, declared.get("crop_pct") or _ROOM)
        if config.mirrored is None:
            overrides["mirrored"] = config.crops == "RC"
        self.preprocessing = preprocessing or Preprocessing.of_timm(declared, overrides)
        self.regions, self.features, self.region_grid = self._shape()

    def forward(self, pictures: Tensor) -> Tensor:
        """(n, features) float32 features of prepared pictures; with ``pool: regions`` (n, :attr:`regions`, features).

        Args:
            pictures: (n, 3, size, size) uint8, or (n, 10, 3, size, size) of ten crops, whose features are averaged.
        """
        return self._read(self.network, pictures, torch.float32)

    def inference(self, half: bool) -> Callable[[Tensor], Tensor]:
        """A copy of the network with batch norms fused, in bfloat16 if ``half``; unchanged weights are shared."""
        side = self.preprocessing.size
        noise = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))
        precision = torch.bfloat16 if half else torch.float32
        network = with_batch_norms_fused(self.network, noise.to(next(self.parameters()).device))
        network = copied_in(network, precision)
        return lambda pictures: self._read(network, pictures, precision)

    def _read(self, network: nn.Module, pictures: Tensor, precision: torch.dtype) -> Tensor:
        """Features from the configured layer, by this network or a faster copy of it."""
        if pictures.ndim == 5:
            of_crops = self._read(network, pictures.flatten(0, 1), precision)
            return of_crops.view(*pictures.shape[:2], -1).mean(dim=1)
        pixels = self.preprocessing.normalise(pictures).to(precision)
        if self.config.pool == "backbone":
            return torch.as_tensor(network(pixels)).flatten(1).float()
        last = self._last(network, pixels)
        return (last.flatten(1) if self.config.pool == "flatten" else self._as_regions(last)).float()

    @staticmethod
    def _last(network: nn.Module, pixels: Tensor) -> Tensor:
        """The last map or tokens."""
        return torch.as_tensor(network.forward_features(pixels))  # type: ignore[operator]

    def train(self, mode: bool = True) -> Self:
        """Set the mode as in torch; ``batch_norm: frozen`` keeps batch normalisation in evaluation mode."""
        super().train(mode)
        if self.config.batch_norm == "frozen":
            for module in self._batch_norms():
                module.eval()
        return self

    def remarks(self) -> Sequence[str]:
        """Warnings where the file of weights says otherwise, and where trained weights have no batch statistics."""
        otherwise = (self.weights_warning,) if self.weights_warning else ()
        trained = any(parameter.requires_grad for parameter in self.parameters())
        statistics = [(one.running_mean, one.running_var) for one in self._batch_norms()]
        known = any(
            mean is not None and variance is not None and (bool(mean.any()) or bool((variance != 1).any()))
            for mean, variance in statistics
        )
        anew = self.config.weights == "random"
        if anew or known or not trained or not statistics or self.config.batch_norm == "frozen":
            return otherwise
        return (
            *otherwise,
            f"the weights of {self.config.backbone} bring along no statistics for batch normalisation; batch_norm: live"
            " takes those of the batches, which loses what the weights know: set model.image.batch_norm: frozen",
        )

    def _batch_norms(self) -> Iterator[_BatchNorm]:
        return (module for module in self.network.modules() if isinstance(module, _BatchNorm))

    def under(self, config: ImageConfig) -> Backbone:
        """The same network with a configuration's crops, mirroring and batch statistics."""
        seen = {one.name for one in fields(Preprocessing)} & {one.name for one in fields(config)}
        same_view = all(getattr(config, name) == getattr(self.config, name) for name in seen)
        if same_view and config.batch_norm == self.config.batch_norm:
            return self
        other = Backbone(config, self.preprocessing if same_view else None)
        other.load_state_dict(self.state_dict())
        return other

    def fingerprint(self) -> str:
        """Hash of everything that a feature depends on besides the picture."""
        known = (self.config.backbone, sorted(self.config.options.items()), self.config.pool)
        return digest_of_tensors(self.network.state_dict(), repr((known, self.preprocessing.identity)))

    def files(self) -> Mapping[str, str]:
        """The preprocessing, as a JSON file."""
        return {PREPROCESSING: json.dumps(asdict(self.preprocessing), indent=2)}

    def _as_regions(self, last: Tensor) -> Tensor:
        """(n, R, D) regions of a map or tokens; the network's own tokens, such as the class, are left out."""
        if last.ndim == 3:
            return last[:, getattr(self.network, "num_prefix_tokens", 0) :]
        if last.ndim != 4:
            raise UserError(
                f"image.pool: regions needs a map or tokens, and {self.config.backbone} gives an array of shape"
                f" {tuple(last.shape)}; choose pool: backbone"
            )
        return last.flatten(1, 2) if self._channels_last else last.flatten(2).transpose(1, 2)

    @property
    def _channels_last(self) -> bool:
        return getattr(self.network, "output_fmt", "NCHW") == "NHWC"

    def _grid_of(self, last: Tensor, regions: int) -> tuple[int, int] | None:
        """Rows and columns of the regions in the picture; None for tokens other than the network's grid of patches."""
        if last.ndim == 4:
            down, across = last.shape[1:3] if self._channels_last else last.shape[2:]
            return down, across
        grid = getattr(getattr(self.network, "patch_embed", None), "grid_size", None)
        return (grid[0], grid[1]) if grid is not None and grid[0] * grid[1] == regions else None

    def _shape(self) -> _Shape:
        """Number of regions, features of each, and grid of the regions."""
        side = self.preprocessing.size
        same = repr((self.config.backbone, sorted(self.config.options.items()), self.config.pool, side))
        if same not in _shapes:
            _shapes[same] = self._probed(side)
        return _shapes[same]

    def _probed(self, side: int) -> _Shape:
        training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                blank = torch.zeros(1, 3, side, side, dtype=torch.uint8)
                if self.config.pool != "regions":
                    found: _Shape = None, self(blank).shape[-1], None
                else:
                    last = self._last(self.network, self.preprocessing.normalise(blank))
                    _, regions, features = self._as_regions(last).shape
                    found = regions, features, self._grid_of(last, regions)
        except UserError:
            raise
        except _UNFIT as error:
            raise UserError(
                f"backbone {self.config.backbone} does not run on pictures of {side} x {side} ({_first_line(error)});"
                " set another size"
            ) from error
        self.train(training)
        return found


_Shape = tuple[int | None, int, tuple[int, int] | None]
"""Number of regions or None, features of each, and rows and columns of the regions or None."""

_ROOM = 0.875
"""Share of the resized side that each of several crops sees by default: 224 of 256."""

_shapes: dict[str, _Shape] = {}
"""Shapes by configuration, so that a model that is built twice runs one blank picture."""


def load_backbone(config: ImageConfig) -> Backbone:
    """Build a backbone and give it the weights that ``config.weights`` names.

    Raises:
        UserError: If the weights cannot be loaded or do not fit the network.
    """
    backbone = Backbone(config)
    if config.weights == "hub":
        _copy(
            create_network(config, pretrained=True).state_dict(),
            backbone,
            f"hub weights of {config.backbone}",
        )
    elif config.weights != "random":
        file = Path(config.weights)
        said, seen = WeightsMetadata.of(read_metadata(file)), backbone.preprocessing
        _copy(read_tensors(file), backbone, config.weights)
        ours = WeightsMetadata(config.backbone, _padding(backbone), seen.size, seen.mean, seen.std)
        backbone.weights_warning = said.warning(file.name, ours, config.options)
    return backbone


def _padding(backbone: Backbone) -> str:
    """The network's padding; some networks have timm's padding of TensorFlow without an option."""
    same = any(type(module).__name__.endswith("Same") for module in backbone.network.modules())
    return str(backbone.config.options.get("pad_type", "same" if same else "symmetric"))


_HUB_FILE = "model.safetensors"


def _fetched(backbone: str) -> dict[str, Any]:
    """Download a backbone's weights if needed, and return timm's argument for the local file.

    Left to itself, timm waits most of a minute for a missing network, even where the weights are on this machine.
    """
    import timm

    declared = timm.get_pretrained_cfg(backbone, allow_unregistered=True)
    name = declared.hf_hub_id if declared is not None else None
    if not name:
        return {}
    try:
        folder = hub_folder(name, [_HUB_FILE])
    except UserError as error:
        cause = error.__cause__
        reason = _first_line(cause) if isinstance(cause, Exception) else str(error)
        raise UserError(
            f"weights of {backbone} cannot be fetched ({reason}); on a connected machine run:"
            f" {fetching(name, [_HUB_FILE])}; then copy {folder_of(name)}/{_HUB_FILE} here and name that file by"
            " model.image.weights=FILE",
            parameters={"model.image.weights=FILE": "model.image.weights"},
        ) from error
    return {"pretrained_cfg_overlay": {"file": str(folder / _HUB_FILE)}} if (folder / _HUB_FILE).is_file() else {}


def create_network(config: ImageConfig, *, pretrained: bool) -> Any:
    """Make a network with ``timm.create_model``, without a classifier.

    Its memory is channels-last, which is faster on CPUs and tensor cores.
    """
    import timm  # takes seconds, which a configuration does not need

    where = _fetched(config.backbone) if pretrained else {}
    try:
        network = timm.create_model(config.backbone, pretrained=pretrained, num_classes=0, **where, **config.options)
    except RuntimeError as error:
        if "Unknown model" in str(error) or "Invalid pretrained tag" in str(error):
            raise UserError(
                f"timm knows no backbone {config.backbone!r}; close to it: {', '.join(_close_to(config.backbone))}"
            ) from None
        raise UserError(f"backbone {config.backbone}: {_first_line(error)}") from error
    except (OSError, ValueError) as error:
        if not pretrained and isinstance(error, ValueError):
            raise _unfit(config, error) from error
        raise UserError(
            f"weights of {config.backbone} cannot be fetched ({_first_line(error)}); without a network name a"
            " safetensors file of this machine by model.image.weights=FILE",
            parameters={"model.image.weights=FILE": "model.image.weights"},
        ) from error
    except _UNFIT as error:
        raise _unfit(config, error) from error
    assert isinstance(network, nn.Module)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _close_to(name: str) -> list[str]:
    """Close names in timm's lists: networks, or for a name with a dot, networks with weights."""
    import timm

    known = timm.list_pretrained() if "." in name else timm.list_models()
    return near_names(name.lower(), known, 3, 0.0)


_UNFIT = (AssertionError, RuntimeError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""Errors by which networks say that a size or an option does not suit them."""


def _unfit(config: ImageConfig, error: Exception) -> UserError:
    reason = _first_line(error)
    named = [name for name in config.options if re.search(rf"\b{name}\b", reason)] or list(config.options)
    if not named:
        return UserError(f"backbone {config.backbone} cannot be built: {reason}")
    return UserError(
        f"image.options: backbone {config.backbone} does not take {' with '.join(named)} ({reason}); leave it out, or"
        " give another value"
    )


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
