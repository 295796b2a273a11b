"""Fixtures that all tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that ``RUNGWISE_DATA`` names; skips where it is not set."""
    folder = os.environ.get("RUNGWISE_DATA")
    if not folder:
        pytest.skip("RUNGWISE_DATA is not set: no real data here")
    return Path(folder)
