"""``rungwise relevance agree SOURCE JUDGEMENTS``: how well a source of degrees agrees with people."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import tyro

from rungwise.cli.frame import parse
from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.text import idle_where, idle_without, refuse_idle
from rungwise.jobs import ADVANCED, Layout, MemberKey, Seldom, console, flag, say, say_issues

if TYPE_CHECKING:
    from rich.table import Table

    from rungwise.relevance.agreement import Agreed

_EXAMPLES = (
    "rungwise relevance agree tfidf sits_test.csv --data coco",
    "rungwise relevance agree '{kind: tfidf, orders: 2}' crowd.txt --data flickr8k",
    "rungwise relevance agree bi-encoder consensus_pascal.mat pair_pascal.mat",
)
_HEADS = {"all": "all pairs", "others": "captions of\nother pictures", "apart": "a caption apart\nfrom itself"}
_MOST_DRAWS = 100_000
_OF_PAIRS = idle_where("references", lambda _: True, "for judgements of pairs, which bring no texts of their own")


@dataclass
class Agree:
    """How well degrees of relevance agree with people's judgements.

    Attributes:
        source: A source of relevance by its name, or a folder of saved degrees. Options of a source stand in braces:
            "{kind: tfidf, reference: mean}".
        judgements: File of CxC, Flickr8K, Pascal-50S, VATEX-EVAL, or any grades. It is known by what it holds: a table
            with grades, Flickr8K's experts or crowd, the two MAT files of Pascal-50S, JSON, or what "rungwise grade"
            writes.
        data: The collection that was judged: folder or caption file. Judgements that bring their texts need none.
        json: Write the numbers here, too.
        with_pictures: Look for pictures and features too, for a source that reads them.
        references: Of judgements that bring their texts: take the first so many references of each.
        draws: How often judged items are drawn for the 95 % intervals; 0 for none.
        seed: Of the draws.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SOURCE")]
    judgements: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="JUDGEMENTS")]
    data: Path | None = None
    json: Path | None = field(default=None, metadata=WRITTEN_FILE)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    with_pictures: bool = field(default=False, metadata=ADVANCED)
    references: int | None = field(default=None, metadata=ADVANCED)
    draws: int = field(default=200, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)

    IDLE = (
        idle_without("layout key with_pictures", "data"),
        idle_where("seed", lambda asked: asked.draws == 0, "with {draws} 0, which draws nothing"),
    )


def main(arguments: list[str]) -> int:
    """Read judgements, compare them with the source, and print."""
    asked = parse(Agree, arguments, "rungwise relevance agree", examples=_EXAMPLES)
    _check(asked)
    from rungwise.data import read
    from rungwise.relevance.agreement import agree
    from rungwise.relevance.config import Building
    from rungwise.relevance.human import RatedPairs, read_judged

    judged = read_judged(asked.judgements)
    pairs = isinstance(judged, RatedPairs)
    if pairs and asked.data is None:
        raise UserError(f"{judged.name}: its judgements name images and captions; give the collection with --data")
    if pairs:
        refuse_idle(asked, _OF_PAIRS, option=flag)
    data = None
    if asked.data is not None:
        data = read(asked.data, layout=asked.layout, key=asked.key, captions_only=not asked.with_pictures)
    say_issues(() if data is None else data.issues)
    building = Building(say=say, progress=Seldom())
    found = agree(
        asked.source,
        judged,
        data,
        references=asked.references,
        draws=asked.draws,
        seed=asked.seed,
        building=building,
    )
    say_issues(found.issues)
    if found.fitted:
        say("warning: the source was fitted to these very judgements; judge it by others")
    say(f"{asked.source}, {found.judged}: {found.items:,} {found.what}{_left_out(found)}")
    console.print(render(found))
    if any(np.isnan(one.value) for part in found.parts for one in part.numbers.values()):
        say("-: all degrees or all grades are the same there, or there are fewer than two pairs")
    for line in lines(found):
        say(line)
    if asked.json is not None:
        found.to_json(asked.json, asked.source)
        say(f"written: {asked.json}")
    return 0


def _check(asked: Agree) -> None:
    if not 0 <= asked.draws <= _MOST_DRAWS:
        raise UserError(f"--draws must be 0 to {_MOST_DRAWS}, got {asked.draws}")
    if asked.seed < 0:
        raise UserError(f"--seed must be 0 or more, got {asked.seed}")
    if asked.references is not None and asked.references < 1:
        raise UserError(f"--references must be at least 1, got {asked.references}")
    if not asked.judgements:
        raise UserError("no file of judgements is given; write it after the source")


def _left_out(found: Agreed) -> str:
    said = [
        f"{count:,} {what}"
        for count, what in (
            (found.left_out, "left out, which have no degree or no grade"),
            (len(found.issues), "of what the collection lacks"),
        )
        if count
    ]
    return f" ({'; '.join(said)})" if said else ""


def render(found: Agreed) -> Table:
    """Table of the numbers with their intervals, at most 80 columns wide."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    names = list(dict.fromkeys(name for part in found.parts for name in part.numbers))
    if len(names) == 1:  # of each category
        for head in ("category", "pairs", names[0]):
            table.add_column(head, justify="left" if head == "category" else "right", no_wrap=True)
        for part in found.parts:
            table.add_row(part.name[:40], f"{part.items:,}", str(part.numbers[names[0]]))
        return table
    table.add_column("")
    for part in found.parts:
        table.add_column(_HEADS[part.name], justify="right", no_wrap=True)
    table.add_row("compared", *(f"{part.items:,}" for part in found.parts))
    for name in names:
        # The interval stands below its number, so that three of them fit.
        table.add_row(name, *(str(part.numbers[name]).replace(" ", "\n", 1) for part in found.parts))
    return table


def lines(found: Agreed) -> list[str]:
    """Lines on the agreement of the raters, and the numbers that the literature prints.

    >>> from rungwise.relevance.agreement import Agreed
    >>> from rungwise.relevance.agreement._scoring import Estimate
    >>> one = Estimate(0.5, 0.4, 0.6)
    >>> lines(Agreed("a.csv", "pairs", 9, 0, 3, 0.71, (), "as people count", {"tau-b": one}))
    ["up to 3 ratings of one item; Krippendorff's alpha (ordinal) 0.710", 'as people count:', '  tau-b ...']
    """
    said = []
    if found.raters > 1 and found.alpha == found.alpha:
        said.append(f"up to {found.raters} ratings of one item; Krippendorff's alpha (ordinal) {found.alpha:.3f}")
    return [*said, f"{found.protocol}:", *(f"  {name} {one}" for name, one in found.published.items())]
