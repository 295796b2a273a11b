"""Check for pictures in two splits: the same file, the same pixels, or the same picture saved in another way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import cores, thread_pool
from rungwise.data import ImageCaptions, Issue
from rungwise.data.pictures import (
    SIDE,
    alike_across,
    load_array,
    picture_name,
    read_picture,
    thumbnail_pixels,
    unreadable_picture,
)
from rungwise.doctor._finding import Finding, first, share
from rungwise.doctor._roles import Roles

Progress = Callable[[str, int, int], None]
"""Callback with a title, the number of further items, and the number of all."""


@dataclass(frozen=True)
class Looks:
    """What was read of the pictures: 3 KB each.

    Attributes:
        images: (n,) positions in the collection.
        digests: SHA-256 of each file.
        thumbnails: (n, 32, 32, 3) uint8 thumbnails.
        unreadable: Reasons why the other pictures could not be read.
    """

    images: NDArray[np.int64]
    digests: tuple[bytes, ...]
    thumbnails: NDArray[np.uint8]
    unreadable: tuple[Issue, ...]


def look_at(data: ImageCaptions, roles: Roles, progress: Progress) -> Looks:
    """Read every picture of the splits once, several at a time."""
    used = roles.used(data) if data.paths else np.zeros(0, np.int64)

    def look(image: int) -> tuple[bytes, NDArray[np.uint8]] | Issue:
        content = read_picture(data.paths[image])
        if isinstance(content, Issue):
            return content
        try:
            return hashlib.sha256(content).digest(), thumbnail_pixels(content)
        except UserError as error:
            name = picture_name(data.paths[image])
            return unreadable_picture(name, UserError(str(error).removeprefix(f"{picture_name(content)}: ")))

    thumbnails = np.empty((len(used), SIDE, SIDE, 3), np.uint8)
    seen: list[int] = []
    digests: list[bytes] = []
    unreadable: list[Issue] = []
    with thread_pool(cores()) as pool:
        for image, found in zip(used.tolist(), pool.map(look, used.tolist()), strict=True):
            progress("reading pictures", 1, len(used))
            if isinstance(found, Issue):
                unreadable.append(found)
                continue
            digest, thumbnails[len(seen)] = found
            seen.append(image)
            digests.append(digest)
    return Looks(np.array(seen, np.int64), tuple(digests), thumbnails[: len(seen)], tuple(unreadable))


def pictures_in_two_splits(data: ImageCaptions, roles: Roles, looks: Looks, progress: Progress) -> Iterator[Finding]:
    """Findings of identical and near-identical pictures in different splits."""
    role = roles.role_of(data)
    order = [name for name, _ in roles.named]
    group = np.array([order.index(role[image]) for image in looks.images.tolist()], np.int64)
    files = _same_files(looks, group)
    alike = alike_across(looks.thumbnails, group, lambda more: progress("comparing pictures", more, len(looks.images)))
    pixels: list[tuple[int, int]] = []
    near: list[tuple[int, int]] = []
    for one in alike:
        if looks.digests[one.first] == looks.digests[one.second]:
            continue  # among the files
        (pixels if _equal_pixels(data, looks, one.first, one.second) else near).append((one.first, one.second))

    def named(pairs: list[tuple[int, int]]) -> tuple[str, ...]:
        positions = [(int(looks.images[a]), int(looks.images[b])) for a, b in pairs]
        return first(
            [f"{data.image_ids[a]} ({data.splits[a]}) = {data.image_ids[b]} ({data.splits[b]})" for a, b in positions]
        )

    exact = files + pixels
    if exact:
        held = {second for _, second in exact}
        detail = f" ({len(pixels)} of the pairs are different files with equal pixels)" if pixels else ""
        yield Finding(
            "identical pictures across splits",
            "fault",
            f"{len(held)} of {int((group > 0).sum())} validation and test pictures ({_share(held, group)}) stand in"
            f" another split too{detail}: the model has seen what it is measured on.",
            "Put all copies of a picture into one split, or remove them.",
            named(exact),
        )
    if near:
        held = {second for _, second in near}
        yield Finding(
            "near-identical pictures across splits",
            "fault",
            f"{len(held)} of {int((group > 0).sum())} validation and test pictures ({_share(held, group)}) are a"
            " picture of another split saved anew, resized, brightened or cropped a little, or a shot of the same"
            " moment.",
            "Look at the pairs, and put both pictures of each into one split.",
            tuple(one.replace(" = ", " ~ ") for one in named(near)),
        )


def _share(held: set[int], group: NDArray[np.int64]) -> str:
    return share(len(held), int((group > 0).sum()))


def _same_files(looks: Looks, group: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Each picture with the first one of the same file, where that is in another split."""
    known: dict[bytes, int] = {}
    pairs = []
    for position in np.argsort(group, kind="stable").tolist():
        earlier = known.setdefault(looks.digests[position], position)
        if group[earlier] != group[position]:
            pairs.append((earlier, position))
    return pairs


def _equal_pixels(data: ImageCaptions, looks: Looks, one: int, other: int) -> bool:
    if not np.array_equal(looks.thumbnails[one], looks.thumbnails[other]):
        return False
    try:
        first_pixels, second = (load_array(data.paths[int(looks.images[at])]) for at in (one, other))
    except (UserError, MemoryError):
        return False
    return np.array_equal(first_pixels, second)
