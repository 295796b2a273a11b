"""A run for each of several seeds, and their mean and deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import UserError
from rungwise.jobs._terminal import say

if TYPE_CHECKING:
    from rungwise.runs import SeedRuns, Spread


def check_seeds(seeds: Sequence[int], words: Sequence[str]) -> None:
    """Refuse an invalid list of seeds, or --seed beside --seeds, before data are read."""
    if not seeds:
        return
    from rungwise.runs import checked_seeds

    if any(word == "--seed" or word.startswith("--seed=") for word in words):
        raise UserError("--seed and --seeds contradict each other; give one")
    try:
        checked_seeds(seeds)
    except UserError as error:
        raise UserError(f"--{error}") from None


def say_spreads(found: SeedRuns, out: Path) -> None:
    """Print the mean and deviation of several finished runs."""
    from rungwise.runs import SEEDS

    parts = {"validation of the best snapshots": found.validation}
    parts |= {f"test, protocol {protocol}": own for protocol, own in found.test.items()}
    for title, spreads in parts.items():
        say(spread_text(f"{title}, {len(found.folders)} seeds", spreads))
    for protocol, seed in found.median.items():
        rsum = found.test[protocol]["rsum"].values[sorted(found.folders).index(seed)]
        say(f"median run by rsum, protocol {protocol}: seed {seed}, rsum {rsum:.1f}")
    if not found.test:
        say("no test split in the data: nothing was tested")
    say(f"all numbers: {out / SEEDS}; runs: {', '.join(str(folder) for folder in found.folders.values())}")


def spread_text(title: str, spreads: Mapping[str, Spread]) -> str:
    """Lines of mean, deviation and interval of each measure.

    >>> from rungwise.runs import Spread
    >>> print(spread_text("validation of 2 seeds", {"i2t/R@1": Spread((20.0, 21.0))}))
    validation of 2 seeds                mean  deviation   95 % interval
      i2t/R@1                            20.5        0.7      14.1..26.9
    """
    from rungwise.evaluation.statistics import number_text
    from rungwise.metrics import parse

    room = max(32, len(title))
    lines = [f"{title:<{room}}{'mean':>9}{'deviation':>11}{'95 % interval':>16}"]
    for name, spread in spreads.items():
        unit = parse(name.rpartition("/")[2]).unit
        low, high = spread.interval
        mean, deviation = number_text(spread.mean, unit), number_text(spread.deviation, unit)
        between = "-" if math.isnan(low) else f"{number_text(low, unit)}..{number_text(high, unit)}"
        lines.append(f"  {name:<{room - 2}}{mean:>9}{deviation:>11}{between:>16}")
    return "\n".join(lines)
