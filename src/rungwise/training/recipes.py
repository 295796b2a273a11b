"""Presets: the papers' recipes, as YAML files in the folder ``presets`` beside this file."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core.errors import UserError
from rungwise.core.reading import is_regular

if TYPE_CHECKING:
    from rungwise.training.config import TrainConfig


def preset_names() -> list[str]:
    """The presets that come with the package.

    >>> "vsepp" in preset_names()
    True
    """
    return sorted(path.name.removesuffix(".yaml") for path in _folder().iterdir() if path.name.endswith(".yaml"))


def load_config(name_or_file: str) -> TrainConfig:
    """A preset by name, or a configuration file.

    Raises:
        UserError: If it is neither, or the file does not fit.

    >>> load_config("vsepp").loss.margin
    0.2
    """
    # These bring torch along, which nobody needs who only asks for the names.
    from rungwise.core.configuration import load_yaml
    from rungwise.training.config import TrainConfig

    if name_or_file in preset_names():
        with resources.as_file(_folder() / f"{name_or_file}.yaml") as path:
            return load_yaml(TrainConfig, path)
    if not is_regular(Path(name_or_file)):
        raise UserError(
            f"{name_or_file}: neither a configuration file nor a preset; presets are {', '.join(preset_names())}"
        )
    return load_yaml(TrainConfig, Path(name_or_file))


def _folder() -> resources.abc.Traversable:
    return resources.files("rungwise.training") / "presets"
