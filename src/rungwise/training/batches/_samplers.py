"""Batches in which certain pairs meet, other than at random.

As in :func:`rungwise.training.batches.epoch_batches`, everything depends on the arguments alone, seed and epoch
included, so that a resumed epoch repeats its batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.relevance import Relevance

Positions = NDArray[np.int64]


def one_caption_per_image(image_of_caption: ArrayLike, batch_size: int, *, seed: int, epoch: int) -> list[Positions]:
    """Batches without two captions of one image: no negative is a caption of the query's own picture.

    An epoch goes through every caption once, in rounds: each image contributes one of its captions to a round, in a
    newly drawn order. A round's last batch may be smaller, and later rounds are shorter where images have fewer
    captions.

    Args:
        image_of_caption: (captions,) position of each caption's image.
        batch_size: Number of captions in a batch.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.

    Returns:
        Caption positions of each batch.

    Raises:
        UserError: If the batch size is less than 1.

    >>> [batch.tolist() for batch in one_caption_per_image([0, 0, 1, 2], 2, seed=0, epoch=0)]
    [[1], [3, 2], [0]]
    """
    if batch_size < 1:
        raise UserError(f"one caption per image: batch_size must be at least 1, got {batch_size}")
    owners = np.asarray(image_of_caption, dtype=np.int64)
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(owners))
    by_image = order[np.argsort(owners[order], kind="stable")]
    firsts = np.concatenate(([0], np.flatnonzero(np.diff(owners[by_image])) + 1)) if len(owners) else by_image
    sizes = np.diff(np.concatenate((firsts, [len(owners)])))
    turn = np.arange(len(owners)) - np.repeat(firsts, sizes)
    batches = []
    for number in range(int(sizes.max(initial=0))):
        members = draw.permutation(by_image[turn == number])
        batches += [members[at : at + batch_size] for at in range(0, len(members), batch_size)]
    return [batches[position] for position in draw.permutation(len(batches))]


@dataclass(frozen=True)
class ListBatch:
    """T lists of K + 1 candidates in each direction, the relevant one first (CMAL2R).

    Attributes:
        images: (T,) image queries.
        captions_of_images: (T, K + 1) captions: the relevant one, then K that share no label with the query.
        captions: (T,) caption queries.
        images_of_captions: (T, K + 1) images: the relevant one, then K that share no label with the query.
    """

    images: Positions
    captions_of_images: Positions
    captions: Positions
    images_of_captions: Positions

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number T of queries in each direction."""
        return len(self.images)


def label_lists(
    labels: Sequence[Sequence[str]],
    image_of_caption: ArrayLike,
    *,
    queries: int,
    irrelevant: int,
    seed: int,
    epoch: int,
) -> Iterator[ListBatch]:
    """Batches of lists by class labels: T queries in each direction, each with its own item and K irrelevant ones.

    Items are irrelevant whose image shares no label with the query's. An epoch goes through every pair once in either
    direction, in orders of their own; the last batch may be smaller.

    Args:
        labels: (images,) class labels of each image, such as ``ImageCaptions.labels``.
        image_of_caption: (captions,) position of each caption's image.
        queries: Number T of queries in each direction.
        irrelevant: Number K of irrelevant items, drawn without replacement.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.

    Raises:
        UserError: If there are no labels, a query has fewer than K irrelevant items, or T or K is less than 1.

    >>> batch = next(label_lists([["cat"], ["dog"], ["cat"]], [0, 1, 2], queries=3, irrelevant=1, seed=0, epoch=0))
    >>> batch.images.tolist(), batch.captions_of_images.tolist()
    ([2, 0, 1], [[2, 1], [0, 1], [1, 0]])
    """
    if min(queries, irrelevant) < 1:
        raise UserError(f"label lists: queries and irrelevant must be at least 1, got {queries} and {irrelevant}")
    owners = np.asarray(image_of_caption, dtype=np.int64)
    if not any(labels):
        raise UserError("label lists: the collection has no class labels; use one that has, or another sampler")
    draw = np.random.default_rng([seed, epoch])
    sides = [_Unlabelled(labels, owners, "captions"), _Unlabelled(labels, np.arange(len(labels)), "images")]
    orders = [draw.permutation(len(owners)) for _ in sides]
    for at in range(0, len(owners), queries):
        i2t, t2i = (order[at : at + queries] for order in orders)
        captions = np.stack([np.append(c, sides[0].draw(owners[c], irrelevant, draw)) for c in i2t])
        images = np.stack([np.append(owners[c], sides[1].draw(owners[c], irrelevant, draw)) for c in t2i])
        yield ListBatch(owners[i2t], captions, t2i, images)


class _Unlabelled:
    """Candidates that share no label with an image; computed once for images with the same labels."""

    def __init__(self, labels: Sequence[Sequence[str]], owners: Positions, what: str) -> None:
        self.labels, self.owners, self.what = [frozenset(some) for some in labels], owners, what
        self.known: dict[frozenset[str], Positions] = {}

    def draw(self, image: int, count: int, draw: np.random.Generator) -> Positions:
        """Draw ``count`` candidates; the image's own items are never among them, with labels or without."""
        mine = self.labels[image]
        if mine not in self.known:
            apart = np.array([not mine & others for others in self.labels])
            self.known[mine] = np.flatnonzero(apart[self.owners])
        eligible = self.known[mine]
        if not mine:
            eligible = eligible[self.owners[eligible] != image]
        if len(eligible) < count:
            raise UserError(
                f"label lists: only {len(eligible)} {self.what} share no label with image {image}"
                f" ({', '.join(sorted(mine)) or 'no labels'}), fewer than the {count} asked for; lower irrelevant"
            )
        return draw.choice(eligible, count, replace=False)


