"""Readers of texts: each takes a time in proportion to the text, and none is forgotten."""

import ast
import re
from pathlib import Path

import pytest

from tests.hostile import texts
from tests.hostile.conftest import assert_nothing_bad
from tests.house import PACKAGE

READ_ELSEWHERE = {
    "cli/": "what is typed by the owner of the machine, and what is printed",
    "jobs/": "the same, and what a program gives",
    "parts/": "names that the owner of the machine gives",
    "planning/": "the owner's own numbers",
    "training/": "settings, which are read as YAML",
    "evaluation/analysis/_false_negatives.py": "one look at the first letter",
    "core/compute/_memory.py": "what a library says of an error",
    "core/output/_printable.py": "cut before it is looked at",
    "core/output/_short_repr.py": "cut before it is looked at, and one look for the end of the first line",
    "evaluation/judgements/_human_positives.py": "a file, which is read by its own entry",
}
"""Functions with a text as their first argument that have no entry of their own, with the reason."""


def public_readers() -> set[str]:
    """Functions of the package that take one text and no path, and that others may call."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.args.args:
                first = node.args.args[0]
                kind = ast.unparse(first.annotation) if first.annotation else ""
                if first.arg == "text" and kind in ("str", "str | bytes"):
                    found.add(f"{path.relative_to(PACKAGE).as_posix()}: {node.name}")
    return found


def test_every_function_that_reads_a_text_has_an_entry() -> None:
    table = Path(texts.__file__).read_text(encoding="utf-8")
    missing = {
        one
        for one in public_readers()
        if not re.search(rf"\b{one.rpartition(': ')[2]}\b", table) and not one.startswith(tuple(READ_ELSEWHERE))
    }
    assert not missing, "add an entry to tests/hostile/texts.py, or say why there need be none"


def test_every_pattern_has_units_of_its_own() -> None:
    found = list(texts.all_patterns())
    assert len(found) > 100
    assert not [one.place for one in found if not texts.units_of(one.pattern)]


def square(text: str) -> None:
    """As the faults that were: at each place the rest of the text is looked through."""
    for place in range(0, len(text), 8):
        text.count("b", place)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "unit"),
    [
        (re.compile(r"\s*x\s*$").search, " "),
        (re.compile(r"(?:\s*,?\s+or|\s*,)+\s*$").search, " , "),
        (re.compile(r"\A---\s*\n(.*?\n)---\s*(\n|\Z)", re.DOTALL).match, "\n"),
        (square, "abcd"),
    ],
    ids=["blanks before an end", "lists", "front matter", "a loop"],
)
def test_a_time_that_grows_with_the_square_is_found(read, unit: str) -> None:
    frame = ("---\n" if unit == "\n" else "a", "b")
    assert texts.judged(texts.Entry("old", read), "old", unit, frame).verdict == "wrong"


@pytest.mark.slow
def test_a_time_in_proportion_is_not() -> None:
    entry = texts.Entry("good", lambda text: [text.count("b", place, place + 99) for place in range(len(text))])
    assert texts.judged(entry, "good", "abcd", ("", "")).verdict == "accepted"


@pytest.mark.slow
def test_every_reader_takes_a_time_in_proportion(tmp_path: Path) -> None:
    assert_nothing_bad("texts", "1/1", tmp_path, 3001, "--share", "0.05")
