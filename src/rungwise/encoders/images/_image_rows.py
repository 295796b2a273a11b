"""Features of a frozen encoder or prepared pixels of pictures, computed once and cached on disk.

A picture's file is read once: its bytes give the key of its row, and are decoded if there is none.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core import digest_of_parts
from rungwise.core.disk import usable_cache
from rungwise.core.output import short_repr
from rungwise.data import Issue
from rungwise.data.files import Picture
from rungwise.data.pictures import picture_name, read_picture
from rungwise.encoders._precision import PROBE, computing, device_of
from rungwise.encoders._preprocessing import Preprocessing
from rungwise.encoders._sides import PictureSide
from rungwise.encoders.images._pipeline import Encoded, at_once, encoded, prepared
from rungwise.encoders.images._random_crops import RandomCrops
from rungwise.encoders.row_cache import LAYOUT, Progress, RowStore, sound_positions

_TRIED = 4 * PROBE
_BY_ITSELF = 8
"""Number of pictures up to which a faster copy of a network does not pay."""
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class ImageRows:
    """The feature or the prepared pixels of each picture.

    Attributes:
        source: (rows, ...) memory map.
        positions: (readable pictures,) row of each.
        kept: (readable pictures,) position of each among the pictures asked for.
        issues: The pictures that could not be read.
        computed: Number of rows that were computed now and not taken from the cache.
        seconds: Seconds that computing them took.
        damaged: Number of cached rows that were damaged, and were computed again.
        crops: How pictures that are kept with a margin are cropped; None for other rows.
    """

    source: NDArray[Any]
    positions: NDArray[np.int64]
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...]
    computed: int
    seconds: float
    damaged: int = 0
    crops: RandomCrops | None = None

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, pictures: NDArray[np.int64]) -> Tensor:
        """(len(pictures), ...) rows of these readable pictures."""
        rows = torch.from_numpy(np.asarray(self.source[self.positions[pictures]]))
        return rows if self.crops is None else self.crops.centre(rows)

    def visit(self, pictures: NDArray[np.int64]) -> Tensor:
        """Rows as a training step sees them: random crops are drawn from torch's generator."""
        rows = torch.from_numpy(np.asarray(self.source[self.positions[pictures]]))
        return rows if self.crops is None else self.crops.drawn(rows)


