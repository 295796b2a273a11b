"""Process that makes one of the two models with its index, and reports progress in lines of JSON.

It ends with its parent: then nobody reads its reports, and writing the next one fails.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from rungwise.core import UserError
from rungwise.demo._places import NAMES, Places
from rungwise.training.tracking import EpochReport, StepReport, Watcher


class Telling(Watcher):
    """Watcher that writes reports to the standard output.

    >>> Telling().step(StepReport(3, 1, 3, 10, 0.5, 100.0, 0.5, 0.1, epochs=2))
    {"title": "epoch 1/2", "done": 3, "total": 20}
    """

    def __init__(self) -> None:
        self._title, self._done = "", 0

    def work(self, title: str, done: int, total: int) -> None:
        """Report further items of work that is not training."""
        self._done = done if title != self._title else self._done + done
        self._title = title
        tell(title=title, done=self._done, total=total)

    def step(self, report: StepReport) -> None:
        """Report steps of the whole run."""
        done = (report.epoch - 1) * report.steps + report.step
        tell(title=f"epoch {report.epoch}/{report.epochs}", done=done, total=report.steps * report.epochs)

    def epoch(self, report: EpochReport) -> None:
        """Report the validation result of an epoch."""
        tell(rsum=report.numbers["rsum"])


def tell(**what: object) -> None:
    """Print one report as a line of JSON."""
    print(json.dumps(what), flush=True)


def main(arguments: list[str]) -> int:
    """Train, index and calibrate a model; arguments are its name, the demo's folder, the recipe and the device."""
    # Ctrl-C reaches every process of the terminal. Whoever started this one hears it too, and ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    name, folder, recipe, device = arguments
    if name not in NAMES:
        raise ValueError(f"{name!r} is none of {NAMES}")
    places = Places(Path(folder))
    try:
        # Imported here, so that what is missing or damaged is told in a line as well.
        from rungwise.data import read
        from rungwise.demo._parts import index_test, train_one
        from rungwise.training.config import load_training

        data = read(places.scenes)
        model = train_one(name, places, data, Telling(), load_training(recipe), device)
        tell(title="indexing and calibrating", done=0, total=1)
        index_test(name, places, data, model)
    except UserError as error:
        tell(error=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
