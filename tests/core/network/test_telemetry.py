"""Libraries that report by themselves are switched off, unless somebody has said otherwise."""

import os

from rungwise.core.network import switch_off
from rungwise.core.network._telemetry import SWITCHES


def test_importing_the_package_has_set_every_switch() -> None:
    assert SWITCHES.keys() <= os.environ.keys()


def test_what_somebody_has_set_stays() -> None:
    variables = {"WANDB_ERROR_REPORTING": "true"}
    switch_off(variables)
    assert variables == SWITCHES | {"WANDB_ERROR_REPORTING": "true"}