def somewhat_relevant(
    relevance: Relevance,
    images: Positions,
    captions: Positions,
    *,
    at_least: float,
    below: float = np.inf,
    keep: int = 32,
    seed: int = 0,
) -> list[Positions]:
    """For each pair, other pairs of a training set whose captions describe its image somewhat.

    Args:
        relevance: The source.
        images: (pairs,) image of each pair, as positions for the source.
        captions: (pairs,) caption of each pair, as positions for the source.
        at_least: Least relevance: the threshold of the rung to be filled.
        below: Upper bound (exclusive) of the relevance.
        keep: Largest number of pairs that are kept for each pair, drawn at random.
        seed: Seed of that draw.

    Returns:
        (pairs,) arrays of pair numbers, without pairs of the same image.

    >>> class Source:
    ...     def block(self, images, captions):
    ...         degrees = np.array([[1.0, 0.7, 0.1], [0.7, 1.0, 0.0], [0.1, 0.2, 1.0]], np.float32)
    ...         return degrees[np.ix_(images, captions)]
    ...     def dense(self): ...
    >>> [near.tolist() for near in somewhat_relevant(Source(), np.arange(3), np.arange(3), at_least=0.5)]
    [[1], [0], []]
    """
    asked, pair_image = np.unique(images, return_inverse=True)
    near = []
    for number, image in enumerate(asked):
        degrees = relevance.block(asked[number : number + 1], captions)[0]
        found = np.flatnonzero((degrees >= at_least) & (degrees < below) & (images != image))
        if len(found) > keep:
            found = np.sort(np.random.default_rng([seed, number]).choice(found, keep, replace=False))
        near.append(found)
    return [near[number] for number in pair_image]


def relevance_aware_batches(
    near: Sequence[Positions], batch_size: int, *, group: int = 4, seed: int, epoch: int
) -> list[Positions]:
    """Batches of groups of pairs that describe each other somewhat, so that the rungs of a ladder are not empty.

    Pairs come in random order. A pair without a group starts one, with up to ``group - 1`` near pairs that have none;
    where no such pair is left it joins the smallest group of a near pair, unless that has twice the size already. The
    groups are then joined in random order and cut into batches, so that the end of a batch may split one. Every pair
    occurs once an epoch.

    Args:
        near: (pairs,) near pairs from :func:`somewhat_relevant`.
        batch_size: Number of pairs in a batch, at least ``group``; the last batch may be smaller.
        group: Largest number of pairs that a group starts with; 1 leaves plain random batches.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.

    Returns:
        Pair numbers of each batch.

    >>> near = [np.array(one) for one in ([3], [2], [1], [0])]
    >>> [sorted(batch.tolist()) for batch in relevance_aware_batches(near, 2, group=2, seed=0, epoch=0)]
    [[0, 3], [1, 2]]
    """
    if not 1 <= group <= batch_size:
        raise UserError(f"relevance-aware batches: group must lie in 1..{batch_size} (the batch), got {group}")
    draw = np.random.default_rng([seed, epoch])
    group_of = np.full(len(near), -1)
    groups: list[list[int]] = []
    for pair in draw.permutation(len(near)):
        if group_of[pair] >= 0:
            continue
        others = near[pair] if group > 1 else near[pair][:0]
        free = others[group_of[others] < 0]
        begun = set(group_of[others].tolist()) if not len(free) else set()
        smallest = min(begun, key=lambda number: (len(groups[number]), number), default=-1)
        if smallest < 0 or len(groups[smallest]) >= 2 * group:
            smallest = len(groups)
            groups.append([])
        members = [int(pair), *draw.permutation(free)[: group - 1].tolist()]
        groups[smallest] += members
        group_of[members] = smallest
    order = [groups[number] for number in draw.permutation(len(groups))]
    dealt = np.array([pair for members in order for pair in members], dtype=np.int64)
    batches = [dealt[at : at + batch_size] for at in range(0, len(dealt), batch_size)]
    return [batches[position] for position in draw.permutation(len(batches))]


def rung_counts(relevance: ArrayLike, thresholds: Sequence[float], positives: ArrayLike | None = None) -> Positions:
    """(B, L) number of candidates on each level of a ladder for each query of a batch, without its positives.

    Args:
        relevance: (B, B) degrees with the paired item on the diagonal; rows are queries (transpose it for the other
            direction).
        thresholds: t_1 > ... > t_{L-1}.
        positives: (B, B) bool, entries besides the diagonal that are not counted.

    >>> rung_counts([[1.0, 0.7, 0.1], [0.7, 1.0, 0.0], [0.1, 0.2, 1.0]], [0.63])
    array([[1, 1],
           [1, 1],
           [0, 2]])
    """
    degrees = np.asarray(relevance)
    counted = ~np.eye(len(degrees), dtype=bool)
    if positives is not None:
        counted &= ~np.asarray(positives, dtype=bool)
    level = (~(degrees[:, :, None] >= np.asarray(thresholds))).sum(axis=2)
    return np.stack([((level == one) & counted).sum(axis=1) for one in range(len(thresholds) + 1)], axis=1)
