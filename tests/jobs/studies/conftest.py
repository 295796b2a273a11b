"""A tiny collection with a test split, and studies of it that take a moment."""

from dataclasses import replace

import pytest

import rungwise
from tests.runs.study.conftest import _no_waiting_for_the_disk, base, cache, coloured


def numbers(found):
    """Mean and deviation of each number of each system in the table of a study."""
    return {
        line.name.partition(",")[0]: {name: (cell.value, cell.deviation) for name, cell in line.cells.items()}
        for block in (found.table.blocks if found.table else ())
        for line in block.lines
    }


__all__ = ["_no_waiting_for_the_disk", "base", "cache", "coloured", "numbers"]

ARMS = [{"name": "max"}, {"name": "sum", "loss": "sum_of_hinges"}]


@pytest.fixture(scope="session")
def tested(coloured):
    """The coloured pictures with a test split."""
    return replace(coloured, splits=tuple("test" if at >= 42 else one for at, one in enumerate(coloured.splits)))


@pytest.fixture
def study(base, tested, cache, tmp_path):
    """Function that runs a study of the given content, in the folder ``out`` of the test."""

    def run(*, options=(), **content):
        values = {"base": base, "arms": ARMS, "seeds": [0, 1], **content}
        given = {"data": tested, "out": tmp_path / "out", "cache": cache, "device": "cpu", "quiet": True}
        return rungwise.study(values, **{**given, **dict(options)})

    return run
