"""Presets: whole configurations of trainings and fits by name, from the YAML files in ``rungwise/configs``.

**A file** ``configs/<system>/<dataset>.yaml`` is the configuration of a training or of a fit with four more keys:
``about``, one sentence; ``reproduces``, the rows of papers' tables that it stands for; ``assumes``, what the paper does
not print; ``variants``, by name, each with what differs in it and an ``about``, ``reproduces`` and ``assumes`` of its
own.

**A name** is ``system/dataset`` or ``system/dataset:variant``. A system alone takes the file of the given dataset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rungwise.core import MissingFileError, UserError, is_regular, read_text
from rungwise.core.output import short_repr
from rungwise.core.text import near_names

if TYPE_CHECKING:
    from rungwise.training.config._fit import AnyRunConfig
    from rungwise.training.config._run import TrainConfig

OWN = "own"
"""Name in place of a dataset for presets that suit one's own data."""

_NOTES = ("about", "reproduces", "assumes")
_VARIANTS = "variants"
_NAME = re.compile(r"(?P<system>[\w-]+)(?:/(?P<dataset>\w+))?(?::(?P<variant>[\w.-]+))?")


@dataclass(frozen=True)
class Preset:
    """A named configuration of a training or fit.

    Attributes:
        name: ``system/dataset`` or ``system/dataset:variant``.
        about: Description in one sentence.
        reproduces: References to printed rows: columns of ``evaluation/published.csv`` or settings of a row, and their
            values. Empty where no paper printed it.
        assumes: Choices that the paper does not print.
        settings: Settings that differ from a configuration's defaults, as plain values.
    """

    name: str
    about: str
    reproduces: tuple[Mapping[str, str], ...]
    assumes: tuple[str, ...]
    settings: Mapping[str, Any]

    __repr__ = short_repr

    @cached_property
    def config(self) -> AnyRunConfig:
        """The configuration, which imports torch."""
        return _built({**self.settings, "preset": self.name}, self.name)

    @property
    def system(self) -> str:
        """System, the first part of the name."""
        return self.name.partition("/")[0]

    @property
    def dataset(self) -> str:
        """Dataset, the second part of the name; ``own`` for data of one's own."""
        return self.name.partition("/")[2].partition(":")[0]

    @property
    def variant(self) -> str:
        """Variant, the third part of the name; empty for the file itself."""
        return self.name.partition(":")[2]


def systems() -> list[str]:
    """Systems that have presets; each is also a preset's short name."""
    return sorted(_files())


def datasets_of(system: str) -> list[str]:
    """The datasets of a system's files, data of one's own last.

    >>> datasets_of("cmal2r")
    ['pascal_voc2007', 'wikipedia', 'own']
    """
    if system not in _files():
        raise UserError(f"there is no preset {system!r}{_nearest(system, systems())}; presets are {_listed(systems())}")
    return sorted(_files()[system], key=lambda dataset: (dataset == OWN, dataset))


def preset_names(system: str = "") -> list[str]:
    """Full names of all presets, of one system or of all.

    >>> preset_names("cca")
    ['cca/pascal_voc2007', 'cca/wikipedia', 'cca/own']
    """
    names = []
    for one in [system] if system else systems():
        for dataset in datasets_of(one):
            names.append(f"{one}/{dataset}")
            names += [f"{one}/{dataset}:{variant}" for variant in _read(one, dataset).get(_VARIANTS, {})]
    return names


def presets(system: str = "") -> tuple[Preset, ...]:
    """All presets, of one system or of all."""
    return tuple(load_preset(name) for name in preset_names(system))


