"""Every measure as its definition says it, one query at a time; nothing here comes from the package."""

import itertools
import math
from fractions import Fraction

import numpy as np
import scipy.stats


def ranking(scores):
    """Candidates by falling score, the lower index first among equals."""
    return sorted(range(len(scores)), key=lambda candidate: (-scores[candidate], candidate))


def any_hit(scores, positives, k):
    return 100.0 if any(p in ranking(scores)[:k] for p in positives) else 0.0


def true_recall(scores, positives, k):
    return 100.0 * sum(p in ranking(scores)[:k] for p in positives) / len(positives)


def best_rank(scores, positives):
    return 1.0 + min(ranking(scores).index(p) for p in positives)


def average_precision(scores, positives):
    total, hits = 0.0, 0
    for place, candidate in enumerate(ranking(scores), 1):
        if candidate in positives:
            hits += 1
            total += hits / place
    return 100.0 * total / len(positives)


def average_precision_at(scores, positives, k, of_possible):
    """Wang et al. 2013: the sum over ranks of precision x (is it right), over the right ones among the first k."""
    first = ranking(scores)[:k]
    total = 0.0
    for rank in range(1, len(first) + 1):
        precision = sum(c in positives for c in first[:rank]) / rank
        total += precision * (first[rank - 1] in positives)
    divisor = min(k, len(positives)) if of_possible else sum(c in positives for c in first)
    return 100.0 * total / divisor if divisor else 0.0


def precision_at(scores, positives, k):
    return 100.0 * sum(c in positives for c in ranking(scores)[:k]) / k


def eleven_points(scores, positives):
    """At each level, the largest precision among the ranks whose recall reaches it; recalls are fractions."""
    order = ranking(scores)
    row = []
    for tenths in range(11):
        best = 0.0
        for rank in range(1, len(order) + 1):
            hits = sum(c in positives for c in order[:rank])
            if Fraction(hits, len(positives)) >= Fraction(tenths, 10):
                best = max(best, hits / rank)
        row.append(100.0 * best)
    return row


def map_at_r(scores, positives):
    total, hits = 0.0, 0
    for place, candidate in enumerate(ranking(scores)[: len(positives)], 1):
        if candidate in positives:
            hits += 1
            total += hits / place
    return 100.0 * total / len(positives)


def r_precision(scores, positives):
    return true_recall(scores, positives, len(positives))


def coherent(scores, relevance, k):
    top = ranking(scores)[:k]
    x, y = [scores[c] for c in top], [relevance[c] for c in top]
    if len(set(x)) == 1 or len(set(y)) == 1:
        return 0.0
    return float(scipy.stats.kendalltau(x, y).statistic)


def rank_correlation(scores, relevance):
    if len(set(scores)) == 1 or len(set(relevance)) == 1:
        return 0.0
    return float(scipy.stats.spearmanr(scores, relevance).statistic)


def cumulative(scores, relevance, k, removed=()):
    kept = [c for c in ranking(scores) if c not in removed]
    got = math.fsum(relevance[c] for c in kept[:k])
    ideal = math.fsum(sorted((relevance[c] for c in kept), reverse=True)[:k])
    return 100.0 * got / ideal if ideal > 0 else 0.0


def cumulative_in_set(scores, relevance, k, m, removed=()):
    kept = [c for c in ranking(scores) if c not in removed]
    right = [c for c in ranking(relevance) if c not in removed][:m]
    got = math.fsum(relevance[c] for c in kept[:k] if c in right)
    ideal = math.fsum(relevance[c] for c in right)
    return 100.0 * got / ideal if ideal > 0 else 0.0


def discounted(scores, relevance, k):
    got = math.fsum(relevance[c] / math.log2(place + 1) for place, c in enumerate(ranking(scores)[:k], 1))
    best = sorted(relevance, reverse=True)[:k]
    ideal = math.fsum(r / math.log2(place + 1) for place, r in enumerate(best, 1))
    return 100.0 * got / ideal if ideal > 0 else 0.0


