"""Batch sizes at which the hardest negative is a hard one (VSE++, Faghri et al. 2018, appendix A).

Of M - 1 negatives that are drawn at random, none is among the hardest share p of all with probability (1 - p)^(M - 1).
(The paper prints M = 44 and 6905 where 45 and 4604 fall below 1 %: its exponent is M, its second bound 0.1 %.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = ("0.1", "0.01", "0.001")


def miss_probability(share: str | Fraction, batch_size: int) -> Fraction:
    """Probability that none of a batch's negatives comes from the hardest share.

    Args:
        share: Share p, strictly between 0 and 1, exact: ``"0.1"`` or a Fraction, since the float 0.1 is another number.
        batch_size: Batch size M, of which one item is the query's own pair.

    Raises:
        ValueError: If the share is not between 0 and 1, or the batch is empty.

    >>> miss_probability("0.1", 3)
    Fraction(81, 100)
    """
    hardest = Fraction(share)
    if not 0 < hardest < 1:
        raise ValueError(f"share must be strictly between 0 and 1, got {share}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    return (1 - hardest) ** (batch_size - 1)


def smallest_batch(share: str | Fraction, below: str | Fraction) -> int:
    """The smallest batch whose :func:`miss_probability` is below a bound, by exact arithmetic.

    Args:
        share: Share p, strictly between 0 and 1, exact.
        below: Bound, strictly between 0 and 1, exact.

    >>> smallest_batch("0.1", "0.01"), smallest_batch("0.001", "0.01"), smallest_batch("0.001", "0.001")
    (45, 4604, 6906)
    """
    bound = Fraction(below)
    if not 0 < bound < 1:
        raise ValueError(f"below must be strictly between 0 and 1, got {below}")
    kept = miss_probability(share, 2)
    # Logarithms lead to within a step or two; what decides is exact.
    size = max(1, math.floor(math.log(bound) / math.log(kept)))
    while miss_probability(share, size) >= bound:
        size += 1
    while size > 1 and miss_probability(share, size - 1) < bound:
        size -= 1
    return size


def plot_miss_probability(
    axes: Axes, shares: Sequence[str | Fraction] = SHARES, below: str | Fraction = "0.01", largest: int = 8192
) -> None:
    """Draw :func:`miss_probability` over the batch size, and mark where it falls below a bound.

    Args:
        axes: Axes of matplotlib.
        shares: Shares of the curves.
        below: The bound.
        largest: Batch size at the right end.
    """
    sizes = sorted({round(2 ** (step / 8)) for step in range(8 * math.ceil(math.log2(largest)) + 1)})
    for share in shares:
        label = f"hardest {float(100 * Fraction(share)):g} %: M = {smallest_batch(share, below)}"
        kept = 1 - float(Fraction(share))
        axes.plot(sizes, [kept ** (size - 1) for size in sizes], label=label)
    axes.axhline(float(Fraction(below)), color="grey", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlim=(1, largest), ylim=(1e-4, 1.5))
    axes.set(xlabel="batch size M", ylabel="probability that no negative is that hard")
    axes.legend(frameon=False)
