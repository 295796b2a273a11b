"""``rungwise calibrate``."""

from __future__ import annotations

from rungwise.cli.frame import parse
from rungwise.jobs.calibration import Calibrate

_EXAMPLES = (
    "rungwise calibrate run/model photos",
    "rungwise calibrate run/model photos --relevance degrees --relevant-from 0.5",
    "rungwise calibrate hf:google/siglip2-base-patch32-256 photos --index my.index",
    "rungwise calibrate photos.index",
)


def main(arguments: list[str]) -> int:
    """Learn a calibration, print a summary, and write it."""
    asked = parse(Calibrate, arguments, "rungwise calibrate", examples=_EXAMPLES)
    from rungwise.jobs.calibration import calibrated

    calibrated(asked)
    return 0
