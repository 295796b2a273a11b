"""What spoils training on a collection, measuring on it, or a run: found by small checks, each with its cure."""

from rungwise.doctor.data_report import examine_data
from rungwise.doctor.finding import Finding, Report
from rungwise.doctor.roles import Roles
from rungwise.doctor.run_report import examine_run

__all__ = ["Finding", "Report", "Roles", "examine_data", "examine_run"]
