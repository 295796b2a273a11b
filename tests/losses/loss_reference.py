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


def both_sides(one_side):
    """A loss of one direction, asked for both: (S, R, status) -> (i2t, t2i)."""

    def both(similarity, relevance, status):
        i2t = one_side(similarity, relevance, status)
        return i2t, one_side(transposed(similarity), transposed(relevance), transposed(status))

    return both


def where(row, status):
    return [k for k, s in enumerate(row) if s == status]


def number(x):
    return float(x.detach()) if isinstance(x, torch.Tensor) else float(x)


def hinge(x):
    return x if number(x) > 0 else 0.0 * x


def first_highest(row, among):
    best = among[0]
    for k in among[1:]:
        if number(row[k]) > number(row[best]):
            best = k
    return best


def first_lowest(row, among):
    best = among[0]
    for k in among[1:]:
        if number(row[k]) < number(row[best]):
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


def ladder(thresholds, margins, weights, sampling, levels, pair_in_top_level, masking="exclude", pairs=1):
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
            if masking == "product":
                far = [s[k] if k in upper else 1.0 for k in range(len(s))]
                near = [s[k] if k in lower else 0.0 for k in range(len(s))]
                gap = far[first_lowest(far, range(len(s)))] - near[first_highest(near, range(len(s)))]
                value = value + weights[rung - 1] * hinge(margins[rung - 1] - gap)
                continue
            if not upper or not lower:
                continue
            if sampling == "hard_contrastive":
                for _ in range(pairs):
                    if upper and lower:
                        i, j = first_lowest(s, upper), first_highest(s, lower)
                        value = value + weights[rung - 1] * hinge(margins[rung - 1] - s[i] + s[j])
                        upper.remove(i)
                        lower.remove(j)
                continue
            for i in upper:
                for j in lower:
                    value = value + weights[rung - 1] * hinge(margins[rung - 1] - s[i] + s[j])
        return value

    return per_query(one_pair)


def log_sum_exp(values):
    top = max(number(v) for v in values)
    total = sum((exp(v - top) for v in values), start=0.0)
    return top + log(total)


def exp(x):
    return torch.exp(x) if isinstance(x, torch.Tensor) else math.exp(x)


def log(x):
    return torch.log(x) if isinstance(x, torch.Tensor) else math.log(x)


def contrastive_sum(temperature):
    def one_pair(s, r, p, negatives):
        return log_sum_exp([s[k] / temperature for k in [p, *negatives]]) - s[p] / temperature

    return per_query(one_pair)


def contrastive_ratio(temperature):
    def one_pair(s, r, p, negatives):
        if not negatives:
            return 0.0
        hardest = first_highest(s, negatives)
        return -log(exp(s[p] / temperature) / exp(s[hardest] / temperature))

    return per_query(one_pair)


def contrastive_max(temperature, margin):
    def one_pair(s, r, p, negatives):
        if not negatives:
            return 0.0
        return hinge((s[first_highest(s, negatives)] + margin - s[p]) / temperature)

    return per_query(one_pair)


def soft_contrastive(temperature, target_temperature):
    def one_pair(s, r, p, negatives):
        list_ = [p, *negatives]
        total = sum(math.exp(r[k] / target_temperature) for k in list_)
        norm = log_sum_exp([s[k] / temperature for k in list_])
        value = 0.0
        for k in list_:
            value = value - math.exp(r[k] / target_temperature) / total * (s[k] / temperature - norm)
        return value

    return per_query(one_pair)


def sigmoid(temperature, bias):
    def one_side(similarity, relevance, status):
        values = []
        for q, s in enumerate(similarity):
            value = 0.0 * s[0]
            for k in where(status[q], "pair"):
                value = value + log(1 + exp(-(s[k] / temperature + bias)))
            for k in where(status[q], "negative"):
                value = value + log(1 + exp(s[k] / temperature + bias))
            values.append(value)
        return values

    return one_side


