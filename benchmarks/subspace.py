"""What a fit of the subspace methods takes as the number of samples grows, beside scikit-learn's CCA.

    python benchmarks/subspace.py [--widths 128+10 4096+300] [--samples 2173 20000 100000]

Samples of 20 classes are drawn once for each size and kept in files, which every fit maps into memory. Each fit runs in
a process of its own: printed are its seconds, the peak of what the process held above what it held before the fit
(pages of the mapped files are not counted), and by how much both grow from the size before. A method whose memory
grows with the square of the samples would grow 25-fold from 20,000 to 100,000.

The peer is ``sklearn.cross_decomposition.CCA`` with as many components as ours. It is given arrays in memory, which its
figure does not count either. Both read float32.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measuring import needs, status

PEER = "scikit-learn CCA"
METHODS = ("cca", "scm", "gmlda", "gmmfa", "mvda", "mlcca", "lcfs", "lgcfl")
CLASSES = 20
COMPONENTS = 10
ROUNDS = 20
"""Of the methods that go down in rounds, at most."""


@dataclass(frozen=True)
class Fit:
    """What a fit took.

    Attributes:
        seconds: Of the fit alone.
        megabytes: Peak above what the process held before.
        note: Such as a limit that it ran into.
    """

    seconds: float
    megabytes: float
    note: str = ""


def main() -> None:
    """Draw, fit, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--widths", nargs="+", default=["128+10", "4096+300"])
    options.add_argument("--samples", nargs="+", type=int, default=[2173, 20_000, 100_000])
    options.add_argument("--methods", nargs="+", default=[PEER, *METHODS])
    options.add_argument("--limit", type=float, default=600.0, help="seconds of one fit at most")
    options.add_argument("--folder", type=Path, help="where samples are kept; a temporary folder if not given")
    options.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # method, files: what a process of its own does
    asked = options.parse_args()
    if asked.one:
        print(json.dumps(vars(_one(asked.one[0], Path(asked.one[1])))))
        return
    needs(sklearn="rungwise[train]")
    with tempfile.TemporaryDirectory() as scratch:
        for widths in asked.widths:
            image, text = map(int, widths.split("+"))
            found: dict[str, list[Fit]] = {method: [] for method in asked.methods}
            for samples in asked.samples:
                place = (asked.folder or Path(scratch)) / f"{widths}-{samples}"
                _draw(place, samples, image, text)
                for method in asked.methods:
                    before = found[method][-1] if found[method] else None
                    found[method].append(_measured(method, place, asked.limit, before))
                    fit = found[method][-1]
                    print(f"  {samples:>7,} x {widths}  {method:<18}{_cell(fit)}", file=sys.stderr, flush=True)
            _print(f"{image:,} + {text:,} features, {CLASSES} classes, {COMPONENTS} components", asked.samples, found)


def _draw(place: Path, samples: int, image: int, text: int) -> None:
    """Rows of both sides in files, unless they are there."""
    place.mkdir(parents=True, exist_ok=True)
    if (place / "labels.npy").exists():
        return
    draw = np.random.default_rng(samples)
    labels = draw.integers(0, CLASSES, samples)
    for name, width in (("image", image), ("text", text)):
        means = draw.normal(size=(CLASSES, width)).astype(np.float32)
        mixing = np.linspace(1, 0.05, width, dtype=np.float32)  # some features vary more than others
        rows = np.lib.format.open_memmap(place / f"{name}.npy", "w+", np.float32, (samples, width))
        for begin in range(0, samples, 4096):
            some = labels[begin : begin + 4096]
            noise = draw.standard_normal((len(some), width), dtype=np.float32)
            rows[begin : begin + 4096] = (0.5 * means[some] + noise) * mixing
        rows.flush()
    np.save(place / "labels.npy", labels)


def _measured(method: str, place: Path, limit: float, before: Fit | None) -> Fit:
    if before is not None and before.note:
        return Fit(np.nan, np.nan, "not tried")
    command = [sys.executable, __file__, "--one", method, str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return Fit(np.nan, np.nan, f"> {limit:.0f} s")
    if done.returncode:
        return Fit(np.nan, np.nan, (done.stderr.strip().splitlines() or ["failed"])[-1][:40])
    return Fit(**json.loads(done.stdout))


def _one(method: str, place: Path) -> Fit:
    """A fit in this process."""
    image, text = (np.load(place / f"{name}.npy", mmap_mode="r") for name in ("image", "text"))
    labels = np.load(place / "labels.npy")
    run = _peer(np.array(image), np.array(text)) if method == PEER else _ours(method, image, text, labels)
    peak = _Peak()
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence; what it took to get there is what is measured
        run()
    return Fit(time.perf_counter() - begun, peak.end())


def _peer(image: np.ndarray, text: np.ndarray) -> Callable[[], object]:
    from sklearn.cross_decomposition import CCA

    return lambda: CCA(n_components=COMPONENTS).fit(image, text)


def _ours(method: str, image: np.ndarray, text: np.ndarray, labels: np.ndarray) -> Callable[[], object]:
    import sklearn.linear_model
    import sklearn.neighbors  # noqa: F401, loaded before the clock starts

    from rungwise.models import family

    settings = {"rounds": ROUNDS} if method in ("lcfs", "lgcfl") else {}
    model = family(method)(dimension=COMPONENTS, **settings)  # type: ignore[call-arg]
    return lambda: model.fit(image, text, labels)  # type: ignore[attr-defined]


class _Peak:
    """Watches what the process holds of its own: resident memory without pages of files."""

    def __init__(self) -> None:
        self._least = self._most = _anonymous()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self._most = max(self._most, _anonymous())

    def end(self) -> float:
        """Megabytes above the beginning, at most."""
        self._stop.set()
        self._watcher.join()
        return (max(self._most, _anonymous()) - self._least) / 1e6


def _anonymous() -> int:
    if not (held := status("RssAnon")):
        raise SystemExit("this machine does not say what a process holds (/proc/self/status)")
    return held


def _print(title: str, samples: list[int], found: dict[str, list[Fit]]) -> None:
    print(f"\n{title}; OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')}, {os.cpu_count()} cores")
    head = [f"{count:,} samples" for count in samples]
    print(f"{'':<18}{''.join(one.rjust(20) for one in head)}{'growth, last step':>22}{'x peer':>9}")
    peer = found.get(PEER, [])
    for method, fits in found.items():
        growth, ratio = "", ""
        if len(fits) > 1 and not (fits[-1].note or fits[-2].note):
            seconds, held = fits[-1].seconds / fits[-2].seconds, fits[-1].megabytes / fits[-2].megabytes
            growth = f"{seconds:.1f}x time {held:.1f}x MB"
        known = [(one, other) for one, other in zip(peer, fits, strict=False) if not (one.note or other.note)]
        if known and method != PEER:
            ratio = f"{known[-1][0].seconds / known[-1][1].seconds:.1f}"
        print(f"{method:<18}{''.join(_cell(fit).rjust(20) for fit in fits)}{growth:>22}{ratio:>9}")
    square = samples[-1] ** 2 * 8 / 1e6
    print(f"a matrix of samples with samples would take {square:,.0f} MB")
    print("x peer: its seconds by ours, at the largest size that both were fitted to")


def _cell(fit: Fit) -> str:
    return fit.note or f"{fit.seconds:.1f} s {fit.megabytes:,.0f} MB"


if __name__ == "__main__":
    main()
