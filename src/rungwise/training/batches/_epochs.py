"""Batches of captions in an epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def further_pairs(batch: NDArray[np.int64], count: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Draw (count,) further pairs that are not in a batch, without replacement.

    It takes time O(count log B), however large the set is.

    Args:
        batch: (B,) distinct positions of pairs.
        count: Number of further pairs.
        pairs: Size of the training set, at least B + count.
        seed: Seed of the draw.

    >>> sorted(further_pairs(np.array([1, 4]), 3, 5, seed=0).tolist())
    [0, 2, 3]
    """
    taken = np.sort(batch)
    drawn = np.random.default_rng(seed).choice(pairs - len(taken), count, replace=False)
    # The k-th pair that is not taken stands behind all taken ones that have at most k others before them.
    return drawn + np.searchsorted(taken - np.arange(len(taken)), drawn, side="right")


def epoch_batches(
    lengths: ArrayLike, batch_size: int, *, seed: int, epoch: int, pool: int = 20
) -> list[NDArray[np.int64]]:
    """Shuffle captions into batches of similar length.

    Captions are shuffled, cut into pools of ``pool`` batches, sorted by length inside each pool and cut into batches,
    whose order is then shuffled. Batches of one length need little padding, which makes a GRU fast on a CPU; pools keep
    most of the randomness. The result depends on the arguments alone, so that a resumed epoch repeats its batches.

    Args:
        lengths: (captions,) number of tokens of each caption.
        batch_size: Number of captions in a batch; the last one may be smaller.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.
        pool: Number of batches in a pool; 1 shuffles without regard to length.

    Returns:
        Caption positions of each batch; every caption occurs once.

    >>> [batch.tolist() for batch in epoch_batches([3, 9, 3, 9], 2, seed=0, epoch=0)]
    [[1, 3], [2, 0]]
    """
    tokens = np.asarray(lengths)
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(len(tokens))
    batches = []
    for begin in range(0, len(order), pool * batch_size):
        members = order[begin : begin + pool * batch_size]
        if pool > 1:
            members = members[np.argsort(tokens[members], kind="stable")]
        batches += [members[at : at + batch_size] for at in range(0, len(members), batch_size)]
    return [batches[position] for position in draw.permutation(len(batches))]