def adaptive_listwise(sharpness, margins, irrelevant):
    def one_pair(s, r, p, negatives):
        if irrelevant == "no_shared_label":
            negatives = [k for k in negatives if r[k] <= 0]
        ranked = []
        rest = list(negatives)
        while rest:
            best = first_highest(s, rest)
            ranked.append(best)
            rest.remove(best)
        n = len(negatives) + 1
        raised = [s[p] / sharpness]
        for rank, k in enumerate(ranked, start=2):
            share = (rank - 2) / (n - 2) if n > 2 else 0.0
            m = margins[0] - (margins[0] - margins[1]) * share
            raised.append((s[k] + m) / sharpness)
        return log_sum_exp(raised) - s[p] / sharpness

    return per_query(one_pair)


def smooth_ndcg(temperature):
    def ramp(x):
        if number(x) <= -0.5:
            return 0.0
        return 1.0 if number(x) >= 0.5 else x + 0.5

    def one_side(similarity, relevance, status):
        values = []
        for q, s in enumerate(similarity):
            present = [k for k, word in enumerate(status[q]) if word != "masked"]
            gains = {k: max(0.0, relevance[q][k]) for k in present}
            best = sum(
                g / math.log2(1 + place) for place, g in enumerate(sorted(gains.values(), reverse=True), start=1)
            )
            if best == 0:
                values.append(0.0 * s[0])
                continue
            reached = 0.0 * s[0]
            for k in present:
                rank = 1.0
                for j in present:
                    if j != k:
                        rank = rank + ramp((s[j] - s[k]) / (4 * temperature))
                reached = reached + gains[k] * math.log(2) / log(1 + rank)
            values.append(1 - reached / best)
        return values

    return one_side


def semantic_adaptive_margin(temperature, choose, with_triplet, margin):
    """(S, M, status) of images and captions -> per-query values of both sides."""

    def both(similarity, m, status):
        images, captions = range(len(similarity)), range(len(similarity[0]))
        own_captions = {i: where(status[i], "pair") for i in images}
        i2t = [0.0 * similarity[0][0] for _ in images]
        t2i = [0.0 * similarity[0][0] for _ in captions]
        for i in images:
            for p in own_captions[i]:
                row = [similarity[i][c] for c in captions]
                eligible = [c for c in captions if status[i][c] == "negative"]
                if eligible:
                    n = choose(row, eligible)
                    a = (m[i][p] - m[i][n]) / temperature
                    i2t[i] = i2t[i] + hinge(a + row[n] - row[p])
                    if with_triplet:
                        i2t[i] = i2t[i] + hinge(margin + row[first_highest(row, eligible)] - row[p])
                column = [similarity[k][p] for k in images]
                negatives = [k for k in images if status[k][p] == "negative"]
                eligible = [k for k in negatives if own_captions[k]]
                if eligible:
                    n = choose(column, eligible)
                    fit = sum(m[i][c] for c in own_captions[n]) / len(own_captions[n])
                    a = (m[i][p] - fit) / temperature
                    t2i[p] = t2i[p] + hinge(a + column[n] - column[i])
                if negatives and with_triplet:
                    t2i[p] = t2i[p] + hinge(margin + column[first_highest(column, negatives)] - column[i])
        return i2t, t2i

    return both


def multimodal_nce(temperature, within_images, within_captions, same_images, same_captions):
    def both(similarity, relevance, status):
        sides = []
        for s, marks, within, same in (
            (similarity, status, within_images, same_images),
            (transposed(similarity), transposed(status), within_captions, same_captions),
        ):
            values = []
            for q in range(len(s)):
                value = 0.0 * s[0][0]
                for p in where(marks[q], "pair"):
                    logits = [s[q][p] / temperature]
                    logits += [s[q][k] / temperature for k in where(marks[q], "negative")]
                    logits += [within[q][k] / temperature for k in range(len(s)) if k != q and not same[q][k]]
                    value = value + log_sum_exp(logits) - s[q][p] / temperature
                values.append(value)
            sides.append(values)
        return sides

    return both
