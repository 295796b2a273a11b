"""``rungwise study``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.cli.frame import parse, with_ray
from rungwise.core import require_there
from rungwise.jobs import Study, program, say, studied

if TYPE_CHECKING:
    from rungwise.jobs.studies import StudyOutcome

_EXAMPLES = (
    "rungwise study losses.yaml",
    "rungwise study losses.yaml --dry-run",
    "rungwise study losses.yaml --jobs 4",
)
_FAILED, _STOPPED = 1, 130
_WIDEST = 120
"""Number of terminal columns that are used; longer lines are hard to follow."""


def main(arguments: list[str]) -> int:
    """Do what is missing of a study, and print its table; 1 where a run failed."""
    asked = parse(Study, with_ray(arguments), "rungwise study", examples=_EXAMPLES)
    if isinstance(asked.file, str):
        require_there(Path(asked.file))  # before what trains is loaded
    found = studied(asked, _show_plan if asked.dry_run else _show)
    if found.stopped:
        say(f"stopped; go on with: {program()} study {shlex.join(arguments)}")
        return _STOPPED
    if found.failed:
        print(f"rungwise study: {len(found.failed)} of {len(found.runs)} runs failed; see above", file=sys.stderr)
        return _FAILED
    return 0


def _show_plan(found: StudyOutcome) -> None:
    for run in found.runs:
        say(f"  {run.name:<40} {run.text}")
    for note in found.notes:
        say(note)
    say(found.counted())
    if left := found.time_left():
        say(f"still to do: {left}")


def _show(found: StudyOutcome) -> None:
    if found.table is not None:
        say(found.table.to_text(min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)))
        say("")
    for claim in found.claims:
        for line in claim.lines():
            say(line)
    if found.claims:
        say(
            "a claim holds, or is contradicted here, where the intervals over pictures and over seeds both leave out 0,"
            f" with Holm's correction for {len(found.claims)} claims"
        )
    if found.winner:
        say(f"chosen on validation among the systems: {found.winner}; it alone was tested")
    for note in found.notes:
        if found.table is None or note not in found.table.marks:
            say(note)
    for name, reason in found.failed.items():
        say(f"failed: {name}: {reason}")
    say(found.counted())
