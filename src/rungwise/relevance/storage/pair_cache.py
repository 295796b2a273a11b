"""Scores of pairs of texts in a file that only grows, known by hashes of the texts and of what scored them.

The file is a header line, then records of 24 bytes, little-endian: a key of two uint64, the score as float32, and the
CRC-32 of these. A record that was cut off or does not match its check, as after a crash, is skipped and its pair scored
again. Several processes may add to one file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import Check, UncheckedError, UserError, checked, checksums, is_regular, opened_file
from rungwise.core.disk import appending, explained
from rungwise.core.disk.locks import writing_alone

__all__ = ["KEY", "Keys", "PairCache", "is_pair_cache", "verify"]

KEY = np.dtype([("high", "<u8"), ("low", "<u8")])
_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("score", "<f4"), ("check", "<u4")])
_COVERED = _RECORD.itemsize - 4
"""Bytes of a record that its check covers."""

_HEADER = b"rungwise pair scores 1 \n"
_SECONDS = 2.0
"""Runs between two additions to the file grow until they take this long; an interruption loses twice this at most."""

_FEWEST, _MOST = 64, 16384
"""Pairs of a run: at least a batch of a slow source, at most what a fast one should hold in memory at once."""

assert len(_HEADER) == _RECORD.itemsize, "records stay aligned with the file's beginning"


class Keys:
    """Keys of pairs of captions: 128 bits of the scoring model and the two texts.

    Texts are hashed one by one; pairs of hashes are mixed in bulk, since there are so many more.

    Args:
        texts: (captions,) texts.
        fingerprint: Hash of what decides a score besides the texts.
        symmetric: (a, b) and (b, a) have one key.
    """

    def __init__(self, texts: Sequence[str], fingerprint: str, *, symmetric: bool) -> None:
        seed = hashlib.blake2b(f"{fingerprint} {symmetric}".encode(), digest_size=16).digest()
        digests = b"".join(
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=seed, digest_size=32).digest() for text in texts
        )
        self._hashes = np.frombuffer(digests, "<u8").reshape(len(texts), 4)
        self._symmetric = symmetric

    def of(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.void]:
        """(n,) keys, of type :data:`KEY`, of caption ``first[k]`` with caption ``second[k]``."""
        a, b = self._hashes[first], self._hashes[second]
        if self._symmetric:
            swap = (a[:, 0] > b[:, 0])[:, None]
            a, b = np.where(swap, b, a), np.where(swap, a, b)
        keys = np.empty(len(first), KEY)
        keys["high"] = _mixed(a[:, 0] + _mixed(b[:, 1]))
        keys["low"] = _mixed(a[:, 2] + _mixed(b[:, 3]))
        return keys


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64 bits that scatters them: the finaliser of SplitMix64 (Steele et al. 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class PairCache:
    """Scores by key, in memory and in a file.

    Args:
        path: The file, made when missing; None keeps scores in memory only.
        clock: Clock in seconds that times the runs.

    Attributes:
        skipped: Number of damaged records in the file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores"
    >>> keys = Keys(["a dog", "a cat"], "model", symmetric=False).of(np.array([0]), np.array([1]))
    >>> PairCache(file).add(keys, np.array([0.5], np.float32))
    >>> PairCache(file).look_up(keys)
    (array([0.5], dtype=float32), array([ True]))
    """

    def __init__(self, path: Path | None, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._path = path
        self._clock = clock
        self._keys = np.empty(0, KEY)
        self._scores = np.empty(0, np.float32)
        self._added: list[tuple[NDArray[np.void], NDArray[np.float32]]] = []
        self.skipped = 0
        if path is not None:
            if path.exists():
                self._read(path)
            # Before the first score is paid for, and not after it, a place that cannot be written is found out.
            self._append(path, b"")

    def __len__(self) -> int:
        """Number of scores."""
        self._settle()
        return len(self._keys)

    def look_up(self, keys: NDArray[np.void]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(n,) float32 scores, 0 where unknown, and (n,) bool, whether each is known."""
        self._settle()
        if not len(self._keys):
            return np.zeros(len(keys), np.float32), np.zeros(len(keys), np.bool_)
        # Two keys that agree in their first half only are as good as impossible; the later one would be scored anew.
        place = np.minimum(np.searchsorted(self._keys["high"], keys["high"]), len(self._keys) - 1)
        known = self._keys[place] == keys
        return np.where(known, self._scores[place], np.float32(0)), known

    def add(self, keys: NDArray[np.void], scores: NDArray[np.float32]) -> None:
        """Add (n,) scores by (n,) keys; when this returns they are on the disk. A UserError if that is impossible."""
        self._added.append((keys.copy(), scores.copy()))
        if self._path is None:
            return
        records = np.empty(len(keys), _RECORD)
        records["high"], records["low"], records["score"] = keys["high"], keys["low"], scores
        records["check"] = checksums(records.tobytes(), _RECORD.itemsize, _COVERED)
        self._append(self._path, records.tobytes())

    def completed(
        self,
        keys: NDArray[np.void],
        sizes: NDArray[np.int64],
        score: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        ran: Callable[[int, int, float], None] | None = None,
    ) -> NDArray[np.float32]:
        """(n,) scores by (n,) different keys; those that are missing are computed and kept, a run at a time.

        Args:
            keys: Keys of the pairs, all different.
            sizes: (n,) length of the texts of each pair.
            score: Computes the scores of positions in ``keys``.
            ran: Called after every run with the number of its pairs, the number of pairs still to score, and its
                seconds.
        """
        scores, known = self.look_up(keys)
        missing = np.flatnonzero(~known)
        # Pairs of like length go together, so that few tokens are padding; the longest first, so that memory runs out
        # at once or never.
        missing = missing[np.argsort(-sizes[missing], kind="stable")]
        size, start = _FEWEST, 0
        while start < len(missing):
            run = missing[start : start + size]
            start += len(run)
            began = self._clock()
            scores[run] = score(run)
            seconds = self._clock() - began
            self.add(keys[run], scores[run])
            if ran is not None:
                ran(len(run), len(missing) - start, seconds)
            size = min(2 * size, _MOST) if seconds < _SECONDS else max(size // 2, _FEWEST)
        return scores

    def _append(self, path: Path, records: bytes) -> None:
        with explained(path), writing_alone(path.parent, name=f"{path.name}.lock"), appending(path) as file:
            # What a crash cut off is filled up to a whole record, which its check then tells apart.
            size = file.tell()
            file.write(_HEADER[size:] or b"\0" * (-size % _RECORD.itemsize))
            file.write(records)

    def _read(self, path: Path) -> None:
        with opened_file(path, None) as file:
            data = file.read()
        keys, scores, self.skipped = _sound(path, data)
        self._added.append((keys, scores))

    def _settle(self) -> None:
        """Sort new scores in among the others, so that they can be found by bisection."""
        if not self._added:
            return
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._added)])
        scores = np.concatenate([self._scores, *(scores for _, scores in self._added)])
        order = np.argsort(keys["high"], kind="stable")
        self._keys, self._scores = keys[order], scores[order]
        self._added = []


