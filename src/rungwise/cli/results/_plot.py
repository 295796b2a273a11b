"""``rungwise plot``."""

from __future__ import annotations

from pathlib import Path

from rungwise.cli.frame import parse
from rungwise.core import UserError, is_regular, read_bytes, require_there
from rungwise.jobs import Plot

_EXAMPLES = (
    "rungwise plot runs/vsepp runs/sam",
    "rungwise plot runs --kind recall --out recall.svg recall.png",
    "rungwise plot runs --by loss.negative_set --measures R@1",
)
_DEFAULT = Path("plot.svg")
_MADE_HERE = b"rungwise plot"
"""What stands in each picture of this command."""


def main(arguments: list[str]) -> int:
    """Draw the curves, and print what was written and what was left out."""
    asked = parse(Plot, arguments, "rungwise plot", examples=_EXAMPLES)
    for run in asked.runs:  # before what reads runs is loaded, torch among it
        if isinstance(run, str):
            require_there(Path(run))
    if not asked.out and asked.csv is None:
        _refuse_other(_DEFAULT)
        asked.out = (_DEFAULT,)
    from rungwise.jobs import plotted

    plotted(asked)
    return 0


def _refuse_other(path: Path) -> None:
    """Refuse to replace a file that nobody named, unless it is an earlier picture of this command."""
    if not path.exists():
        return
    if is_regular(path) and _MADE_HERE in read_bytes(path, "text_bytes")[:4096]:
        return
    raise UserError(f"{path}: is no picture of rungwise plot, and would be replaced; name a file with --out")