def semantic_recall(scores, relevance, k, m, removed=()):
    kept = [c for c in ranking(scores) if c not in removed]
    right = [c for c in ranking(relevance) if c not in removed][:m]
    return 100.0 * len(set(kept[:k]) & set(right)) / len(right) if right else 0.0


def any_of_semantic_set(scores, relevance, k, m, removed=()):
    kept = [c for c in ranking(scores) if c not in removed]
    right = [c for c in ranking(relevance) if c not in removed][:m]
    return 100.0 if set(kept[:k]) & set(right) else 0.0


def caption_list_set(relevance, owners, image, m, length, non_gt):
    """The m images with the largest sums over the lists of the image's captions; relevance is images x captions."""
    sums = {}
    for caption, owner in enumerate(owners):
        if owner == image:
            degrees = [float(row[caption]) for row in relevance]
            for listed in ranking(degrees)[:length]:
                sums[listed] = sums.get(listed, 0.0) + degrees[listed]
    if non_gt:
        sums.pop(image, None)
    return sorted(sums, key=lambda other: (-sums[other], other))[:m]


def caption_list_recall(scores, k, right, removed=()):
    kept = [c for c in ranking(scores) if c not in removed][:k]
    return 100.0 * len(set(kept) & set(right)) / len(right) if right else math.nan


def any_of_caption_list(scores, k, right, removed=()):
    kept = [c for c in ranking(scores) if c not in removed][:k]
    return (100.0 if set(kept) & set(right) else 0.0) if right else math.nan


def median_rank(ranks):
    return math.floor(np.median([rank - 1 for rank in ranks])) + 1


def value(name, direction, scores, relevance, positives):
    """One query's value, or row of values, of the measure of this name; NaN where it has none."""
    scores, relevance = [float(s) for s in scores], [float(r) for r in relevance]
    family, _, rest = name.partition("@")
    if name == "MAP@R":
        family = "MAP@R"
    k = int(rest.partition("(")[0]) if rest and family != "MAP@R" else 0
    removed = set(positives) if "non_gt" in name else ()
    m = int(name.partition("m=")[2].rstrip(")").partition(",")[0]) if "m=" in name else None
    if family == "SR":
        m = m or (len(positives) if direction == "i2t" else 1)
        one_query = any_of_semantic_set if "any" in name else semantic_recall
        return one_query(scores, relevance, k, m, removed) if m else math.nan
    if family in ("CS", "Kendall"):
        return coherent(scores, relevance, k or len(scores))
    if family == "Spearman":
        return rank_correlation(scores, relevance)
    if family == "NCS" and m:
        return cumulative_in_set(scores, relevance, k, m, removed)
    if family == "NCS":
        return cumulative(scores, relevance, k, removed)
    if family == "MeanDegree":
        return degrees_by_rank(scores, relevance, k)
    if family == "nDCG" and "ties=expected" in name:
        return discounted_over_ties(scores, relevance, k)
    if family == "nDCG":
        return discounted(scores, relevance, k)
    if not positives:
        return [math.nan] * 11 if family == "AP11" else math.nan
    by_family = {
        "R": lambda: any_hit(scores, positives, k),
        "Recall": lambda: true_recall(scores, positives, k),
        "MedR": lambda: best_rank(scores, positives),
        "MeanR": lambda: best_rank(scores, positives),
        "MRR": lambda: 100.0 / best_rank(scores, positives),
        "MAP": lambda: (
            average_precision_at(scores, positives, k, "of_possible" in name)
            if k
            else average_precision(scores, positives)
        ),
        "P": lambda: precision_at(scores, positives, k),
        "AP11": lambda: eleven_points(scores, positives),
        "MAP@R": lambda: map_at_r(scores, positives),
        "RPrecision": lambda: r_precision(scores, positives),
    }
    return by_family[family]()


