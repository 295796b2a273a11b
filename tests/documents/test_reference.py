"""The reference of commands and settings: complete, each thing on one page, and each anchor once."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Annotated, Literal

import pytest
from pydantic import Field

from rungwise.cli import COMMANDS
from rungwise.training.config import TrainConfig
from tests.rooms import ROOT

pytest.importorskip("sphinx", reason="needs rungwise[docs]")
DOCS = ROOT / "docs"
PAGES = DOCS / "reference"


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    """The extension that writes the reference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "extensions")
        yield import_module("rungwise_reference")


def named(folder: str, directive: str) -> Counter[str]:
    """What the pages of a folder name by a directive, and how often."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((PAGES / folder).glob("*.md")))
    return Counter(name for text in texts for name in re.findall(rf"^```{{{directive}}} (.+)$", text, re.MULTILINE))


def test_each_command_stands_on_one_page(reference: ModuleType) -> None:
    assert named("commands", "command") == Counter(reference.command_names())
    assert set(COMMANDS) <= set(reference.command_names())


def test_the_index_has_a_line_for_each_command_with_its_purpose() -> None:
    text = (PAGES / "commands" / "index.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| \[`([\w-]+)`\]\((\w+)\.md#[\w-]+\) \| (.+) \|$", text, re.MULTILINE)
    assert {name: purpose for name, _, purpose in lines} == COMMANDS
    for name, page, _ in lines:
        assert f"{{command}} {name}\n" in (PAGES / "commands" / f"{page}.md").read_text(encoding="utf-8")


def test_each_configuration_stands_on_one_page(reference: ModuleType) -> None:
    found = Counter(reference.configuration(name) for name in named("settings", "settings").elements())
    assert found == Counter(reference.configurations())


def test_each_anchor_is_the_only_one_of_its_name(reference: ModuleType) -> None:
    options = Counter(
        reference.option_anchor(name, option)
        for name in reference.command_names()
        for option in reference.command_form(name).options
    )
    settings = Counter(
        reference.setting_anchor(config, setting)
        for config in reference.configurations()
        for setting in reference.settings_of(config)
    )
    assert [anchor for anchor, count in (options + settings).items() if count > 1] == []
    assert {"option-search-k", "option-relevance-source-out"} <= set(options)
    assert {"setting-train-config-batch-size", "setting-ladder-config-shares"} <= set(settings)


def test_every_option_and_setting_says_what_it_means(reference: ModuleType) -> None:
    silent = [
        f"{name} {option.label}"
        for name in reference.command_names()
        for option in reference.command_form(name).options
        if not option.help
    ]
    silent += [
        f"{config.__name__}.{setting.name}"
        for config in reference.configurations()
        for setting in reference.settings_of(config)
        if not setting.meaning
    ]
    assert silent == []


def test_a_setting_has_its_value_in_words_and_its_default(reference: ModuleType) -> None:
    found = {one.name: one for one in reference.settings_of(TrainConfig)}
    assert (found["batch_size"].kind, found["batch_size"].default) == ("whole number, 1 or more", "128")
    assert found["ema"].kind == "number, 0 or more, below 1"
    assert (found["optimizer"].kind, found["optimizer"].default) == ("one of adam, adamw, sgd", "adam")
    assert "cca" not in found["model"].kind
    assert next(one.name for one in reference.settings_of(TrainConfig, "run")) == "run.preset"


@dataclass(frozen=True)
class Own:
    """A configuration.

    Attributes:
        many: How many.
        which: Which ones.
    """

    many: Annotated[int, Field(ge=1)]
    which: tuple[Literal["a", "b"], ...] | None = None


def test_types_and_defaults_of_any_configuration_are_plain(reference: ModuleType) -> None:
    many, which = reference.settings_of(Own)
    assert (many.kind, many.default, many.meaning) == ("whole number, 1 or more", "required", "How many.")
    assert (which.kind, which.default) == ("list of: a or b, or null", "null")
    assert reference.purpose(Own) == "A configuration."
