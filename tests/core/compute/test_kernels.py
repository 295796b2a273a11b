"""Also tests rungwise.core.compute._topk_kernels: that they are compiled; what they answer is asked in test_topk."""

import numpy as np

from rungwise.core.compute import _topk_kernels as topk_kernels
from rungwise.core.compute import kernel


@kernel
def running_total(values, totals):
    total = 0.0
    for place in range(len(values)):
        total += values[place]
        totals[place] = total


def test_a_kernel_computes_in_place_and_lets_other_threads_run():
    totals = np.empty(3)
    running_total(np.array([1.0, 2.0, 4.0]), totals)
    assert totals.tolist() == [1.0, 3.0, 7.0]
    assert running_total.targetoptions["nogil"]


def test_kernels_of_the_top_k_are_compiled():
    scores = np.array([[0.5, 0.25, 0.75, 0.75]])
    counts = np.empty(1, np.int64)
    topk_kernels.count_reaching(scores, np.array([0.5]), counts, 0, 1)
    assert counts.tolist() == [3]
    assert topk_kernels.count_reaching.signatures
