"""Checks for what spoils training on a collection, measuring on it, or a run, each with a cure.

The checks of a run are loaded on first use, so that data are examined without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rungwise.doctor.data_report import examine_data
from rungwise.doctor.finding import Finding, Report
from rungwise.doctor.roles import Roles

if TYPE_CHECKING:
    from rungwise.doctor.run_report import examine_run

__all__ = ["Finding", "Report", "Roles", "examine_data", "examine_run"]


def __getattr__(name: str) -> Any:
    if name == "examine_run":
        from rungwise.doctor import run_report

        return run_report.examine_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
