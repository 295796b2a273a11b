"""``rungwise index``."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.cli.frame import parse, with_ray
from rungwise.cli.index import _maintenance as maintenance
from rungwise.jobs import pasted, program, say
from rungwise.jobs.index import MakeIndex, make_index

_EXAMPLES = (
    "rungwise index photos",
    "rungwise index photos --model run/model --out index",
    "rungwise index photos --out index --watch",
    "rungwise index photos scans --out everything",
    "rungwise index s3://bucket/shards --out s3://bucket/index --ray HEAD:6379",
    "rungwise index compact INDEX",
    "rungwise index export INDEX --out rows.parquet",
)

WITHHELD = 3
"""Exit status where pictures are gone and were not removed from the index."""


@dataclass
class IndexCommand(MakeIndex):
    """Encode pictures (and their captions, if there are any) so that they can be searched.

    The same command again touches only what changed. An interrupted one goes on where it was. Four more commands look
    after an index: rungwise index compact, export, backup and restore.

    Attributes:
        watch: Stay, and index what changes, until Ctrl-C.
    """

    watch: bool = False


def main(arguments: list[str]) -> int:
    """Make an index or update one, and print what was done."""
    if arguments and (command := maintenance.COMMANDS.get(arguments[0])):
        return command(arguments[1:])
    asked = parse(IndexCommand, with_ray(arguments), "rungwise index", examples=_EXAMPLES)
    made = make_index(asked, watch=asked.watch)
    if asked.watch:
        return 0
    if made.changes.withheld:
        return WITHHELD
    ours, where = program(), pasted(made.place)
    say(f'next: {ours} search {where} "a text"   or   {ours} serve {where}')
    return 0
