"""Features and prepared pictures on disk: computed once, memory-mapped from then on.

A store is a folder of two files that only grow: ``rows.bin`` (fixed-size rows) and ``keys.bin`` (the SHA-256 of each
row's picture file). The folder's name is the hash of all else that a row depends on, so a row can never be stale.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from rungwise.core.cache_folder import default_cache
from rungwise.core.files import explained
from rungwise.data.collection import Issue
from rungwise.encoders.image import Backbone
from rungwise.encoders.preprocessing import Preprocessing
from rungwise.encoders.reading import prepared_batches

KEY_BYTES = 32
Progress = Callable[[int], None]


class RowStore:
    """Rows of one shape and type, found by a picture's digest.

    Rows are appended under a lock and a row counts only once its key is written, so a process killed in between
    leaves a store that is merely shorter.

    >>> import tempfile
    >>> store = RowStore(Path(tempfile.mkdtemp()) / "f", (2,), np.float32)
    >>> store.append([b"a" * 32], np.array([[1.0, 2.0]]))
    >>> store.find([b"b" * 32, b"a" * 32]).tolist()
    [-1, 0]
    >>> store.rows()[0].tolist()
    [1.0, 2.0]
    """

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.folder = folder
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.row_bytes = int(np.prod(shape)) * self.dtype.itemsize
        self._positions: dict[bytes, int] = {}
        self._known = 0

    def find(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """(keys,) position of each key's row, -1 where there is none."""
        self._read_keys()
        return np.array([self._positions.get(key, -1) for key in keys], dtype=np.int64)

    def rows(self) -> NDArray[Any]:
        """(rows, *shape) all rows, memory-mapped read-only."""
        count = self._count()
        if count == 0:
            return np.zeros((0, *self.shape), self.dtype)
        return np.memmap(self.folder / "rows.bin", self.dtype, mode="r", shape=(count, *self.shape))

    def append(self, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Add rows under their keys.

        Raises:
            UserError: If the disk is full; rows that were there before stay as they are.
        """
        values = np.ascontiguousarray(rows, self.dtype)
        if values.shape != (len(keys), *self.shape):
            raise ValueError(f"expected rows of shape {(len(keys), *self.shape)}, got {values.shape}")
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "lock"):
                start = self._count()
                for name, width, data in (
                    ("rows.bin", self.row_bytes, values.tobytes()),
                    ("keys.bin", KEY_BYTES, b"".join(keys)),
                ):
                    with (self.folder / name).open("ab") as file:
                        file.truncate(start * width)
                        file.write(data)
                        file.flush()

    def _count(self) -> int:
        sizes = [
            (self.folder / name).stat().st_size // width if (self.folder / name).exists() else 0
            for name, width in (("rows.bin", self.row_bytes), ("keys.bin", KEY_BYTES))
        ]
        return min(sizes)

    def _read_keys(self) -> None:
        count = self._count()
        if count > self._known:
            with (self.folder / "keys.bin").open("rb") as file:
                file.seek(self._known * KEY_BYTES)
                data = file.read((count - self._known) * KEY_BYTES)
            for offset in range(count - self._known):
                key = data[offset * KEY_BYTES : (offset + 1) * KEY_BYTES]
                self._positions.setdefault(key, self._known + offset)
            self._known = count


@dataclass(frozen=True)
class ImageRows:
    """What a model reads of each picture: its feature, or its prepared pixels.

    Attributes:
        source: (rows, ...) memory map.
        positions: (readable pictures,) row of each.
        kept: (readable pictures,) position of each among the pictures asked for.
        issues: The pictures that could not be read.
        computed: How many rows were made now; the others came from the cache.
        seconds: What making them took.
    """

    source: NDArray[Any]
    positions: NDArray[np.int64]
    kept: NDArray[np.int64]
    issues: tuple[Issue, ...]
    computed: int
    seconds: float

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, pictures: NDArray[np.int64]) -> Tensor:
        """(len(pictures), ...) rows of these readable pictures."""
        return torch.from_numpy(np.asarray(self.source[self.positions[pictures]]))


def feature_rows(
    backbone: Backbone,
    paths: Sequence[Path],
    cache: Path | None = None,
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> ImageRows:
    """The backbone's features of these pictures, computed where the cache has none.

    Args:
        backbone: In evaluation mode or not: features are always those of evaluation mode.
        paths: Picture files.
        cache: Folder of the cache; :func:`default_cache` if None.
        batch: Pictures a step.
        progress: Called with the number of pictures done since the last call.
    """
    store = RowStore(
        (cache or default_cache()) / "features" / backbone.fingerprint()[:32],
        (backbone.features,),
        np.float32,
    )
    device = next(backbone.parameters()).device

    def encode(pictures: Tensor) -> NDArray[Any]:
        with torch.inference_mode():
            values: NDArray[Any] = backbone(pictures.to(device)).cpu().numpy()
        return values

    training = backbone.training
    backbone.eval()
    try:
        return _rows(store, backbone.preprocessing, paths, encode, batch, progress)
    finally:
        backbone.train(training)


def pixel_rows(
    preprocessing: Preprocessing,
    paths: Sequence[Path],
    cache: Path | None = None,
    *,
    batch: int = 64,
    progress: Progress | None = None,
) -> ImageRows:
    """Resized and cropped pixels, (n, 3, size, size) uint8, for backbones that are trained."""
    identity = hashlib.sha256(repr(asdict(preprocessing)).encode()).hexdigest()[:32]
    shape = (3, preprocessing.size, preprocessing.size)
    store = RowStore((cache or default_cache()) / "pixels" / identity, shape, np.uint8)
    return _rows(store, preprocessing, paths, lambda pictures: pictures.numpy(), batch, progress)


def _rows(
    store: RowStore,
    preprocessing: Preprocessing,
    paths: Sequence[Path],
    encode: Callable[[Tensor], NDArray[Any]],
    batch: int,
    progress: Progress | None,
) -> ImageRows:
    """Digest all files, compute the rows that the store lacks, account for what could not be read."""
    start = time.perf_counter()
    issues: dict[int, Issue] = {}
    digests: list[bytes] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for position, outcome in enumerate(pool.map(_digest, paths)):
            digests.append(outcome if isinstance(outcome, bytes) else b"")
            if isinstance(outcome, Issue):
                issues[position] = outcome
    found = store.find(digests)
    first = {key: position for position, key in reversed(list(enumerate(digests))) if key}
    missing = [position for key, position in first.items() if found[position] < 0]
    missing.sort()
    if progress:
        progress(len(paths) - len(missing))
    computed = 0
    for part in prepared_batches([paths[position] for position in missing], preprocessing, batch):
        if part.positions:
            store.append([digests[missing[one]] for one in part.positions], encode(part.pictures))
        issues.update((missing[one], issue) for one, issue in part.issues)
        computed += len(part.positions)
        if progress:
            progress(part.asked)
    found = store.find(digests)
    for position in np.flatnonzero(found < 0).tolist():
        if position not in issues:  # the same bytes as an earlier file that could not be read
            twin = issues[first[digests[position]]]
            issues[position] = Issue(twin.kind, str(paths[position]), twin.detail)
    kept = np.flatnonzero(found >= 0)
    seconds = time.perf_counter() - start
    return ImageRows(store.rows(), found[kept], kept, tuple(issues[p] for p in sorted(issues)), computed, seconds)


def _digest(path: Path) -> bytes | Issue:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError as error:
        return Issue("missing picture", str(path), error.strerror or str(error))