def discounted_over_ties(scores, relevance, k):
    """Each rank has the mean degree of all candidates that share the score of the candidate there."""
    found = 0.0
    for rank, candidate in enumerate(ranking(scores)[:k], 1):
        tied = [degree for degree, score in zip(relevance, scores, strict=True) if score == scores[candidate]]
        found += math.fsum(tied) / len(tied) / math.log2(rank + 1)
    ideal = sum(degree / math.log2(place + 2) for place, degree in enumerate(sorted(relevance, reverse=True)[:k]))
    return 100.0 * found / ideal if ideal else 0.0


def discounted_over_orders(scores, relevance, k):
    """Mean of nDCG@K over every order of the candidates in which scores do not rise."""
    values = []
    for order in itertools.permutations(range(len(scores))):
        falling = [scores[candidate] for candidate in order]
        if falling == sorted(falling, reverse=True):
            places = {candidate: -place for place, candidate in enumerate(order)}
            values.append(discounted([places[candidate] for candidate in range(len(scores))], relevance, k))
    return math.fsum(values) / len(values)


def degrees_by_rank(scores, relevance, k):
    """Degrees at ranks 1 to K, the K largest, and the mean of all; NaN where the gallery is shorter."""
    retrieved = [relevance[candidate] for candidate in ranking(scores)]
    ideal = sorted(relevance, reverse=True)
    padded = [(own + [math.nan] * k)[:k] for own in (retrieved, ideal)]
    return [*padded[0], *padded[1], math.fsum(relevance) / len(relevance)]


def _cut(scores, relevance, cut, t):
    """Relevant hits shown, hits shown, relevant candidates; a candidate that nobody judged is not there."""
    shown = [c for c in ranking(scores)[:cut] if not math.isnan(relevance[c])]
    return sum(relevance[c] >= t for c in shown), len(shown), sum(r >= t for r in relevance)


def _percent(part, whole, relevance):
    if all(math.isnan(r) for r in relevance):
        return math.nan
    return 100.0 * part / whole if whole else 100.0


def cut_f1(scores, relevance, cut, t):
    right, shown, relevant = _cut(scores, relevance, cut, t)
    return _percent(2 * right, shown + relevant, relevance)


def cut_precision(scores, relevance, cut, t):
    right, shown, _ = _cut(scores, relevance, cut, t)
    return _percent(right, shown, relevance)


def cut_recall(scores, relevance, cut, t):
    right, _, relevant = _cut(scores, relevance, cut, t)
    return _percent(right, relevant, relevance)


def brier(scores, relevance, expected, k):
    kept = [c for c in ranking(scores)[:k] if not math.isnan(relevance[c])]
    return math.fsum((expected[c] - relevance[c]) ** 2 for c in kept) / len(kept) if kept else math.nan


def signed_bins(scores, relevance, expected, k):
    kept = [c for c in ranking(scores)[:k] if not math.isnan(relevance[c])]
    if not kept:
        return [math.nan] * 10
    sums = [0.0] * 10
    for c in kept:
        sums[min(9, int(10 * expected[c]))] += expected[c] - relevance[c]
    return [one / len(kept) for one in sums]


def calibration_error(expected, actual):
    """Of one list of pairs, as Guo et al. 2017 write it."""
    total = 0.0
    for number in range(10):
        held = [i for i, e in enumerate(expected) if min(9, int(10 * e)) == number]
        if held:
            mean_expected = math.fsum(expected[i] for i in held) / len(held)
            mean_actual = math.fsum(actual[i] for i in held) / len(held)
            total += len(held) / len(expected) * abs(mean_actual - mean_expected)
    return total


def judged_ndcg(scores, relevance, k):
    """NDCG@K of the gallery that is left when all candidates without a degree are taken out."""
    known = [c for c in range(len(scores)) if not math.isnan(relevance[c])]
    left = [relevance[c] for c in known]
    return discounted([scores[c] for c in known], left, k) if any(left) else math.nan


def judged_ap(scores, relevance, t):
    known = [c for c in range(len(scores)) if not math.isnan(relevance[c])]
    right = [place for place, c in enumerate(known) if relevance[c] >= t]
    return average_precision([scores[c] for c in known], right) if right else math.nan
