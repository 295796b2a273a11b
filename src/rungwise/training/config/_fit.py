"""Configuration of a fit: a model in closed form, and the settings that are tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core import STRICT, UserError, load_yaml, parse_yaml, read_text
from rungwise.data import READERS
from rungwise.models import SavedModel, family
from rungwise.models.io import AnyFitted
from rungwise.models.subspace.methods import CCAConfig
from rungwise.parts import Origins, origins_of, recorded, recorded_in
from rungwise.relevance.config import names_source, source_config
from rungwise.training._run_folder import CONFIG
from rungwise.training.config._data import CollectionConfig
from rungwise.training.config._run import TrainConfig
from rungwise.training.config._snapshots import Choice

_MOST_POINTS = 10_000


def _read_grid(words: list[str]) -> dict[str, Any]:
    try:
        values = parse_yaml(words[0], "the grid")
    except UserError as error:
        raise ValueError(str(error)) from None
    if not isinstance(values, dict) or not all(isinstance(tried, list) for tried in values.values()):
        raise ValueError(f"{words[0]!r} is no grid; write such as '{{dimension: [5, 10]}}', or '{{}}' for none")
    return {str(name): tuple(tried) for name, tried in values.items()}


Grid = Annotated[
    Mapping[str, tuple[Any, ...]],
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="GRID",
        instance_from_str=_read_grid,
        is_instance=lambda value: isinstance(value, Mapping),
        str_from_instance=lambda value: [
            "{" + ", ".join(f"{name}: [{', '.join(map(_short, tried))}]" for name, tried in value.items()) + "}"
        ],
    ),
]
"""Settings of a model by name, each with the values to try; on the command line a mapping in YAML."""


def _short(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class FitConfig:
    """A fit of a model, such as CCA, to a collection.

    Attributes:
        preset: Name of the preset that this was read from; empty without one. A file of one's own that names a preset
            takes from it what the file leaves out. In the folder of a run it decides nothing.
        modules: Modules of your own, which are imported when this configuration is given to a training. In the folder
            of a run they are a record, and are not imported.
        packages: Installed packages that offered parts of a run; a record, by which nothing is imported.
        data: Pictures and captions, or features in their place.
        model: The model to fit: cca, scm, gmlda, gmmfa, mvda, mlcca, lcfs, lgcfl.
        grid: Settings of the model with the values to try, such as {dimension: [5, 10]}; every combination is fitted to
            the training split, and the best one on the validation split is taken.
        snapshot: The measure that chooses, and its protocol; by default MAP by labels for data that have labels, else
            rsum.
        refit: Fit once more, with the chosen settings, to the training and the validation split together.
    """

    __pydantic_config__ = STRICT

    preset: Annotated[str, tyro.conf.Fixed, tyro.conf.Suppress] = ""
    modules: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ()
    packages: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ()
    data: CollectionConfig = field(default_factory=CollectionConfig)
    model: AnyFitted = field(default_factory=CCAConfig)
    grid: Grid = field(default_factory=dict)
    snapshot: Choice | None = None
    refit: bool = True

    def __post_init__(self) -> None:
        if self.snapshot is not None and self.snapshot.chosen.measure.graded:
            raise UserError(
                f"snapshot.measure: {self.snapshot.chosen} needs degrees of relevance, which a fit does not read;"
                " choose by MAP, rsum or another measure of right and wrong"
            )
        if math.prod(len(tried) for tried in self.grid.values()) > _MOST_POINTS:
            raise UserError(f"grid: more than {_MOST_POINTS:,} combinations; give fewer values")
        if empty := next((name for name, tried in self.grid.items() if not tried), None):
            raise UserError(f"grid: {empty} has no values; give some, or leave it out")
        for point in self.points():  # a misspelt setting should not wait for the data
            family(self.model.kind).told_of(self.model, point)  # type: ignore[attr-defined]

    @property
    def seed(self) -> int:
        """Seed of a kernel's landmarks; 0 where nothing is drawn."""
        return int(getattr(getattr(self.model, "kernel", None), "seed", 0))

    def points(self) -> Iterator[dict[str, Any]]:
        """All combinations of the grid's values; one without settings where there is no grid.

        >>> list(FitConfig(grid={"dimension": (5, 10), "roots": (True,)}).points())
        [{'dimension': 5, 'roots': True}, {'dimension': 10, 'roots': True}]
        """
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


AnyRunConfig = TrainConfig | FitConfig
"""Configuration of a training or a fit."""
RunConfig = TypeVar("RunConfig", bound=TrainConfig | FitConfig)


def config_type(settings: Mapping[str, Any]) -> type[TrainConfig] | type[FitConfig]:
    """The configuration class, of fits or trainings, that suits the model family in plain settings.

    >>> config_type({"model": {"kind": "scm"}}).__name__, config_type({}).__name__
    ('FitConfig', 'TrainConfig')
    """
    model = settings.get("model", {})
    kind = model.get("kind") if isinstance(model, Mapping) else model
    try:
        found = family(kind) if kind is not None else None
    except ValueError:  # said by whoever reads the settings
        return TrainConfig
    return FitConfig if found is not None and issubclass(found, SavedModel) and found.is_fitted else TrainConfig


def load_run_config(path: Path) -> AnyRunConfig:
    """The configuration in the folder of a run, of a training or a fit.

    Raises:
        UserError: If it is missing, is no YAML or does not fit.
    """
    values = parse_yaml(read_text(path, "settings_bytes"), path)
    kind = config_type(values) if isinstance(values, Mapping) else TrainConfig
    with recorded(recorded_in(values)):
        return load_yaml(kind, path)


def with_origins(config: RunConfig) -> RunConfig:
    """A configuration that names the modules and packages of all its parts, for whoever finds the run.

    >>> with_origins(FitConfig()) == FitConfig()
    True
    """
    found = Origins(config.modules, config.packages) | origins_of(config)
    relevance = getattr(config.data, "relevance", "")
    if relevance and names_source(relevance):
        found |= origins_of(source_config(relevance))
    if config.data.layout in READERS.known():
        found |= origins_of(READERS.named(config.data.layout))
    if config.snapshot is not None:
        found |= origins_of(type(config.snapshot.chosen.measure))
    return replace(config, modules=found.modules, packages=found.packages)


def is_fit(folder: Path) -> bool:
    """Whether the folder of a run holds a fit; False where its configuration cannot be read."""
    try:
        return isinstance(load_run_config(folder / CONFIG), FitConfig)
    except UserError:
        return False
