"""The collection, the settings and the run that tests of training share."""

from tests.training.conftest import _no_waiting_for_the_disk, cache, coloured, config, trained_run

__all__ = ["_no_waiting_for_the_disk", "cache", "coloured", "config", "trained_run"]
