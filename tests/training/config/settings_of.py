"""Every setting of a training and of a fit by name, for tests of tables that list them all."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from rungwise.encoders import ImageSideConfig, TextSideConfig, _heads
from rungwise.losses import Loss
from rungwise.models.io import ModelConfig, _families
from rungwise.models.joint._config import OUR_IMAGE_SIDES, OUR_TEXT_SIDES
from rungwise.models.regions._caption_head import CaptionHeadConfig
from rungwise.models.regions.consensus._concepts import ConceptConfig
from rungwise.models.subspace import _settings
from rungwise.parts import concrete_below
from rungwise.similarity import Similarity
from rungwise.training.batches._sampling import Sampler
from rungwise.training.config import BestEpoch, Choice, DataConfig, FitConfig, LossConfig, TrainConfig, config_of
from rungwise.training.config import _fine_tuning as tuning
from rungwise.training.config._data import CollectionConfig
from rungwise.training.config._stage import Stage
from rungwise.training.steps._optimizers import LearningRates, OptimizerConfig
from rungwise.training.steps._schedules import Schedule
from rungwise.training.steps._strategies import Step

OF_ONE = {
    TrainConfig: "", FitConfig: "fit", DataConfig: "data", CollectionConfig: "data", Stage: "stages",
    BestEpoch: "snapshot", Choice: "snapshot", LearningRates: "rates", CaptionHeadConfig: "model.vsrn.captions",
    ConceptConfig: "model.cvse.concepts", _settings.Fitted: "model.fitted",
}  # fmt: skip
"""Place of configurations of which there is one kind."""

OF_KINDS = {
    LossConfig: "loss", Sampler: "sampler", Step: "step", OptimizerConfig: "optimizer", Schedule: "schedule",
    ImageSideConfig: "model.image", TextSideConfig: "model.text", Similarity: "model.similarity", ModelConfig: "model",
}  # fmt: skip
"""Place of configurations that are chosen by their ``kind``, by their base."""

BY_MODULE = {_heads.__name__: "head", tuning.__name__: "tune", _settings.__name__: "model.kernel"}
"""Place of those that have no base of their own."""


def every_class() -> Iterator[type[Any]]:
    """Every configuration that can be reached from those of a training and a fit; the package's own kinds alone."""
    families = [_families.family(kind) for kind in _families._MODULES if kind != "onnx"]
    seen: set[type[Any]] = set()
    waiting: list[Any] = [TrainConfig, FitConfig, *OUR_IMAGE_SIDES, *OUR_TEXT_SIDES]
    waiting += [one.config_type for one in families]  # type: ignore[attr-defined]
    waiting += [config_of(one) for one in concrete_below(Loss) if one.__module__.startswith("rungwise.")]
    while waiting:
        one = waiting.pop()
        if isinstance(one, type) and is_dataclass(one):
            if one not in seen:
                seen.add(one)
                hints = get_type_hints(one, include_extras=True)
                waiting += [hints[field.name] for field in fields(one)]
        else:
            waiting += get_args(one)
    yield from (one for one in seen if one not in (LossConfig, ModelConfig, ImageSideConfig, TextSideConfig))


def place_of(kind: type[Any]) -> str:
    """The setting that holds such a configuration, with its kind; a class of no known place is an error."""
    if kind in OF_ONE:
        return OF_ONE[kind]
    name = next(one.default for one in fields(kind) if one.name == "kind")
    for base, place in OF_KINDS.items():
        if issubclass(kind, base):
            return f"{place}.{name}"
    return f"{BY_MODULE[kind.__module__]}.{name}"


def every_setting() -> set[str]:
    """Names such as ``warm_up_epochs``, ``loss.ladder.weights`` and ``model.image.pictures.crops``."""
    return {f"{place_of(kind)}.{one.name}".lstrip(".") for kind in every_class() for one in fields(kind)}