def whole_name(name: str, dataset: str = "") -> str:
    """The full name of a preset.

    Args:
        name: Short or full name. A system alone, or with a variant, takes the file of the dataset, else that for data
            of one's own, else the only file.
        dataset: Dataset of the given data, see :func:`rungwise.data.dataset_of`.

    Raises:
        UserError: If there is no such preset; the message offers similar names.

    >>> whole_name("vsepp", "coco"), whole_name("vsepp"), whole_name("scenes"), whole_name("vsepp/coco:rc-rv")
    ('vsepp/coco', 'vsepp/own', 'scenes/scenes', 'vsepp/coco:rc-rv')
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UserError(f"{name!r} is no name of a preset; write system, system/dataset or system/dataset:variant")
    system, asked, variant = match.group("system", "dataset", "variant")
    known = datasets_of(system)
    if asked is None:
        asked = next((one for one in (dataset, OWN) if one in known), known[0])
    elif asked not in known:
        raise UserError(f"there is no preset {system}/{asked}{_nearest(asked, known)}; {system} has {_listed(known)}")
    if variant is None:
        return f"{system}/{asked}"
    variants = list(_read(system, asked).get(_VARIANTS, {}))
    if variant not in variants:
        more = f"it has {_listed(variants)}" if variants else "it has none"
        raise UserError(f"{system}/{asked} has no variant {variant!r}{_nearest(variant, variants)}; {more}")
    return f"{system}/{asked}:{variant}"


def load_preset(name: str, dataset: str = "") -> Preset:
    """Read a preset by its short or full name; see :func:`whole_name`."""
    return _preset(whole_name(name, dataset))


def load_config(name_or_file: str, dataset: str = "", *, resumed: Path | None = None) -> AnyRunConfig:
    """Read a preset's configuration by name, or a configuration file.

    Args:
        name_or_file: Path of a file, or a name as in :func:`whole_name`.
        dataset: Dataset of the given data.
        resumed: Folder of a run that is to go on. A file in the folder of a run is a record: the modules that it names
            are not imported, and its preset decides nothing. In another file what is left out is the preset's.

    Raises:
        UserError: If it is neither, or the file does not fit.

    >>> load_config("vsepp/coco").loss.margin, load_config("cca").grid["regularisation"]
    (0.2, (0.001, 0.01, 0.1, 1.0))
    """
    if is_preset_name(name_or_file):
        return load_preset(name_or_file, dataset).config
    path = Path(name_or_file)
    # A file in a folder is no misspelt preset, such as that of a run which is not there.
    if not is_regular(path) and not (path.suffix.lower() in (".yaml", ".yml") and len(path.parts) > 1):
        system = name_or_file.partition("/")[0].partition(":")[0]
        raise UserError(
            f"{name_or_file}: neither a configuration file nor a preset{_nearest(system, systems())}; presets are"
            f" {_listed(systems())}"
        )
    try:
        values = _mapping(read_text(path, "settings_bytes"), str(path))
    except MissingFileError:
        raise UserError(f"{path}: no such configuration file") from None
    settings = {name: one for name, one in _settings(values).items() if (name, one) != ("modules", None)}
    if not _is_record(path, resumed):
        _import_modules(settings, path)
        settings = _on_preset(settings, path, dataset)
    from rungwise.parts import recorded, recorded_in

    with recorded(recorded_in(settings)):
        return _built(settings, str(path))


def _is_record(path: Path, resumed: Path | None) -> bool:
    """Whether a configuration stands in the folder of a run, which somebody else may have made: nothing is imported."""
    from rungwise.training._run_folder import MODEL, is_run

    folder = path.resolve().parent
    return is_run(folder) or (folder / MODEL).exists() or (resumed is not None and resumed.resolve() == folder)


def _on_preset(settings: dict[str, Any], path: Path, dataset: str) -> dict[str, Any]:
    """Settings of a file that names a preset: what it leaves out is the preset's."""
    name = settings.get("preset", "")
    if not name:
        return settings
    if not isinstance(name, str) or not is_preset_name(name):
        raise UserError(f"{path}: preset: there is no preset {name!r}; presets are {_listed(systems())}")
    from rungwise.training.config._stage import merged

    preset = load_preset(name, dataset)
    return merged(preset.settings, {**settings, "preset": preset.name})


def _import_modules(settings: Mapping[str, Any], path: Path) -> None:
    """Import the modules of a configuration that a person wrote."""
    modules = settings.get("modules", ())
    if not modules:
        return
    if not isinstance(modules, list | tuple) or not all(isinstance(one, str) for one in modules):
        raise UserError(f"{path}: modules must be a list of names, such as [mylosses]")
    from rungwise.parts import import_named

    import_named(modules, option=f"{path}: modules")


