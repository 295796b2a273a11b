"""VSRN's equations, number by number: lists of scalars, and nothing of the package.

Scalars are torch's, taken out of the parameters, so that gradients come of themselves.
"""

from itertools import pairwise

import torch


def scalars(tensor):
    """Nested lists of the scalars of a tensor, each with its place in the graph."""
    return tensor if tensor.ndim == 0 else [scalars(one) for one in tensor.unbind()]


def weights(module):
    return {name: scalars(one) for name, one in module.named_parameters()}


def add(*numbers):
    total = torch.zeros((), dtype=torch.float64)
    for one in numbers:
        total = total + one
    return total


def dot(a, b):
    assert len(a) == len(b)
    return add(*(x * y for x, y in zip(a, b, strict=True)))


def linear(w, name, x):
    rows = [dot(row, x) for row in w[f"{name}.weight"]]
    bias = w.get(f"{name}.bias")
    return rows if bias is None else [value + b for value, b in zip(rows, bias, strict=True)]


def gru_step(w, name, x, state, end=""):
    size = len(state)
    given = [dot(row, x) + b for row, b in zip(w[f"{name}.weight_ih{end}"], w[f"{name}.bias_ih{end}"], strict=True)]
    own = [dot(row, state) + b for row, b in zip(w[f"{name}.weight_hh{end}"], w[f"{name}.bias_hh{end}"], strict=True)]
    new = []
    for k in range(size):
        reset = 1 / (1 + torch.exp(-(given[k] + own[k])))
        update = 1 / (1 + torch.exp(-(given[size + k] + own[size + k])))
        candidate = torch.tanh(given[2 * size + k] + reset * own[2 * size + k])
        new.append((1 - update) * candidate + update * state[k])
    return new


def gru(w, name, sequence, size):
    state, states = [torch.zeros((), dtype=torch.float64)] * size, []
    for x in sequence:
        state = gru_step(w, name, x, state, "_l0")
        states.append(state)
    return states


def normed_over_regions(regions):
    lengths = [add(*(region[k] ** 2 for region in regions)).sqrt() for k in range(len(regions[0]))]
    return [[x / length for x, length in zip(region, lengths, strict=True)] for region in regions]


def normed_each(regions):
    return [[x / dot(region, region).sqrt() for x in region] for region in regions]


def batch_normed(values, gamma, beta, eps=1e-5):
    """Lists of D numbers, by their mean and variance over the list."""
    found = [[] for _ in values]
    for k in range(len(gamma)):
        column = [value[k] for value in values]
        mean = add(*column) / len(column)
        variance = add(*((x - mean) ** 2 for x in column)) / len(column)
        for row, x in zip(found, column, strict=True):
            row.append((x - mean) / (variance + eps).sqrt() * gamma[k] + beta[k])
    return found


def convolution(w, name, pictures):
    """Eq. 2-3 of all pictures of a batch."""
    messages = []
    for regions in pictures:
        theta, phi, g = ([linear(w, f"{name}{part}", v) for v in regions] for part in ("theta", "phi", "g"))
        for i in range(len(regions)):
            affinity = [dot(theta[i], phi[j]) / len(regions) for j in range(len(regions))]
            gathered = [add(*(affinity[j] * g[j][k] for j in range(len(regions)))) for k in range(len(regions[0]))]
            messages.append(linear(w, f"{name}out", gathered))
    normed = iter(batch_normed(messages, w[f"{name}norm.weight"], w[f"{name}norm.bias"]))
    return [[[m + x for m, x in zip(next(normed), v, strict=True)] for v in regions] for regions in pictures]


def related(w, pictures, *, layers, normalise, normalise_first):
    normed = {"features": normed_over_regions, "regions": normed_each}[normalise]
    pictures = [[linear(w, "projection", f) for f in regions] for regions in pictures]
    if normalise_first:
        pictures = [normed(regions) for regions in pictures]
    for layer in range(layers):
        pictures = convolution(w, f"convolutions.{layer}.", pictures)
    return [normed(regions) for regions in pictures]


def gathered(w, pictures, *, batch_norm):
    last = [gru(w, "recurrent", regions, len(regions[0]))[-1] for regions in pictures]
    return batch_normed(last, w["norm.weight"], w["norm.bias"]) if batch_norm else last


def caption_loss(w, pictures, captions):
    """Of lists of regions, and of lists of token numbers."""
    hidden, losses = len(w["regions.bias"]), []
    for regions, tokens in zip(pictures, captions, strict=True):
        encoded = gru(w, "encoder", [linear(w, "regions", v) for v in regions], hidden)
        state = encoded[-1]
        for given, wanted in pairwise(tokens):
            energies = []
            for e in encoded:
                both = zip(linear(w, "align_regions", e), linear(w, "align_state", state), strict=True)
                energies.append(dot(w["importance.weight"][0], [torch.tanh(x + y) for x, y in both]))
            total = add(*(torch.exp(energy) for energy in energies))
            shares = [torch.exp(energy) / total for energy in energies]
            context = [add(*(share * e[k] for share, e in zip(shares, encoded, strict=True))) for k in range(hidden)]
            state = gru_step(w, "decoder", [*w["words.weight"][given], *context], state)
            logits = linear(w, "out", state)
            losses.append(torch.log(add(*(torch.exp(one) for one in logits))) - logits[wanted])
    return add(*losses) / len(captions)
