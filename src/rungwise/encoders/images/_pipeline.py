"""Encoding of pictures on every core at once, or on a GPU one batch behind decoding.

On a processor each core takes some pictures, decodes them and runs the network on them by itself. If several cores
shared each layer of a network, they would wait for one another after each layer, and for the core that decodes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core import UserError
from rungwise.core.compute import cores, freed_memory_kept, startable, thread_pool
from rungwise.data import Issue
from rungwise.data.pictures import prepared_picture, unreadable_picture
from rungwise.encoders._preprocessing import Preprocessing

Job = TypeVar("Job")
Result = TypeVar("Result")

_ALIKE = 8
"""Number of pictures in a network on one core, where it must always be the same; as fast as larger numbers."""
_USUAL_PIXELS = 3 * 224 * 224
"""Pixels of a picture for which numbers of pictures a step are meant; of larger ones fewer are taken."""


@dataclass(frozen=True)
class Encoded:
    """The result of encoding some pictures.

    Attributes:
        positions: Positions of the encoded pictures among those asked for, ascending.
        values: (len(positions), ...) encoded values; None where there are none.
        issues: Position and reason of each picture that cannot be read.
        asked: Number of pictures that this accounts for; those in neither list needed nothing.
    """

    positions: list[int]
    values: NDArray[Any] | None
    issues: list[tuple[int, Issue]]
    asked: int


def encoded(
    count: int,
    prepare: Callable[[int], Tensor | Issue | None],
    encode: Callable[[Tensor], Tensor],
    device: torch.device,
    *,
    batch: int = 64,
    alike: bool = False,
) -> Iterator[Encoded]:
    """Prepare pictures in threads, encode them in batches, and yield the results in order.

    Args:
        count: Number of pictures.
        prepare: Function from a position to a prepared picture, to the issue of one that cannot be read, or to None for
            one that is left out; several threads call it.
        encode: Function from (n, ...) prepared pictures to (n, ...) values, both on ``device``; several threads call
            it, without gradients.
        device: Device of the network.
        batch: Number of pictures in the network at a time, on all cores together.
        alike: Whether a picture must get the same value to the last bit, whichever others it comes with and however
            many cores there are: the network then always sees the same number of pictures, on a processor with one
            core.

    >>> pictures = [torch.zeros(1), Issue("unreadable picture", "b.jpg"), torch.ones(1)]
    >>> found = list(encoded(3, pictures.__getitem__, lambda some: some + 1, torch.device("cpu"), batch=1))
    >>> [(one.positions, one.values) for one in found if one.positions]
    [([0], array([[1.]], dtype=float32)), ([2], array([[2.]], dtype=float32))]
    """
    if device.type == "cpu":
        return _on_cores(count, prepare, encode, batch, alike)
    return _on_device(count, prepare, encode, device, batch, alike)


def at_once(preprocessing: Preprocessing, batch: int) -> int:
    """Number of pictures that take as much memory as ``batch`` pictures of the usual size."""
    return max(1, min(batch, batch * _USUAL_PIXELS // int(np.prod(preprocessing.prepared_shape))))


def prepared(data: bytes, name: str, make: Callable[[Tensor], Tensor], shorter_side: int | None) -> Tensor | Issue:
    """A decoded picture after ``make``, or the issue why it cannot be decoded."""
    try:
        return prepared_picture(data, make, shorter_side=shorter_side, name=name)
    except UserError as error:
        return unreadable_picture(name, error)


def of_one_size(encode: Callable[[Tensor], Tensor], size: int) -> Callable[[Tensor], Tensor]:
    """A function that pads its rows to ``size`` by repeating the first one.

    The rounding of a matrix product depends on the number of rows, and not on what stands in the other rows.

    >>> of_one_size(lambda rows: rows + len(rows), 4)(torch.zeros(3)).tolist()
    [4.0, 4.0, 4.0]
    """

    def run(rows: Tensor) -> Tensor:
        if len(rows) == size:
            return encode(rows)
        return encode(torch.cat([rows, rows[:1].expand(size - len(rows), *rows.shape[1:])]))[: len(rows)]

    return run


def _on_cores(
    count: int,
    prepare: Callable[[int], Tensor | Issue | None],
    encode: Callable[[Tensor], Tensor],
    batch: int,
    alike: bool,
) -> Iterator[Encoded]:
    streams = min(torch.get_num_threads(), max(1, count))
    size = min(_ALIKE, batch) if alike else max(1, batch // streams)
    if alike:
        encode = of_one_size(encode, size)

    def work(some: range) -> Encoded:
        with torch.inference_mode():
            return _complete(some, [prepare(position) for position in some], lambda ready: encode(ready).numpy())

    parts = (range(begin, min(begin + size, count)) for begin in range(0, count, size))
    if count <= 1 and not alike:
        yield from map(work, parts)
        return
    with freed_memory_kept():
        if torch.get_num_threads() == 1:
            yield from map(work, parts)
            return
        with _one_core_each(streams) as pool:
            yield from _ahead(pool, work, parts, 2 * streams)


def _on_device(
    count: int,
    prepare: Callable[[int], Tensor | Issue | None],
    encode: Callable[[Tensor], Tensor],
    device: torch.device,
    batch: int,
    alike: bool,
) -> Iterator[Encoded]:
    if alike:
        encode = of_one_size(encode, batch)
    threads = cores()
    pin = device.type == "cuda"

    def stacked(ready: Tensor) -> Tensor:
        return ready.pin_memory() if pin else ready

    pool = thread_pool(threads)
    waiting: tuple[Encoded, Tensor | None] | None = None
    try:
        pictures = _ahead(pool, prepare, range(count), 3 * max(batch, threads))
        for begin in range(0, count, batch):
            some = range(begin, min(begin + batch, count))
            part, pixels = _stacked(some, list(itertools.islice(pictures, len(some))))
            with torch.inference_mode():
                values = None if pixels is None else encode(stacked(pixels).to(device, non_blocking=True))
            if waiting is not None:  # fetched only now, so that the device has work meanwhile
                yield _fetched(*waiting)
            waiting = part, values
        if waiting is not None:
            yield _fetched(*waiting)
    finally:
        pool.shutdown(cancel_futures=True)


def _stacked(some: range, done: Sequence[Tensor | Issue | None]) -> tuple[Encoded, Tensor | None]:
    ready = [(position, one) for position, one in zip(some, done, strict=True) if isinstance(one, Tensor)]
    issues = [(position, one) for position, one in zip(some, done, strict=True) if isinstance(one, Issue)]
    part = Encoded([position for position, _ in ready], None, issues, len(some))
    return part, torch.stack([one for _, one in ready]) if ready else None


def _complete(some: range, done: Sequence[Tensor | Issue | None], encode: Callable[[Tensor], NDArray[Any]]) -> Encoded:
    part, pixels = _stacked(some, done)
    return part if pixels is None else Encoded(part.positions, encode(pixels), part.issues, part.asked)


def _fetched(part: Encoded, values: Tensor | None) -> Encoded:
    return part if values is None else Encoded(part.positions, values.cpu().numpy(), part.issues, part.asked)


def _ahead(pool: Executor, work: Callable[[Job], Result], jobs: Iterable[Job], most: int) -> Iterator[Result]:
    """Results in the order of the jobs, of which at most ``most`` are started ahead."""
    begun: deque[Future[Result]] = deque()
    left = iter(jobs)
    begun.extend(pool.submit(work, job) for job in itertools.islice(left, most))
    while begun:
        result = begun.popleft().result()
        begun.extend(pool.submit(work, job) for job in itertools.islice(left, 1))
        yield result


@contextmanager
def _one_core_each(threads: int) -> Iterator[Executor]:
    """Threads in each of which torch computes on one core."""
    usual = torch.get_num_threads()

    def begin() -> None:
        torch.get_num_threads()  # a thread takes the usual number when it first asks, and would so later on
        torch.set_num_threads(1)

    pool = thread_pool(threads, initializer=begin)
    try:
        # Each thread has its own number; this one is for threads that begin later.
        torch.set_num_threads(max(1, startable(usual)))
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