def load_training(name_or_file: str, dataset: str = "") -> TrainConfig:
    """Read a configuration as :func:`load_config` does, if it is a training in steps."""
    from rungwise.training.config._run import TrainConfig

    config = load_config(name_or_file, dataset)
    if not isinstance(config, TrainConfig):
        raise UserError(f"{name_or_file}: a fit, not a training in steps; give another preset")
    return config


def _built(settings: dict[str, Any], where: str) -> AnyRunConfig:
    from rungwise.core import from_plain
    from rungwise.training.config._fit import config_type

    return from_plain(config_type(settings), settings, where)


def is_preset_name(text: str) -> bool:
    """Whether a text names a preset, or would if its dataset or variant were spelt right.

    >>> is_preset_name("vsepp"), is_preset_name("vsepp/cocoa"), is_preset_name("vsepp.yaml")
    (True, True, False)
    """
    match = _NAME.fullmatch(text)
    return match is not None and match["system"] in _files() and not is_regular(Path(text))


@cache
def _files() -> Mapping[str, Mapping[str, Any]]:
    """Files of each system by dataset."""
    found: dict[str, dict[str, Any]] = {}
    for folder in (resources.files("rungwise") / "configs").iterdir():
        if folder.is_dir():
            files = [one for one in folder.iterdir() if one.name.endswith(".yaml")]
            found[folder.name] = {one.name.removesuffix(".yaml"): one for one in files}
    return found


@cache
def _read(system: str, dataset: str) -> Mapping[str, Any]:
    """Content of a preset's file."""
    return _mapping(_files()[system][dataset].read_text(encoding="utf-8"), f"{system}/{dataset}")


def _mapping(text: str, where: str) -> Mapping[str, Any]:
    from rungwise.core import parse_yaml

    values = parse_yaml(text, where)
    if values is not None and not isinstance(values, dict):
        raise UserError(f"{where}: expected a mapping of settings, found {type(values).__name__}")
    found = values or {}
    variants = found.get(_VARIANTS, {})
    if not isinstance(variants, dict) or not all(isinstance(one, dict) for one in variants.values()):
        raise UserError(f"{where}: {_VARIANTS} must map names to settings")
    if inner := next((name for name, one in variants.items() if _VARIANTS in one), None):
        raise UserError(f"{where}: the variant {inner} has {_VARIANTS} of its own; write each beside the others")
    return found


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in (*_NOTES, _VARIANTS)}


@cache
def _preset(name: str) -> Preset:
    from rungwise.training.config._stage import merged

    place, _, variant = name.partition(":")
    values = _read(*place.split("/"))
    changes = values.get(_VARIANTS, {}).get(variant, {})
    own = changes if variant else values
    return Preset(
        name,
        _about(own, name),
        tuple(_reference(one, name) for one in _list(own, "reproduces", name)),
        tuple(
            str(one) for source in ([values, own] if variant else [values]) for one in _list(source, "assumes", name)
        ),
        MappingProxyType(merged(_settings(values), _settings(changes))),
    )


def _about(values: Mapping[str, Any], name: str) -> str:
    about = values.get("about")
    if not isinstance(about, str) or not about.strip():
        raise UserError(f"{name}: a preset says in one sentence what it is; give it about")
    return about.strip()


def _list(values: Mapping[str, Any], key: str, name: str) -> list[Any]:
    found = values.get(key, [])
    if not isinstance(found, list):
        raise UserError(f"{name}: {key} must be a list")
    return found


def _reference(value: Any, name: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not {"paper", "table"} <= set(value):
        raise UserError(f"{name}: reproduces names a row by paper, table and more, got {value!r}")
    dataset = name.partition("/")[2].partition(":")[0]
    return MappingProxyType({"dataset": dataset} | {str(key): str(one) for key, one in value.items()})


def _nearest(word: str, known: Sequence[str]) -> str:
    close = near_names(word, known, 3, 0.5)
    return f"; do you mean {' or '.join(close)}" if close else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
