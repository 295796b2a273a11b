"""Telemetry of libraries, switched off before any of them is loaded.

Each reads a variable of the environment when it is imported, and some offer nothing else: onnxruntime has made a device
id and written events by the time that its own switch can be called. So ``import rungwise`` sets the variables, and the
processes that it starts inherit them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # nothing is imported: an interrupt is answered only once the command line is loaded
if TYPE_CHECKING:
    from collections.abc import MutableMapping

SWITCHES = {
    "ORT_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_ERROR_REPORTING": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
}
"""Value of each variable where nobody has set it."""


def switch_off(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set each of :data:`SWITCHES` that is not set yet; a variable that the user has set stays."""
    for variable, value in SWITCHES.items():
        environment.setdefault(variable, value)