def feature_rows(
    side: PictureSide,
    paths: Sequence[Picture],
    cache: Path | None = None,
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> ImageRows:
    """The encoder's features of these pictures, computed where the cache has none.

    Features in bfloat16 (:func:`~rungwise.encoders.computed_in`) have a cache of their own. ``auto`` chooses
    float32 where most of the first pictures have cached features in it.

    Args:
        side: The encoder, in any mode: features are always those of evaluation mode.
        paths: Picture files, or places in larger files.
        cache: Folder of the cache; see :func:`~rungwise.core.disk.usable_cache`.
        batch: Number of pictures of 224 x 224 in the network at a time; fewer of larger ones.
        progress: Called with the number of pictures done since the last call.
    """
    with _evaluating(side):
        folder, known = usable_cache(cache) / "features", side.fingerprint()[:32]
        store = RowStore(folder / f"{known}{LAYOUT}", side.feature_shape, np.float32)
        half = not (computing().precision == "auto" and _at_hand(store, paths)) and _in_half(side, paths)
        if half:
            store = RowStore(folder / f"{known}-bfloat16{LAYOUT}", side.feature_shape, np.float32)
        device = device_of(side)
        encode = _Encoding(side, half)
        return _rows(store, side.preprocessing, side.preprocessing.apply, paths, encode, device, batch, progress)


def pixel_rows(
    preprocessing: Preprocessing,
    paths: Sequence[Picture],
    cache: Path | None = None,
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> ImageRows:
    """Prepared pictures as uint8 pixels, for trained encoders and for random crops.

    Where each visit sees another crop, pictures are kept uncropped.

    Args:
        preprocessing: Preprocessing of the pictures.
        paths: Picture files, or places in larger files.
        cache: Folder of the cache; the default one if None.
        batch: Number of pictures whose rows are written together.
        progress: Called with the number of pictures done since the last call.
    """
    crops = RandomCrops(preprocessing) if preprocessing.draws else None
    known = repr(preprocessing.identity) if crops is None else crops.identity
    shape, make = (preprocessing.prepared_shape, preprocessing.apply) if crops is None else (crops.shape, crops.keep)
    folder = usable_cache(cache) / "pixels" / f"{digest_of_parts([known])[:32]}{LAYOUT}"
    store = RowStore(folder, shape, np.uint8)
    return _rows(store, preprocessing, make, paths, lambda pictures: pictures, _CPU, batch, progress, crops)


def picture_features(
    side: PictureSide,
    pictures: Sequence[Picture | bytes],
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> tuple[Tensor, NDArray[np.int64], tuple[Issue, ...]]:
    """The encoder's features of pictures, without a cache.

    Args:
        side: The encoder, in any mode.
        pictures: Files, places in larger files, or the bytes of files.
        batch: Number of pictures of 224 x 224 in the network at a time; fewer of larger ones.
        progress: Called with the number of pictures done since the last call.

    Returns:
        (kept, ...) features on the processor, the (kept,) positions of the pictures that could be read, and an issue
        for each of the others.
    """
    seen = side.preprocessing

    def prepare(position: int) -> Tensor | Issue:
        data = read_picture(source := pictures[position])
        return data if isinstance(data, Issue) else prepared(data, picture_name(source), seen.apply, seen.decoded_side)

    values, kept, issues = [np.zeros((0, *side.feature_shape), np.float32)], [], []
    with _evaluating(side):
        encode = _Encoding(side, _in_half(side, pictures), by_itself=len(pictures) <= _BY_ITSELF)
        device = device_of(side)
        for part in encoded(len(pictures), prepare, encode, device, batch=at_once(seen, batch)):
            if part.values is not None:
                values.append(part.values)
            kept += part.positions
            issues += [issue for _, issue in part.issues]
            if progress:
                progress(part.asked)
    return torch.from_numpy(np.concatenate(values)), np.array(kept, np.int64), tuple(issues)


class _Encoding:
    """Runs an encoder, by itself or as a faster copy that is made when first needed.

    Args:
        side: The encoder, in evaluation mode.
        half: Whether to compute in bfloat16.
        by_itself: Whether there are so few pictures that a copy does not pay, and their last bits do not matter.
    """

    def __init__(self, side: PictureSide, half: bool, by_itself: bool = False) -> None:
        self.side = side
        self.half = half
        self.by_itself = by_itself and not half
        self._run: Callable[[Tensor], Tensor] | None = None
        self._lock = Lock()

    def __call__(self, pictures: Tensor) -> Tensor:
        if self.by_itself:
            return torch.as_tensor(self.side(pictures))
        with self._lock:
            self._run = self._run or self.side.inference(self.half)
        return self._run(pictures)


@contextmanager
def _evaluating(side: PictureSide) -> Iterator[None]:
    training = side.training
    side.eval()
    try:
        yield
    finally:
        side.train(training)


def _in_half(side: PictureSide, pictures: Sequence[Picture | bytes]) -> bool:
    """Whether features are computed in bfloat16; ``auto`` tries the first pictures that can be read."""
    seen = side.preprocessing

    def sample() -> Tensor:
        found: list[Tensor] = []
        for source in pictures[:_TRIED] if len(pictures) >= PROBE else ():
            data = read_picture(source)
            one = data if isinstance(data, Issue) else prepared(data, "", seen.apply, seen.decoded_side)
            if isinstance(one, Tensor):
                found.append(one)
            if len(found) == PROBE:
                break
        return torch.stack(found) if found else torch.zeros(0)

    return computing().in_half(side, side.inference, sample)


def _at_hand(store: RowStore, paths: Sequence[Picture]) -> bool:
    """Whether most of the first pictures have cached rows."""
    held = store.keys()
    if not held:
        return False
    found = [read_picture(path) for path in paths[:PROBE]]
    keys = [hashlib.sha256(data).digest() for data in found if isinstance(data, bytes)]
    return 2 * sum(key in held for key in keys) > len(keys)


class _Reading:
    """Reads pictures in threads: each file's key, and its prepared picture (by ``make``) where no row is ``held``."""

    def __init__(
        self,
        paths: Sequence[Picture],
        preprocessing: Preprocessing,
        make: Callable[[Tensor], Tensor],
        held: frozenset[bytes],
    ) -> None:
        self.paths = paths
        self.shorter_side = preprocessing.decoded_side
        self.make = make
        self.held = held
        self.keys = [b""] * len(paths)
        self.first: dict[bytes, int] = {}
        self._lock = Lock()

    def __call__(self, position: int) -> Tensor | Issue | None:
        data = read_picture(self.paths[position])
        if isinstance(data, Issue):
            return data
        key = self.keys[position] = hashlib.sha256(data).digest()
        with self._lock:
            if key in self.held or self.first.setdefault(key, position) != position:
                return None
        return prepared(data, picture_name(self.paths[position]), self.make, self.shorter_side)


def _rows(
    store: RowStore,
    preprocessing: Preprocessing,
    make: Callable[[Tensor], Tensor],
    paths: Sequence[Picture],
    encode: Callable[[Tensor], Tensor],
    device: torch.device,
    batch: int,
    progress: Progress | None,
    crops: RandomCrops | None = None,
) -> ImageRows:
    """Compute the rows that the cache lacks, and collect issues of unreadable pictures."""
    start = time.perf_counter()
    issues: dict[int, Issue] = {}
    computed = 0
    reading = _Reading(paths, preprocessing, make, store.keys())

    def compute(pictures: Sequence[int]) -> Iterator[Encoded]:
        nonlocal computed
        at_a_time = at_once(preprocessing, batch)
        keys: list[bytes] = []
        values: list[NDArray[Any]] = []
        parts = encoded(
            len(pictures), lambda at: reading(pictures[at]), encode, device, batch=at_a_time, alike=crops is None
        )
        for part in parts:
            if part.values is not None:
                keys += [reading.keys[pictures[at]] for at in part.positions]
                values.append(part.values)
            if len(keys) >= at_a_time:
                store.append(keys, np.concatenate(values))
                keys, values = [], []
            issues.update((pictures[at], issue) for at, issue in part.issues)
            computed += len(part.positions)
            yield part
        if keys:
            store.append(keys, np.concatenate(values))

    for part in compute(range(len(paths))):
        if progress:
            progress(part.asked)
    held, unsound = sound_positions(store, [key if key in reading.held else b"" for key in reading.keys])
    damaged = [at for at, key in enumerate(reading.keys) if key in reading.held and held[at] < 0]
    if damaged:
        reading.first.update({reading.keys[at]: at for at in reversed(damaged)})
        reading.held = frozenset()
        for _ in compute([at for at in damaged if reading.first[reading.keys[at]] == at]):
            pass
    found = store.find(reading.keys)
    found[np.isin(found, unsound)] = -1
    for position in np.flatnonzero(found < 0).tolist():
        if position not in issues:  # the same bytes as another file that could not be read
            twin = issues[reading.first[reading.keys[position]]]
            issues[position] = Issue(twin.kind, picture_name(paths[position]), twin.detail)
    kept = np.flatnonzero(found >= 0)
    seconds = time.perf_counter() - start
    sorted_issues = tuple(issues[position] for position in sorted(issues))
    return ImageRows(store.rows(), found[kept], kept, sorted_issues, computed, seconds, len(unsound), crops)
