"""``rungwise relevance SOURCE DATA``: every source is a subcommand, generated from its configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from rungwise.cli.frame import parse, with_ray
from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.text import idle_beside, idle_without, near_names
from rungwise.jobs import ADVANCED, console, flag, say, say_issues
from rungwise.jobs.sources import MadeDegrees, SaveOptions, made_degrees
from rungwise.relevance.combine import Cascade
from rungwise.relevance.config import CONFIGS, SOURCES, Building, HumanConfig, SourceConfig
from rungwise.relevance.human import HumanJudgements

TASKS = {
    "train-cross-encoder": (
        "rungwise.cli.relevance._pair_training",
        "Train a model of pairs on pairs that people scored",
    ),
    "model-scores": ("rungwise.cli.relevance._model_scores", "How alike a model finds pictures and captions"),
    "explain": ("rungwise.cli.relevance._explain", "Which facts of a text the captions of a picture state too"),
    "agree": ("rungwise.cli.relevance._agree", "How well a source agrees with people's judgements"),
}
"""Other tasks of relevance: module and purpose, by the word on the command line."""

_EXAMPLES = {
    "cbow": ("--vectors glove.6B.300d.txt --out degrees",),
    "cross-encoder": ("--model grader --out degrees",),
    "cascade": ("--model grader --out degrees", "--model grader --coarse tfidf --out degrees"),
    "human": ("--judgements judgements.jsonl --out people",),
    "visual": ("--vectors seen.npz --out looks", "--vectors seen.npz --through tfidf --out lent"),
    "combine": ("--of tfidf spice --weights 2 1 --out both", "--of tfidf spice --fit grades.csv --out both"),
}
"""Options of example command lines in the help of a source, where it needs some."""

_SHARES = (0.001, 0.01, 0.1)
_EXAMPLES_OF_A_RUNG = 5
_MANY_PAIRS = 1_000_000
_FEW_PAIRS = 2000
"""Number of pairs that are described where each costs a run of a model."""


@dataclass
class Described:
    """What is printed of the degrees.

    Attributes:
        show_rungs: Write an HTML page with examples of each rung. They are printed, too.
        thresholds: Degrees that cut the rungs, falling.
        shares: Without thresholds: share of the candidates on each rung but the last; default 0.001 0.01 0.1.
        examples: Pairs to show on each rung; default 5.
        pairs: How many pairs to sample; default a million, or 2000 where every pair costs a run of a model.
    """

    show_rungs: Path | None = field(default=None, metadata=WRITTEN_FILE)
    thresholds: tuple[float, ...] = field(default=(), metadata=ADVANCED)
    shares: tuple[float, ...] = field(default=(), metadata=ADVANCED)
    examples: int | None = field(default=None, metadata=ADVANCED)
    pairs: int | None = field(default=None, metadata=ADVANCED)

    IDLE = (idle_without("shares examples", "show_rungs"), idle_beside("shares", "thresholds"))


def main(arguments: list[str]) -> int:
    """Build the source, save, describe and show its degrees."""
    if not arguments:
        say(_overview())
        return 0
    if arguments[0] in ("-h", "--help"):
        say(_overview())
        raise SystemExit(0)  # as the help of every other command ends
    if arguments[0] in TASKS:
        module, _ = TASKS[arguments[0]]
        return int(import_module(module).main(arguments[1:]))
    if not SOURCES.has(arguments[0]):
        raise UserError(_misspelt(arguments[0]))
    config, saved, described = _parsed(SOURCES.named(arguments[0]), with_ray(arguments[1:]))
    _check_options(described)
    made = made_degrees(config, saved)
    if isinstance(made.source, HumanJudgements):
        _say_judgements(made.source)
    else:
        _describe(made, config, described, saved.data)
    if isinstance(made.source, Cascade):
        say(str(made.source.report))
    return 0


def _overview() -> str:
    lines = ["usage: rungwise relevance SOURCE DATA [--out FOLDER] ...", ""]
    lines += ["How well every caption describes every picture, by one of these sources:", ""]
    lines += [f"  {config.kind:<14} {_purpose(config)}" for config in CONFIGS]
    others = SOURCES.names()[len(CONFIGS) :]
    lines += ["", f"Of your own: {', '.join(others)}"] if others else []
    lines += ["", "And besides:", ""]
    lines += [f"  {word:<20} {purpose}" for word, (_, purpose) in TASKS.items()]
    lines += ["", "rungwise relevance SOURCE --help says more."]
    return "\n".join(lines)


def _purpose(config: type[SourceConfig]) -> str:
    return (config.__doc__ or "").splitlines()[0].rstrip(".")


def _misspelt(name: str) -> str:
    near = near_names(name, [*SOURCES.names(), *TASKS], least=0.75)
    guess = f"did you mean {near[0]}? " if near else ""
    return (
        f"no source {name!r}; {guess}the source comes first, one of {', '.join(SOURCES.names())}; besides there are"
        f" {', '.join(TASKS)}"
    )


def _parsed(kind: type[SourceConfig], arguments: list[str]) -> tuple[SourceConfig, SaveOptions, Described]:
    """Options of one source, of what is saved, and of what is described."""
    groups: dict[str, type] = {"saved": SaveOptions, "config": kind}
    if kind is not HumanConfig:  # a sample of all pairs would hold hardly any that people judged
        groups["described"] = Described
    examples = _EXAMPLES.get(kind.kind, ("--out degrees",))
    flat = [(name, Annotated[one, tyro.conf.arg(name="")]) for name, one in groups.items()]
    asked: Any = parse(
        make_dataclass("Command", flat),
        arguments,
        f"rungwise relevance {kind.kind}",
        examples=[f"rungwise relevance {kind.kind} photos {options}" for options in examples],
        description=f"Degrees of relevance: {_purpose(kind)}.",
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return asked.config, asked.saved, getattr(asked, "described", Described())


def _check_options(described: Described) -> None:
    """Refuse meaningless numbers."""
    for name in ("examples", "pairs"):
        if getattr(described, name) is not None and getattr(described, name) < 1:
            raise UserError(f"{flag(name)} must be at least 1, got {getattr(described, name)}")
    if not all(high > low for high, low in pairwise((math.inf, *described.thresholds, -math.inf))):
        raise UserError(f"--thresholds must be numbers that fall, got {_spaced(described.thresholds)}")
    if not (all(share > 0 for share in described.shares) and sum(described.shares) < 1):
        raise UserError(f"--shares must be positive and add up to less than 1, got {_spaced(described.shares)}")


def _spaced(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.4g}" for number in numbers)


def _say_judgements(human: HumanJudgements) -> None:
    say_issues(human.issues)
    own = human.own
    say(f"human: {len(own):,} pairs judged, {int(own.sum()):,} of them a picture with its own caption")
    for what, grades in (("with their own picture", human.grades[own]), ("others", human.grades[~own])):
        if len(grades):
            say(f"{what}: mean {grades.mean():.3f}, from {grades.min():.3g} to {grades.max():.3g}")


def _describe(made: MadeDegrees, config: SourceConfig, asked: Described, place: object) -> None:
    """Print a description of the degrees, and the rungs with examples if requested."""
    from rungwise.relevance.description import render_rungs, rungs, rungs_page
    from rungwise.relevance.description.describe import describe, thresholds

    source, data = made.source, made.data
    if len(data) < 2:
        raise UserError(
            f"{place}: all captions of its one picture were written for it, so there are no degrees to describe;"
            " give two pictures or more"
        )
    pairs = asked.pairs or (_FEW_PAIRS if config.pairs_are_costly else _MANY_PAIRS)
    cuts, shares = asked.thresholds, asked.shares or _SHARES
    if asked.show_rungs is not None and not cuts:
        try:
            cuts = thresholds(source, shares, pairs=pairs)
        except UserError as error:
            raise UserError(f"--shares {_spaced(shares)}: {error}, or give --thresholds") from error
    of_words = not config.advice(data, Building())
    say(str(describe(source, at=cuts, pairs=pairs, name=config.kind, of_words=of_words)))
    if asked.show_rungs is None:
        return
    found = rungs(source, cuts, examples=asked.examples or _EXAMPLES_OF_A_RUNG, pairs=pairs)
    console.print(render_rungs(found, data))
    page = rungs_page(found, data, f"Rungs of {config.kind} on {data.name}")
    with replacing(asked.show_rungs) as draft:
        draft.write_text(page, encoding="utf-8")
    say(f"thresholds: {_spaced(cuts)}")
    if not asked.thresholds:
        reached = ", ".join(f"{rung.share:.3%}" for rung in found[:-1])
        say(f"shares: {', '.join(f'{share:.3%}' for share in shares)} asked; {reached} reached")
    say(f"rungs: {asked.show_rungs}")
