"""CITATION.cff has what the Citation File Format 1.2.0 requires, and the version of the package."""

import tomllib
from pathlib import Path

import yaml

from rungwise.core.version import __version__

REPOSITORY = Path(__file__).parents[1]
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_required_keys_are_there():
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["message"]
    assert CITATION["title"]
    assert CITATION["authors"] == [{"name": "rungwise developers"}]


def test_every_reference_has_what_the_format_requires():
    assert len(CITATION["references"]) == 5
    for reference in CITATION["references"]:
        assert {"type", "title", "authors"} <= set(reference)
        assert all(set(author) == {"family-names", "given-names"} for author in reference["authors"])


def test_version_and_licence_are_those_of_the_package():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert CITATION["version"] == project["version"] == __version__
    assert CITATION["license"] == project["license"]
