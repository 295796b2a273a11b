"""``rungwise doctor``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core.output import Progress, printable
from rungwise.core.text import idle_where
from rungwise.jobs import ADVANCED, JoinRestval, Layout, MemberKey, console, messages_apart, say

if TYPE_CHECKING:
    from rungwise.doctor import Report

_EXAMPLES = ("rungwise doctor photos", "rungwise doctor photos --config vsepp", "rungwise doctor run --json")
_WIDTH, _ISSUES = 80, 5


@dataclass
class Doctor:
    """What is wrong with data or with a run: what was found, its numbers, and the cure.

    Of data: pictures and captions that stand in two splits, odd splits, odd features, missing words and labels. Of a
    run: collapse, a loss that explodes or is stuck, empty rungs, and more. Nothing is written. Ends with status 1 if a
    fault was found, and 0 otherwise.

    Attributes:
        place: Data that rungwise inspect reads, or the folder of a run.
        config: Preset or file that says splits and vocabulary. Default: those of VSE++.
        train: Splits that are trained on. Overrides the configuration's.
        validation: Split that chooses the snapshot. Overrides the configuration's.
        test: Split that is measured on.
        data: Of a run: where its data are now, if they have moved.
        json: Print one JSON object and nothing else.
    """

    place: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA|RUN")]
    config: str | None = None
    train: tuple[str, ...] | None = field(default=None, metadata=ADVANCED)
    validation: str | None = field(default=None, metadata=ADVANCED)
    test: str = field(default="test", metadata=ADVANCED)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    data: Path | None = None
    json: bool = False

    IDLE = (
        idle_where(
            "config train validation test layout key join_restval",
            lambda asked: asked.is_run,
            "for a run, whose configuration says how its data are read",
        ),
        idle_where("data", lambda asked: not asked.is_run, "for DATA, and is for a run whose data have moved"),
    )

    @property
    def is_run(self) -> bool:
        """The place is the folder of a run."""
        from rungwise.doctor import is_run

        return is_run(self.place)


def main(arguments: list[str]) -> int:
    """Examine data or a run, and print the findings."""
    asked = parse(Doctor, arguments, "rungwise doctor", examples=_EXAMPLES)
    with messages_apart(asked.json), ExitStack() as bars:
        report = _report(asked, _Bars(bars))
    if asked.json:
        print(json.dumps(report.to_plain(), indent=2))
    else:
        for line in _lines(report):
            say(line)
    return 1 if report.has_faults else 0


class _Bars:
    """Progress bars for each slow check, one after the other."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._bar: Progress | None = None

    def __call__(self, title: str, more: int, total: int) -> None:
        if self._bar is None or self._bar.title != title:
            self._stack.close()
            self._bar = self._stack.enter_context(Progress(title, total, console))
        self._bar.advance(more)


def _report(asked: Doctor, progress: _Bars) -> Report:
    if asked.is_run:
        from rungwise.doctor import examine_run

        return examine_run(asked.place, asked.data, progress=progress, say=say)
    from rungwise.data import read
    from rungwise.doctor import MIN_COUNT, Roles, examine_data

    roles, layout, key, join_restval = Roles(), asked.layout, asked.key, asked.join_restval
    min_count: int | None = MIN_COUNT
    if asked.config is not None:
        from rungwise.training.config import load_config

        config = load_config(asked.config)
        roles = Roles(config.data.train, config.data.validation)
        min_count = getattr(getattr(config.model, "text", None), "min_count", None)
        join_restval = join_restval or config.data.join_restval
        key = key if key != Doctor.key else config.data.key
        layout = layout or config.data.layout or None
    roles = Roles(asked.train or roles.train, asked.validation or roles.validation, asked.test)
    data = read(asked.place, layout=layout, key=key, join_restval=join_restval)
    return examine_data(data, roles, min_count=min_count, progress=progress)


def _lines(report: Report) -> Iterator[str]:
    yield report.subject
    for line in report.examined:
        yield from _wrapped(line, "  ")
    for line in report.left_out:
        yield from _wrapped(f"left out: {line}", "  ", "    ")
    if report.unreadable:
        yield from _wrapped(f"{len(report.unreadable)} things were skipped or doubted in reading:", "  ")
        for issue in report.unreadable[:_ISSUES]:
            yield from _wrapped(
                f"- {issue.kind}: {issue.where}{': ' if issue.detail else ''}{issue.detail}", "  ", "    "
            )
    for finding in report.findings:
        yield ""
        yield f"{finding.severity}: {finding.name}"
        yield from _wrapped(finding.what, "  ")
        yield from _wrapped(f"cure: {finding.cure}", "  ", "    ")
        for place in finding.places:
            yield from _wrapped(f"- {place}", "  ", "    ")
    yield ""
    missed = len(report.left_out) + len(report.unreadable)
    but = f" in what was looked at; {missed} {'thing was' if missed == 1 else 'things were'} not" if missed else ""
    yield _counted(report) if report.findings else f"nothing wrong found{but}"


def _counted(report: Report) -> str:
    faults, advice = (sum(one.severity == kind for one in report.findings) for kind in ("fault", "advice"))
    return (
        f"{faults} {'fault' if faults == 1 else 'faults'},"
        f" {advice} {'piece of advice' if advice == 1 else 'pieces of advice'}"
    )


def _wrapped(text: str, first: str, later: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        printable(" ".join(text.split())), _WIDTH, initial_indent=first, subsequent_indent=later or first
    )
