"""``rungwise grade``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.cli.frame import Browser, Limits, Port, parse
from rungwise.core import UserError, require, require_regular
from rungwise.core.disk import explained, require_writable_file
from rungwise.core.output import Progress
from rungwise.core.text import idle_beside, idle_where, person_name
from rungwise.jobs import ADVANCED, Layout, MemberKey, console, program, say, say_issues, shortest
from rungwise.serving import ServingLimits

if TYPE_CHECKING:
    from rungwise.grading import Questions
    from rungwise.relevance.human import Judgements

OUT = "judgements.jsonl"
"""Default name of the judgement file, beside FILE."""

_EXAMPLES = (
    "rungwise grade FALSE_NEGATIVES.csv --data flickr8k",
    "rungwise grade FALSE_NEGATIVES.csv --data flickr8k --limit 30 --grader Ada",
    "rungwise grade FALSE_NEGATIVES.csv --agreement",
)


@dataclass
class GradeCommand:
    """Ask people how well captions describe pictures, on a local page, and keep what they say.

    The judgements are read by evaluate --positives, by relevance human, and by training (data.judgements).

    Attributes:
        file: Table of pairs, with columns image and caption, such as evaluate --false-negatives writes.
        data: The collection whose pictures and captions FILE names.
        out: The judgement file. Default: judgements.jsonl beside FILE.
        grader: Name of the person. Default: asked for on the page, and kept in the browser.
        limit: Ask about so many pairs alone.
        agreement: Print how well graders agree, without a page.
        shuffle: Ask in an order that does not tell the ranks.
        seed: Of that order; with --limit, of the choice too.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    data: Path | None = None
    out: Path | None = None
    grader: str | None = None
    limit: int | None = None
    agreement: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    shuffle: bool = field(default=True, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)
    port: Port = 8000
    browser: Browser = True
    limits: Limits = field(default_factory=ServingLimits, metadata=ADVANCED)

    IDLE = (
        idle_beside(
            "data grader limit layout key seed port limits",
            "agreement",
            remedy="leave one of them out: {agreement} reads the judgements alone",
        ),
        idle_where(
            "seed",
            lambda asked: not asked.shuffle,
            "with {no_shuffle}, which asks in the order of FILE",
            "leave it out",
        ),
    )


def main(arguments: list[str]) -> int:
    """Serve the page until Ctrl-C, or print the agreement."""
    asked = parse(GradeCommand, arguments, "rungwise grade", examples=_EXAMPLES)
    require_regular(asked.file)
    out = asked.out or asked.file.with_name(OUT)
    if asked.agreement:
        _say_agreement(out)
        return 0
    data = _check(asked)
    from rungwise.grading import create_grading_app
    from rungwise.relevance.human import require_place
    from rungwise.serving import ServerSettings, serve_app

    require_writable_file(out)
    require_place(out)
    questions = _questions(asked, data)
    before = _judgements(out)
    if before is not None and before.issues:
        say_issues(before.issues)
    serve_app(
        lambda settings, _: create_grading_app(
            questions,
            out,
            file=asked.file.name,
            grader="" if asked.grader is None else person_name(asked.grader),
            next_command=_next(data.name, asked, out.name),
            settings=settings,
            places={path: path.name for path in (asked.file, data)},
        ),
        settings=ServerSettings(port=asked.port, limits=asked.limits),
        open_browser=asked.browser,
        ready=lambda address: say(
            f"{len(questions)} pairs to grade at {address}   (Ctrl-C ends)\njudgements are kept in {out}"
        ),
    )
    if _judgements(out) is not None:
        _say_agreement(out)
        say("next, with what people called right counted as right:")
        say(f"  {_next(shortest(data), asked, shortest(out))}")
    return 0


def _next(data: str, asked: GradeCommand, judgements: str) -> str:
    read_as = "" if asked.layout is None else f" --layout {quote(asked.layout)}"
    read_as += "" if asked.key == GradeCommand.key else f" --key {asked.key}"
    return f"{program()} evaluate MODEL {quote(data)}{read_as} --positives {quote(judgements)}"


def _check(asked: GradeCommand) -> Path:
    """The collection's path, after early checks of the options."""
    if asked.data is None:
        raise UserError(
            f"--data is missing: {asked.file} names pictures and captions by their ids, and people have to see them;"
            f" give the collection that was evaluated, as in rungwise grade {quote(str(asked.file))} --data DATA"
        )
    if asked.limit is not None and asked.limit < 1:
        raise UserError(f"--limit must be at least 1, got {asked.limit}")
    if asked.seed < 0:
        raise UserError(f"--seed must not be negative, got {asked.seed}")
    if asked.grader is not None:
        try:
            person_name(asked.grader)
        except UserError as error:
            raise UserError(f"--grader: {error}") from None
    return asked.data


def _questions(asked: GradeCommand, data: Path) -> Questions:
    """Pairs to grade; those that are left out are counted and listed."""
    from rungwise.data import read
    from rungwise.grading import read_questions, with_pictures

    every = read_questions(
        asked.file, read(data, layout=asked.layout, key=asked.key), shuffle=asked.shuffle, seed=asked.seed
    )
    with Progress("looking at pictures", min(len(every), asked.limit or len(every)), console) as bar:
        questions = with_pictures(every, asked.limit, bar.at)
    if questions.issues:
        say(f"{len(questions.issues)} left out:")
        say_issues(questions.issues)
    return questions


def _judgements(out: Path) -> Judgements | None:
    from rungwise.relevance.human import read_judgements, refuse_other_file

    with explained(out):
        refuse_other_file(out)
        found = read_judgements(out)
    return found if found.kept or found.issues else None


def _say_agreement(out: Path) -> None:
    from rungwise.grading import agreement_of

    found = _judgements(out)
    if found is None:
        raise UserError(f"{out}: holds no judgements yet; grade some pairs first, or name the file with --out")
    say_issues(found.issues)
    require("scipy", "how well graders agree")
    say(f"{out}: {len(found)} judgements of {len(found.pairs)} pairs")
    for line in agreement_of(found).lines():
        say(f"  {line}")
