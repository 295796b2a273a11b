"""``rungwise study``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rungwise.cli.frame import parse
from rungwise.jobs import Study, program, say, studied

if TYPE_CHECKING:
    from rungwise.jobs.studies import StudyOutcome

_EXAMPLES = (
    "rungwise study losses.yaml",
    "rungwise study losses.yaml --dry-run",
    "rungwise study losses.yaml --jobs 4",
)
_FAILED, _STOPPED = 1, 130


def main(arguments: list[str]) -> int:
    """Do what is missing of a study, and print its table; 1 where a run failed."""
    asked = parse(Study, arguments, "rungwise study", examples=_EXAMPLES)
    found = studied(asked, _show_plan if asked.dry_run else _show)
    if found.stopped:
        say(f"stopped; go on with: {program()} study {shlex.join(arguments)}")
        return _STOPPED
    return _FAILED if found.failed else 0


def _show_plan(found: StudyOutcome) -> None:
    for run in found.runs:
        say(f"  {run.name:<40} {run.text}")
    say(found.counted())
    if left := found.time_left():
        say(f"still to do: {left}")


def _show(found: StudyOutcome) -> None:
    if found.spreads:
        counts = {len(one.values) for own in found.spreads.values() for one in own.values()}
        seeds = f", mean ± deviation of {max(counts)} seeds" if max(counts) > 1 else ""
        say(f"{found.split} split{seeds}")
        for line in found.lines():
            say(f"  {line}")
    if found.winner:
        say(f"chosen on validation among the systems: {found.winner}; it alone was tested")
    for note in found.notes:
        say(note)
    for name, reason in found.failed.items():
        say(f"failed: {name}: {reason}")
    say(found.counted())
