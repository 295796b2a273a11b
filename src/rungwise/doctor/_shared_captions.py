"""Check for captions that stand in two splits more often than by chance.

In any large set some short captions are equal. A text of k pictures falls into two or more splits by chance with the
probability 1 - sum over the splits of p^k, where p is the share of the pictures in a split. Over all texts of several
pictures, this gives the expected number in two splits. A finding is what chance would give less than once in 10,000
collections (the bound of Hoeffding 1963 for sums of independent chances), for all texts or for the longer half of them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.doctor._finding import Finding, first, share
from rungwise.doctor._roles import Roles

BY_CHANCE = 1e-4
SAME_TEXTS = 3
"""Number of shared captions from which two pictures are taken for one."""

SAME_WORDS = 20
"""Number of words in two shared captions from which two captions are enough."""

_MOST_PICTURES = 20
"""Number of pictures above which a text says nothing of any two of them."""


@dataclass(frozen=True)
class _Shared:
    text: str
    images: tuple[int, ...]
    across: bool
    chance: float


def captions_in_two_splits(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    """Findings of shared captions beyond chance, and of pictures whose captions stand in two splits."""
    if data.text_features is not None or not len(data.captions):
        return
    role = roles.role_of(data)
    texts = _texts(data, role)
    yield from _one_picture(data, role, texts)
    shared = list(_shared(texts, role))
    words = [len(one.text.split()) for one in shared]
    longer = [one for one, count in zip(shared, words, strict=True) if count > np.median(words)]
    if not any(_beyond_chance(some) for some in (shared, longer)):
        return
    across = [one for one in shared if one.across]
    expected = sum(one.chance for one in shared)
    held = _held_out(data, role, across)
    total = sum(role[image] in ("validation", "test") for image in data.image_of_caption.tolist())
    yield Finding(
        "captions shared across splits",
        "fault",
        f"{len(across)} texts stand in several splits, where chance would put {expected:.1f} of the {len(shared)} texts"
        f" that several pictures have; {held} of {total} validation and test captions ({share(held, total)}) are"
        " such.",
        "Look for copied rows; put all pictures that share a caption into one split, or write captions of their own.",
        first([_named(data, role, one) for one in sorted(across, key=lambda one: -len(one.text.split()))]),
    )


def _texts(data: ImageCaptions, role: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Texts that several pictures have, with blanks and case normalised, and these pictures."""
    images: dict[str, set[int]] = defaultdict(set)
    for caption, image in zip(data.captions, data.image_of_caption.tolist(), strict=True):
        if role[image] and (text := " ".join(caption.lower().split())):
            images[text].add(image)
    return {text: tuple(sorted(some)) for text, some in images.items() if len(some) > 1}


def _shared(texts: dict[str, tuple[int, ...]], role: Sequence[str]) -> Iterator[_Shared]:
    sizes = Counter(one for one in role if one)
    shares = [size / sizes.total() for size in sizes.values()]
    for text, images in texts.items():
        chance = 1 - sum(part ** len(images) for part in shares)
        yield _Shared(text, images, len({role[image] for image in images}) > 1, chance)


def _beyond_chance(shared: Sequence[_Shared]) -> bool:
    """Whether so many texts fall into two splits with a probability below :data:`BY_CHANCE`."""
    count = len(shared)
    if not count:
        return False
    seen, expected = sum(one.across for one in shared) / count, sum(one.chance for one in shared) / count
    if seen <= expected or expected <= 0:
        return False
    surprise = seen * math.log(seen / expected)
    if seen < 1:
        surprise += (1 - seen) * math.log((1 - seen) / (1 - expected))
    return count * surprise > -math.log(BY_CHANCE)


def _one_picture(data: ImageCaptions, role: Sequence[str], texts: dict[str, tuple[int, ...]]) -> Iterator[Finding]:
    both: dict[tuple[int, int], list[str]] = defaultdict(list)
    for text, images in texts.items():
        if len(images) <= _MOST_PICTURES:
            for pair in combinations(images, 2):
                if role[pair[0]] != role[pair[1]]:
                    both[pair].append(text)
    pairs = [
        pair
        for pair, some in both.items()
        if len(some) >= SAME_TEXTS or (len(some) > 1 and sum(len(text.split()) for text in some) >= SAME_WORDS)
    ]
    if pairs:
        pairs.sort(key=lambda pair: -len(both[pair]))
        yield Finding(
            "one picture's captions in two splits",
            "fault",
            f"{len(pairs)} pairs of pictures of different splits share {SAME_TEXTS} captions or more (or two of"
            f" {SAME_WORDS} words together), as two copies of one picture do.",
            "Give both pictures of each pair the same split, or remove one.",
            first(
                [
                    f"{data.image_ids[a]} ({data.splits[a]}) and {data.image_ids[b]} ({data.splits[b]}):"
                    f" {len(both[a, b])} captions"
                    for a, b in pairs
                ]
            ),
        )


def _held_out(data: ImageCaptions, role: Sequence[str], across: Sequence[_Shared]) -> int:
    """Number of captions of validation and test pictures among these texts."""
    texts = {one.text for one in across}
    return sum(
        role[image] in ("validation", "test") and " ".join(caption.lower().split()) in texts
        for caption, image in zip(data.captions, data.image_of_caption.tolist(), strict=True)
    )


def _named(data: ImageCaptions, role: Sequence[str], shared: _Shared) -> str:
    of_role = {role[image]: data.image_ids[image] for image in shared.images}
    return f"{shared.text!r}: {', '.join(f'{name} ({one})' for one, name in of_role.items())}"
