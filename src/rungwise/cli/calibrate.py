"""``rungwise calibrate``."""

from __future__ import annotations

from rungwise.cli.calibrate_options import Calibrate
from rungwise.cli.parsing import parse

_EXAMPLES = (
    "rungwise calibrate run/model photos",
    "rungwise calibrate run/model photos --relevance degrees --relevant-from 0.5",
    "rungwise calibrate hf:google/siglip2-base-patch32-256 photos --index my.index",
    "rungwise calibrate photos.index",
)


def main(arguments: list[str]) -> int:
    """Learn, print what was learnt, write."""
    asked = parse(Calibrate, arguments, "rungwise calibrate", examples=_EXAMPLES)
    from rungwise.cli.calibrating import run

    return run(asked)
