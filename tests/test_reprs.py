"""Tests rungwise as a whole: what its values print in a session is short, however much they hold."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rungwise.core.output import MOST_LINES
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.evaluation import Comparison, Result, compare, evaluate
from rungwise.evaluation.benchmarks import BenchmarkResult
from rungwise.evaluation.inputs import RankedLists
from rungwise.evaluation.tables import ResultTable, paper_table
from rungwise.index import Answer
from rungwise.jobs import Run
from rungwise.jobs.studies import StudyOutcome
from rungwise.relevance.lexical import TfIdf
from rungwise.runs.curves import CurvePlot
from tests.house import exports_of, modules

MOST_COLUMNS = 120
MANY = 5_000
_MAPS = re.compile(r"Mapping|dict\[|Counter")
_LISTS = re.compile(r"tuple\[[^\[\]]*(\[.*\])?, \.\.\.\]|Sequence|list\[|frozenset|Iterable")
_ARRAYS = re.compile(
    r"NDArray|ArrayLike|Tensor|Block\b|Vectors|Positions|Values\b|Scores\b|Integers|Ratings|ImageInputs"
)
OWN_FORM = (Answer, BenchmarkResult, Comparison, CurvePlot, ImageCaptions, Result, ResultTable, Run, StudyOutcome)
"""Values whose text is made of their parts; real ones are tried."""


def is_setting(kind: type) -> bool:
    """Settings print whole: whoever keeps the text of an experiment keeps its settings."""
    return re.search("(Config|Settings|Limits)$", kind.__name__) is not None


def public_values() -> list[type]:
    """Dataclasses that a room exports and that can hold any number of things."""
    found = set()
    for room in (one for one, path in modules().items() if path.with_suffix(".pyi").is_file()):
        if room.startswith("rungwise.cli"):
            continue
        for name in exports_of(room):
            one = getattr(importlib.import_module(room), name)
            if not (isinstance(one, type) and is_dataclass(one)) or inspect.isabstract(one):
                continue
            if not is_setting(one) and one not in OWN_FORM:
                found.add(one)
    return sorted((one for one in found if any(True for _ in growing(one))), key=lambda one: one.__qualname__)


def growing(kind: Any) -> Iterator[tuple[str, Any]]:
    """Fields that can hold any number of things, each with a large value."""
    words = tuple(f"a dog number {place}" for place in range(MANY))
    for one in fields(kind):
        said = str(one.type)
        if not one.repr:
            continue
        if _MAPS.search(said):
            yield one.name, dict.fromkeys(words, words)
        elif _LISTS.search(said):
            yield one.name, words
        elif _ARRAYS.search(said):
            yield one.name, np.arange(MANY * 40.0).reshape(MANY, 40)


def filled(kind: Any) -> Any:
    """A value of this kind whose fields hold as much as they can, not checked."""
    value = object.__new__(kind)
    for one in fields(kind):
        object.__setattr__(value, one.name, "some words")
    for name, content in growing(kind):
        object.__setattr__(value, name, content)
    return value


def is_short(value: object) -> bool:
    lines = repr(value).splitlines()
    return len(lines) <= MOST_LINES and max(map(len, lines)) <= MOST_COLUMNS


def test_there_are_values_to_try() -> None:
    assert len(public_values()) > 80


@pytest.mark.parametrize("kind", public_values(), ids=lambda kind: kind.__qualname__)
def test_a_large_value_prints_a_dozen_lines(kind: type) -> None:
    assert is_short(filled(kind)), repr(filled(kind))[:2000]


@pytest.mark.real_data
def test_flickr8k_and_what_is_made_of_it_print_a_dozen_lines(real_data: Path) -> None:
    data = read(real_data / "flickr8k")
    assert len(data.image_ids) > 8000
    part = data.select(range(300))
    degrees = TfIdf(data.captions, data.image_of_caption, images=len(data.image_ids))
    generator = np.random.default_rng(0)
    results = [
        evaluate(
            similarity=generator.random((len(part.image_ids), len(part.captions))),
            image_of_caption=part.image_of_caption,
        )
        for _ in range(2)
    ]
    rows = FeatureRows(np.zeros((len(data.image_ids), 4), np.float32))
    lists = RankedLists({"i2t": [[0, 1]] * len(data.image_ids)}, (len(data.image_ids), len(data.captions)))
    for value in (data, part, degrees, rows, lists, *results, compare(results), paper_table("vsepp", "1")):
        assert is_short(value), repr(value)[:2000]
