"""A tiny collection and settings that train in a moment."""

import pytest

from rungwise.core import to_plain
from rungwise.runs.study import PlannedRun, data_hash_of, identity_of_run
from tests.training.conftest import _no_waiting_for_the_disk, cache, coloured, once, small_config

__all__ = ["_no_waiting_for_the_disk", "cache", "coloured"]


@pytest.fixture(scope="session")
def base():
    """Settings of a run of one epoch, as the base of a study has them."""
    return {name: value for name, value in to_plain(once(small_config(), 1e-2)).items() if name != "preset"}


@pytest.fixture
def planned(tmp_path, coloured):
    """Function from settings to a planned run in a folder."""

    def plan(config, name="max", folder=None):
        identity = identity_of_run(config, data_hash_of(coloured))
        return PlannedRun(name, config, folder or tmp_path / "out" / name / f"seed-{config.seed}", identity)

    return plan
