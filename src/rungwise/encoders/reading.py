"""Pictures into network-ready batches: decoded in threads, one batch ahead of their use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from rungwise.core.errors import UserError
from rungwise.data.collection import Issue
from rungwise.data.packed import Picture
from rungwise.data.picture_files import picture_name
from rungwise.data.pictures import load_picture
from rungwise.encoders.preprocessing import Preprocessing


@dataclass(frozen=True)
class PreparedBatch:
    """Some pictures, ready for a network.

    Attributes:
        positions: Of the readable ones among the pictures asked for, ascending.
        pictures: (len(positions), 3, size, size) uint8.
        issues: Position and reason of each unreadable one.
        asked: How many pictures the batch accounts for, readable or not.
    """

    positions: list[int]
    pictures: Tensor
    issues: list[tuple[int, Issue]]
    asked: int


def prepared_batches(
    sources: Sequence[Picture | bytes], preprocessing: Preprocessing, batch: int = 64
) -> Iterator[PreparedBatch]:
    """Read, resize and crop pictures; unreadable ones become issues, never gaps.

    >>> [len(one.issues) for one in prepared_batches([b"no picture"] * 3, Preprocessing(), batch=2)]
    [2, 1]
    """

    def prepare(position: int) -> Tensor | Issue:
        source = sources[position]
        name = picture_name(source)
        try:
            return preprocessing.apply(load_picture(source, shorter_side=preprocessing.decoded_side))
        except UserError as error:
            return Issue("unreadable picture", name, str(error).removeprefix(f"{name}: "))

    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        upcoming = pool.map(prepare, range(min(batch, len(sources))))
        for begin in range(0, len(sources), batch):
            done = list(enumerate(upcoming, start=begin))
            upcoming = pool.map(prepare, range(begin + batch, min(begin + 2 * batch, len(sources))))
            ready = [(position, one) for position, one in done if isinstance(one, Tensor)]
            side = preprocessing.size
            yield PreparedBatch(
                positions=[position for position, _ in ready],
                pictures=torch.stack([one for _, one in ready])
                if ready
                else torch.zeros(0, 3, side, side, dtype=torch.uint8),
                issues=[(position, one) for position, one in done if isinstance(one, Issue)],
                asked=len(done),
            )
    finally:
        pool.shutdown(cancel_futures=True)
