"""The equations of the losses as nested loops over plain numbers; nothing of the package is imported here.

A block is a list of rows of numbers: floats, or scalar tensors where a gradient is wanted. Each loss is written for one
direction, (S, R, status) -> one value per query, where status says of every entry "pair", "negative" or "masked".
"""

import math

import torch


def statuses(n, m, positives=None, extra="mask", relevance=None, mask_above=None):
    table = []
    for i in range(n):
        row = []
        for c in range(m):
            described = positives is not None and bool(positives[i][c])
            if n == m:
                if i == c:
                    status = "pair"
                elif described:
                    status = {"mask": "masked", "keep": "negative", "pair": "pair"}[extra]
                else:
                    status = "negative"
            else:
                status = "pair" if described else "negative"
            if status == "negative" and mask_above is not None and float(relevance[i][c]) >= mask_above:
                status = "masked"
            row.append(status)
        table.append(row)
    return table


def transposed(block):
    return None if block is None else [list(column) for column in zip(*block, strict=True)]


def both_sides(one_side, similarity, relevance, status):
    """(i2t, t2i) lists of per-query values, and the number of pairs."""
    i2t = one_side(similarity, relevance, status)
    t2i = one_side(transposed(similarity), transposed(relevance), transposed(status))
    return i2t, t2i, sum(row.count("pair") for row in status)


def where(row, status):
    return [k for k, s in enumerate(row) if s == status]


def hinge(x):
    return x if float(x) > 0 else 0.0 * x


def first_highest(row, among):
    best = among[0]
    for k in among[1:]:
        if float(row[k]) > float(row[best]):
            best = k
    return best


def first_lowest(row, among):
    best = among[0]
    for k in among[1:]:
        if float(row[k]) < float(row[best]):
            best = k
    return best


def per_query(one_pair):
    """one_pair(s_row, r_row, pair, negatives, masked) added over each query's pairs."""

    def one_side(similarity, relevance, status):
        values = []
        for q, s in enumerate(similarity):
            r = None if relevance is None else relevance[q]
            value = 0.0 * s[0]
            for p in where(status[q], "pair"):
                value = value + one_pair(s, r, p, where(status[q], "negative"))
            values.append(value)
        return values

    return one_side


def sum_of_hinges(margin):
    def one_pair(s, r, p, negatives):
        value = 0.0
        for j in negatives:
            value = value + hinge(margin + s[j] - s[p])
        return value

    return per_query(one_pair)


def max_of_hinges(margin):
    def one_pair(s, r, p, negatives):
        if not negatives:
            return 0.0
        return hinge(margin + s[first_highest(s, negatives)] - s[p])

    return per_query(one_pair)


def ladder(thresholds, margins, weights, sampling, levels, pair_in_top_level):
    def level(value):
        for number, threshold in enumerate(thresholds, start=1):
            if float(value) >= threshold:
                return number
        return len(thresholds) + 1

    def one_pair(s, r, p, negatives):
        level_of = {j: level(r[j]) for j in negatives}
        if sampling == "sum":
            value = sum((weights[0] * hinge(margins[0] - s[p] + s[j]) for j in negatives), start=0.0)
        elif negatives:
            value = weights[0] * hinge(margins[0] - s[p] + s[first_highest(s, negatives)])
        else:
            value = 0.0
        if pair_in_top_level:
            level_of = dict(sorted({**level_of, p: 1}.items()))
        for rung in range(2, len(margins) + 1):
            if levels == "single":
                upper = [i for i in level_of if level_of[i] == rung - 1]
            else:
                upper = [i for i in level_of if level_of[i] <= rung - 1]
            lower = [j for j in level_of if level_of[j] >= rung]
            if not upper or not lower:
                continue
            if sampling == "hard_contrastive":
                upper, lower = [first_lowest(s, upper)], [first_highest(s, lower)]
            for i in upper:
                for j in lower:
                    value = value + weights[rung - 1] * hinge(margins[rung - 1] - s[i] + s[j])
        return value

    return per_query(one_pair)


def log_sum_exp(values):
    top = max(float(v) for v in values)
    total = sum((exp(v - top) for v in values), start=0.0)
    return top + log(total)


def exp(x):
    return torch.exp(x) if isinstance(x, torch.Tensor) else math.exp(x)


def log(x):
    return torch.log(x) if isinstance(x, torch.Tensor) else math.log(x)
