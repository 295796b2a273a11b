"""Libraries that report by themselves are switched off, unless somebody has said otherwise."""

import os

from rungwise.core.network.telemetry import SWITCHES, switch_off


def test_importing_the_package_has_set_every_switch() -> None:
    assert SWITCHES.keys() <= os.environ.keys()


def test_what_somebody_has_set_stays() -> None:
    variables = {"WANDB_ERROR_REPORTING": "true"}
    switch_off(variables)
    assert variables == SWITCHES | {"WANDB_ERROR_REPORTING": "true"}
