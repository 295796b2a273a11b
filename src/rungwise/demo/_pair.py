"""Training of both models at once, in two processes with one thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, cast

from rungwise.core import UserError
from rungwise.demo._places import NAMES, RECIPES, TITLES, Name, Places
from rungwise.demo._progress import Bars

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_SECONDS_TO_END = 10


def train_both(places: Places, device: str, bars: Bars, recipes: Mapping[Name, str] = RECIPES) -> None:
    """Train, index and calibrate both models from the scenes in the folder.

    If one of them ends early, the other is ended as well, also on Ctrl-C; neither goes on after this has returned.

    Args:
        places: Folders of the demo.
        device: Device of both models.
        bars: Bars that show the progress.
        recipes: A preset or a configuration file for each model.

    Raises:
        UserError: If one of them fails; the message says which, and why.
    """
    heard: SimpleQueue[tuple[Name, dict[str, Any] | None]] = SimpleQueue()
    with ExitStack() as stack, bars:
        running = {name: stack.enter_context(_process(name, places, recipes[name], device)) for name in NAMES}
        for name, (process, _) in running.items():
            Thread(target=_listen, args=(name, process, heard), daemon=True).start()
        left = set(NAMES)
        while left:
            name, told = heard.get()
            if told is None:
                process, complaints = running[name]
                left.discard(name)
                if code := process.wait():
                    raise UserError(f"training of the model {name!r} failed: {_reason(code, complaints)}")
            elif "error" in told:
                raise UserError(f"training of the model {name!r} failed: {told['error']}")
            else:
                bars.show(name, told)


@contextmanager
def _process(name: Name, places: Places, recipe: str, device: str) -> Iterator[tuple[subprocess.Popen[str], IO[bytes]]]:
    """Context with a process, which ends with the block, and the file of its error output."""
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [sys.executable, "-m", "rungwise.demo._worker", name, str(places.folder), recipe, device],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, **_ONE_THREAD},
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        try:
            yield process, complaints
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listen(name: Name, process: subprocess.Popen[str], heard: SimpleQueue[tuple[Name, dict[str, Any] | None]]) -> None:
    """Pass on the reports of a process, and then None when it has ended; other lines of output are dropped."""
    with cast(IO[str], process.stdout) as lines:
        for line in lines:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if isinstance(told, dict):
                heard.put((name, told))
    heard.put((name, None))


def _reason(code: int, complaints: IO[bytes]) -> str:
    if code < 0:
        return f"its process was ended by signal {-code}; there may be too little memory"
    complaints.seek(0)
    lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
    return " ".join(lines[-1].split()) if lines else f"its process ended with {code}"


def titles() -> dict[Name, str]:
    """Titles of the models beside the bars."""
    return {name: title.removeprefix("Trained ") for name, title in TITLES.items()}
