import tomllib
from pathlib import Path

import rungwise
from rungwise.core.version import __version__


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert rungwise.__version__ == __version__ == project["project"]["version"]
