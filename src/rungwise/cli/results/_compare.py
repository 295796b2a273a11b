"""``rungwise compare``."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.cli.frame import parse
from rungwise.jobs import Compare, console, say

_EXAMPLES = ("rungwise compare first.json second.json",)


@dataclass
class CompareCommand(Compare):
    """Whether one model ranks better than another, or whether the difference may be chance.

    Attributes:
        most: Queries to list a direction. The JSON has them all.
    """

    most: int = 5


def main(arguments: list[str]) -> int:
    """Print the table and the changed queries, and write the JSON."""
    asked = parse(CompareCommand, arguments, "rungwise compare", examples=_EXAMPLES)
    from rungwise.evaluation import render_comparison
    from rungwise.jobs import compared_results

    written, asked.out = asked.out, None
    found = compared_results(asked)
    say(f"A: {asked.first}")
    say(f"B: {asked.second}")
    console.print(render_comparison(found))
    if found.only_in_one:
        say(f"only in one of them, not compared: {', '.join(found.only_in_one)}")
    for word, lists in (("better", found.better), ("worse", found.worse)):
        for direction, changes in lists.items():
            say(f"{direction}: {len(changes)} queries {word} in B by {found.by}")
            for change in changes[: max(0, asked.most)]:
                say(f"  {change.first:g} -> {change.second:g}  {change.query}")
    if written is not None:
        found.to_json(written)
        say(f"written: {written}")
    return 0
