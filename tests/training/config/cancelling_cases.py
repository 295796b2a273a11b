"""Settings that cancel each other, as the page of such settings lists them, and what is said of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from rungwise.core import Cancelled, from_plain, parse_yaml
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, TrainableScorer, VSEConfig
from rungwise.relevance import as_degrees
from rungwise.training.config import FitConfig, TrainConfig, cancelled, config_type, merged
from rungwise.training.distributed import Processes
from rungwise.training.engine._cancelled import _CHECKS, RunFacts
from tests.pages import pages_below

_CASE = re.compile(r"^\| (\d+) \| `(.+?)` \| (.*?) \| (refused|said) \| (.+) \|$", re.MULTILINE)
_ROW = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A row of the page: its number, settings as YAML, the data where they matter, and what is printed."""

    number: int
    settings: str
    data: str
    refused: bool
    line: str


def cases(page: str = "") -> list[Case]:
    """The cases of the page."""
    text = page or pages_below("reference/cancel")
    return [Case(int(n), s, d, how == "refused", line) for n, s, d, how, line in _CASE.findall(text)]


def rows(page: str = "") -> Iterator[tuple[list[str], str]]:
    """Patterns of settings, and what can cancel them."""
    for names, answer in _ROW.findall(page or pages_below("reference/cancel")):
        yield re.findall(r"`([^`]+)`", names), answer


def found(settings: str, data: str = "") -> list[Cancelled]:
    """What is found of settings that differ from the defaults, with the data that are named."""
    plain = parse_yaml(settings, "the case")
    if config_type(plain) is FitConfig:
        return cancelled(from_plain(FitConfig, plain, "the case"))
    if data:
        plain = merged({"model": {"image": {"kind": "features"}}}, plain)
    config = from_plain(TrainConfig, plain, "the case")
    if not data:
        return cancelled(config)
    return [one for check in _CHECKS for one in check(config, _facts(data, config))]


def _facts(data: str, config: TrainConfig) -> RunFacts:
    collection, model = _made(data)
    train = np.arange(len(collection))
    degrees = None
    if "degrees" in data:
        spread = np.linspace(
            0, 1 if "0..1" in data else 0, len(collection) * len(collection.captions), dtype=np.float32
        )
        degrees = as_degrees(spread.reshape(len(collection), -1), collection, "relevance=")
    return RunFacts(
        model, model.read(collection, train), degrees, torch.device("cpu"), Processes(), config.loss, "given" in data
    )


@cache
def _made(data: str) -> tuple[ImageCaptions, TrainableScorer]:
    captions = 1 if "one caption" in data else 3
    pictures = 1 if "one picture" in data else 30
    rows = np.random.default_rng(0).normal(size=(pictures, 5)).astype(np.float32)
    owners = np.repeat(np.arange(pictures), captions)
    texts = tuple(f"a word and {number}" for number in range(len(owners)))
    collection = ImageCaptions(tuple(map(str, range(pictures))), texts, owners, features=FeatureRows(rows))
    config = VSEConfig(
        image=FeatureConfig(), text=GRUConfig(word_dimension=4, min_count=1, frozen="frozen" in data), dimension=4
    )
    return collection, JointEmbedding.create(config, texts, collection.features)


def shown(number: int, settings: str, data: str) -> str:
    """The row of a case, with the first line that is found."""
    one: Any = found(settings, data)[0]
    return f"| {number} | `{settings}` | {data} | {'refused' if one.refused else 'said'} | {one.line} |"
