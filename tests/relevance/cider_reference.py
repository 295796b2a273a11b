"""CIDEr and CIDEr-D as nested loops over pairs, n-grams and references, from their definitions."""

import math
from collections import Counter


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def document_frequency(references):
    frequency = Counter()
    for sentences in references:
        frequency.update({gram for sentence in sentences for n in range(1, 5) for gram in ngrams(sentence, n)})
    return frequency


def one_score(references, caption, frequency, images, *, clipped):
    if not references:
        return 0.0
    total = 0.0
    for reference in references:
        for n in range(1, 5):
            asked, answer = ngrams(caption, n), ngrams(reference, n)
            weight = {gram: math.log(images) - math.log(max(1, frequency[gram])) for gram in asked | answer}
            size = math.sqrt(sum((asked[g] * weight[g]) ** 2 for g in asked))
            size *= math.sqrt(sum((answer[g] * weight[g]) ** 2 for g in answer))
            if not size:
                continue
            times = min if clipped else (lambda a, b: a)
            product = sum(times(asked[g], answer[g]) * answer[g] * weight[g] ** 2 for g in asked)
            penalty = 1.0
            if clipped:
                pairs = max(len(caption) - 1, 0) - max(len(reference) - 1, 0)
                penalty = math.exp(-(pairs**2) / (2 * 6.0**2))
            total += penalty * product / size
    return 10 * total / 4 / len(references)


def all_scores(captions, owners, images, *, clipped, leave_one_out=False, frequency=None, corpus_images=None):
    references = [[c for c, owner in zip(captions, owners, strict=True) if owner == image] for image in range(images)]
    if frequency is None:
        frequency = document_frequency(references)
        corpus_images = sum(1 for sentences in references if sentences)
    rows = []
    for image in range(images):
        row = []
        for position, caption in enumerate(captions):
            own = [c for p, c in enumerate(captions) if owners[p] == image and not (leave_one_out and p == position)]
            row.append(one_score(own, caption, frequency, max(1, corpus_images), clipped=clipped))
        rows.append(row)
    return rows
