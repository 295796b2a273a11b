"""A whole demo on a small scale, made once and in this process: few pictures, one epoch."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rungwise.demo import Bars, Demo, Places, create_demo_app, export_demo, make, titles
from rungwise.demo import _pair as pair
from rungwise.demo import _worker as worker
from rungwise.demo._places import NAMES
from rungwise.scenes import SceneConfig
from rungwise.serving import ServerSettings, background_app
from tests.page.conftest import chromium, new_page, servers
from tests.serving.conftest import PATIENT

__all__ = ["chromium", "new_page", "servers"]

SMALL = SceneConfig(pictures=150, side=32, val_share=0.2, test_share=0.4)
QUERIES = 24
"""Number of queries of the exported page."""
COMMAND = "rungwise demo --export site"
RECIPE = """
model:
  image: {backbone: test_resnet, weights: random, size: 32, frozen: false, pool: flatten}
  text: {word_dimension: 8, min_count: 1}
  dimension: 16
loss: {kind: max_of_hinges, mask_above: %s}
epochs: [1]
learning_rates: [1.0e-3]
batch_size: 32
"""


@pytest.fixture(scope="session")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A configuration in a file for each model."""
    folder = tmp_path_factory.mktemp("recipes")
    for name, threshold in zip(NAMES, ("null", "1.0"), strict=True):
        (folder / f"{name}.yaml").write_text(RECIPE % threshold, encoding="utf-8")
    return {name: str(folder / f"{name}.yaml") for name in NAMES}


def _one_after_the_other(places: Places, device: str, bars: Bars, recipes: Mapping[str, str]) -> None:
    """In the place of two processes."""
    before = signal.getsignal(signal.SIGINT)
    try:
        for name in NAMES:
            assert worker.main([name, str(places.folder), recipes[name], device]) == 0
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, recipes: dict[str, str]) -> tuple[Places, Demo]:
    """A demo and where it lies. Nobody changes either."""
    places = Places(tmp_path_factory.mktemp("demo"))
    bars = Bars(titles(), Console(force_terminal=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair, "train_both", _one_after_the_other)
        return places, make(places, bars, "cpu", scenes=SMALL, recipes=recipes, queries=20)


@pytest.fixture(scope="session")
def demo(made: tuple[Places, Demo]) -> Demo:
    return made[1]


@pytest.fixture(scope="package")
def address(demo: Demo) -> Iterator[str]:
    """Of a server with the demo."""
    with background_app(
        lambda settings, _: create_demo_app(demo, settings=settings),
        settings=ServerSettings(limits=PATIENT),
    ) as found:
        yield found


@pytest.fixture(scope="session")
def exported(made: tuple[Places, Demo], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an exported page. Nobody changes it."""
    places, demo = made
    folder = tmp_path_factory.mktemp("exported") / "site"
    done: list[int] = []
    found = export_demo(demo, places, folder, COMMAND, queries=QUERIES, progress=done.append)
    assert done == [*range(QUERIES + 1)]
    assert found.size == sum(one.stat().st_size for one in folder.iterdir())
    return folder


@pytest.fixture(scope="session")
def known(exported: Path) -> dict[str, Any]:
    """What the page knows."""
    return answers_in(exported)


def answers_in(folder: Path) -> dict[str, Any]:
    """What an exported page in a folder knows."""
    text = (folder / "answers.js").read_text(encoding="ascii")
    found: dict[str, Any] = json.loads(text.removeprefix("globalThis.rungwiseDemo = ").removesuffix(";\n"))
    return found
