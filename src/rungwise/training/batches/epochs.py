"""Which captions meet in a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def further_pairs(batch: NDArray[np.int64], count: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Pairs beside those of a batch, drawn without replacement.

    Args:
        batch: (B,) positions of pairs, none twice.
        count: How many more.
        pairs: Of the training set, at least B + count.
        seed: Of the draw.

    Returns:
        (count,) positions of pairs that are not in the batch. Time O(count log B), however large the set is.

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
    whose order is then shuffled. Batches of one length need little padding, which is what makes a GRU quick on a CPU;
    pools keep most of the randomness of which captions meet. The result depends on the arguments alone, so that a
    resumed epoch goes through the same batches.

    Args:
        lengths: (captions,) tokens of each caption.
        batch_size: Captions a batch; the last one may be smaller.
        seed: Of the run.
        epoch: Number of the epoch, from 0.
        pool: Batches a pool; 1 shuffles without regard to length.

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
