"""Choice of the preset of ``rungwise train SYSTEM DATA`` by the dataset that the data are recognised as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.cli.frame import HELP
from rungwise.core import UserError
from rungwise.training.config import datasets_of, is_preset_name, whole_name

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.data.layouts import Key


@dataclass(frozen=True)
class PresetChoice:
    """A preset that was chosen by the data, which were read for that, with the reason in one line."""

    name: str
    path: str
    key: Key
    layout: str
    data: ImageCaptions
    why: str


def choose_preset(arguments: Sequence[str]) -> PresetChoice | None:
    """Choose the preset for a system, which the first word may name, and its data, which are read for that.

    Returns:
        The choice; None where there is nothing to choose: a full name, a file, a system with one preset, or no data.

    Raises:
        UserError: If the data cannot be read, or stand at a wrong place on the line.
    """
    named = arguments[0] if arguments else ""
    system = named.partition(":")[0]
    if any(word in HELP for word in arguments) or "/" in system or not is_preset_name(named):
        return None
    if len(datasets_of(system)) == 1:
        return None
    path = _data(arguments[1:])
    if path is None:
        if len(arguments) > 1 and not arguments[1].startswith("-"):
            whole_name(named)  # a misspelt variant is the likelier mistake
        return None
    from rungwise.data import dataset_of, read

    key: Key = "stem" if "stem" in values_of(arguments, "--data.key") else "dot"
    layout = (values_of(arguments, "--data.layout") or [""])[-1]
    data = read(path, layout=layout or None, key=key)
    dataset = dataset_of(data)
    name = whole_name(named, dataset)
    known = f"{data.name} is recognised as {dataset}" if dataset else f"{data.name} is none of the known datasets"
    return PresetChoice(name, path, key, layout, data, f"{known}: this is rungwise train {name}")


def check_choice(named: str | None, picked: PresetChoice | None, path: str) -> None:
    """Refuse data at a place on the line where they could not choose the preset."""
    if picked is not None and Path(picked.path) == Path(path):
        return
    system = (named or "").partition(":")[0]
    if picked is not None or (named and "/" not in system and is_preset_name(named) and len(datasets_of(system)) > 1):
        raise UserError(f"name the data right after the preset, or give it whole, such as {whole_name(named or '')}")


def _data(words: Sequence[str]) -> str | None:
    """Path of the data: the first word, the value of --data.path, or a last word that no option takes."""
    if words and not words[0].startswith("-"):
        return words[0]
    for value in values_of(words, "--data.path"):
        return value
    if len(words) > 1 and (words[-2] == "--resume" or "=" in words[-2] or not words[-2].startswith("-")):
        return words[-1] if Path(words[-1]).exists() else None
    return None


def values_of(words: Sequence[str], option: str) -> list[str]:
    """What follows an option, each time that it is given."""
    apart = [after for word, after in pairwise(words) if word == option]
    return apart + [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
