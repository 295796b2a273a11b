"""``rungwise presets``: all presets, and the printed rows that they stand for."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.jobs import say
from rungwise.training.config import Preset, datasets_of, load_preset, presets, systems

_EXAMPLES = ("rungwise presets", "rungwise presets vsepp", "rungwise presets sam/coco:tau3-softest")
_WIDTH, _SYSTEM, _VARIANT = 80, 17, 27
"""Width of the list, and columns where the text beside a system and beside a variant begins."""
_TITLES = {"convse": "ConVSE", "cmal2r": "CMAL2R", "sam": "SAM", "vsepp": "VSE++", "ladder_loss": "Ladder loss"}


@dataclass
class Presets:
    """List the presets of rungwise train, with the rows of papers' tables that they stand for.

    Attributes:
        name: A system, such as vsepp, or one preset, such as vsepp/coco:rc-rv. Left out, the systems are listed.
        json: Print them as JSON, with all settings that differ from the defaults.
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[NAME]")] = ""
    json: bool = False


def main(arguments: list[str]) -> int:
    """Print the list of presets."""
    asked = parse(Presets, arguments, "rungwise presets", examples=_EXAMPLES)
    one = [load_preset(asked.name)] if "/" in asked.name or ":" in asked.name else None
    if asked.json:
        print(json.dumps([_plain(preset) for preset in one or presets(asked.name)], indent=1))
        return 0
    lines = _whole(one[0]) if one else _of_system(asked.name) if asked.name else _overview()
    for line in lines:
        say(line)
    return 0


def _overview() -> Iterator[str]:
    yield "rungwise train SYSTEM DATA takes the preset for what DATA are recognised as, and"
    yield "rungwise train SYSTEM/DATASET:VARIANT DATA takes the one that is named."
    yield ""
    count = 0
    for system in systems():
        found = presets(system)
        count += len(found)
        about = load_preset(system).about
        about = (about.rpartition("; ")[0] or about).rstrip(".")
        yield from _entry(system, f"{about}. For {', '.join(datasets_of(system))}; {len(found)} in all.", _SYSTEM)
    yield ""
    yield f"{count} presets; rungwise presets SYSTEM lists the variants and their printed rows."


def _of_system(system: str) -> Iterator[str]:
    """Lines on each preset of a system, grouped by dataset."""
    found = presets(system)
    for _, group in groupby(found, key=lambda one: one.dataset):
        base, *variants = group
        yield from _described(base)
        for preset in variants:
            yield from _entry(f"  :{preset.variant}", preset.about, _VARIANT)
            yield from _rows(preset, " " * _VARIANT)
        yield ""
    yield f"rungwise presets {found[-1].name} shows one with its settings."


def _whole(preset: Preset) -> Iterator[str]:
    from yaml import safe_dump

    yield from _described(preset)
    yield ""
    yield from safe_dump(
        _copied(preset.settings), sort_keys=False, width=_WIDTH - 8, default_flow_style=None
    ).splitlines()


def _described(preset: Preset) -> Iterator[str]:
    yield preset.name
    yield from _wrapped(preset.about, "  ")
    yield from _rows(preset, "  ")
    for text in preset.assumes:
        yield from _wrapped(f"assumed: {text}", "  ")


def _rows(preset: Preset, indent: str) -> Iterator[str]:
    if preset.reproduces:
        yield from _wrapped(f"row: {'; '.join(map(row_text, preset.reproduces))}", indent)


def row_text(reference: Mapping[str, str]) -> str:
    """Text of a reference to a printed row.

    >>> row_text({"paper": "vsepp", "table": "Table 1", "row": "1.10", "dataset": "coco"})
    'VSE++ Table 1, 1.10'
    >>> row_text({"paper": "convse", "table": "Table II", "method": "ConVSE++", "tau": "0.5", "dataset": "coco"})
    'ConVSE Table II, ConVSE++ tau=0.5'
    """
    paper = f"{_TITLES.get(reference['paper'], reference['paper'])} {reference['table']}"
    if "row" in reference:
        return f"{paper}, {reference['row']}"
    parts = [value for key in ("method", "backbone", "train_set") if (value := reference.get(key))]
    parts += ["fine-tuned"] if reference.get("finetuned") == "yes" else []
    parts += ["mean of 5 runs"] if "stat" in reference else []
    known = {"paper", "table", "row", "method", "backbone", "train_set", "finetuned", "dataset", "stat"}
    return f"{paper}, {' '.join([*parts, *(f'{key}={value}' for key, value in reference.items() if key not in known)])}"


def _entry(title: str, text: str, indent: int) -> Iterator[str]:
    """A title with its text beside it, or below where the title is too long."""
    if len(title) >= indent - 1:
        yield title
        title = ""
    yield from textwrap.wrap(text, _WIDTH, initial_indent=title.ljust(indent), subsequent_indent=" " * indent)


def _wrapped(text: str, indent: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _plain(preset: Preset) -> dict[str, object]:
    return {
        "name": preset.name,
        "about": preset.about,
        "reproduces": [dict(one) for one in preset.reproduces],
        "assumes": list(preset.assumes),
        "settings": _copied(preset.settings),
    }


def _copied(value: object) -> object:
    """A copy in new mappings and lists, so that YAML writes no aliases."""
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value