def verify(path: Path) -> Iterator[Check]:
    """Check every record of a file of scores; nothing is written."""
    yield checked(str(path), lambda: _looked_through(path))


def is_pair_cache(path: Path) -> bool:
    """Whether a path is a file of scores, by its header; the records may be damaged."""
    if not is_regular(path):
        return False
    with opened_file(path, None) as file:
        return file.read(len(_HEADER)) == _HEADER


def _looked_through(path: Path) -> str:
    with opened_file(path, None) as file:
        data = file.read()
    keys, scores, damaged = _sound(path, data)
    cut = len(data) % _RECORD.itemsize
    if damaged or cut:
        and_cut = " and the last one is cut off" if cut else ""
        raise UserError(
            f"{path}: {damaged} of {len(keys) + damaged} scores are damaged{and_cut}; they are passed over and computed"
            " again when they are needed"
        )
    if not np.isfinite(scores).all():
        raise UserError(f"{path}: {np.count_nonzero(~np.isfinite(scores))} scores are NaN or infinite; remove the file")
    if not len(keys):
        raise UncheckedError("it holds no scores")
    return f"{len(keys)} scores, each with its check"


def _sound(path: Path, data: bytes) -> tuple[NDArray[np.void], NDArray[np.float32], int]:
    """Keys and scores of the undamaged records, and the number of damaged ones."""
    if not data.startswith(_HEADER) and not _HEADER.startswith(data):
        raise UserError(f"{path}: is no cache of pair scores; choose another file")
    records = np.frombuffer(data, _RECORD, count=len(data) // _RECORD.itemsize)[1:]
    sound = records[records["check"] == checksums(records.tobytes(), _RECORD.itemsize, _COVERED)]
    keys = np.empty(len(sound), KEY)
    keys["high"], keys["low"] = sound["high"], sound["low"]
    return keys, sound["score"].copy(), len(records) - len(sound)
