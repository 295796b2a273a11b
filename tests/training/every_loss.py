"""The losses, batches and encoders on which many processes, or many chunks, are compared with one."""

from itertools import islice, product

import numpy as np
import torch
from torch import nn

from rungwise import losses
from rungwise.losses import Loss, Weighted
from rungwise.training.config import config_of
from rungwise.training.distributed import GlobalNegatives

PICTURES = 12

PLAIN = [
    name
    for name, one in ((name, getattr(losses, name)) for name in losses.__all__)
    if isinstance(one, type) and issubclass(one, losses.Loss) and name not in ("BlockLoss", "Loss", "Weighted")
]
MEMBERS = (config_of(losses.MaxOfHinges)(), config_of(losses.MultiModalNCE)(learnable=True))
NAMED = [
    *(config_of(getattr(losses, name))() for name in PLAIN),
    config_of(Weighted)(losses=MEMBERS, weights=(1.0, 0.5)),
]
"""A configuration of every loss of the package."""


def _weighted(**options):
    return Weighted([losses.MaxOfHinges(**options), losses.MultiModalNCE(**options)], [1.0, 0.5])


FAMILIES = {
    "SumOfHinges": losses.SumOfHinges,
    "MaxOfHinges": lambda **k: losses.MaxOfHinges(mask_above=0.8, **k),
    "MaxOfHinges, drawn": lambda **k: losses.MaxOfHinges(negative_set=2, **k),
    "warm_up": lambda **k: losses.warm_up(losses.MaxOfHinges(margin=0.3, **k)),
    "Ladder": losses.Ladder,
    "Ladder, sum": lambda **k: losses.Ladder(sampling="sum", **k),
    "Ladder, two pairs": lambda **k: losses.Ladder(pairs=2, **k),
    "SemanticAdaptiveMargin": lambda **k: losses.SemanticAdaptiveMargin(with_triplet=True, **k),
    "SemanticAdaptiveMargin, drawn": lambda **k: losses.SemanticAdaptiveMargin(negatives="random", **k),
    "AdaptiveListwise": lambda **k: losses.AdaptiveListwise(irrelevant="other_item", **k),
    "AdaptiveListwise, drawn": lambda **k: losses.AdaptiveListwise(sampled=2, irrelevant="other_item", **k),
    "ContrastiveSum": lambda **k: losses.ContrastiveSum(learnable=True, **k),
    "ContrastiveMax": losses.ContrastiveMax,
    "ContrastiveMax, no hinge": lambda **k: losses.ContrastiveMax(margin=0.0, hinge=False, **k),
    "MultiModalNCE": lambda **k: losses.MultiModalNCE(learnable=True, **k),
    "Sigmoid": lambda **k: losses.Sigmoid(learnable=True, **k),
    "SoftContrastive": lambda **k: losses.SoftContrastive(learnable=True, **k),
    "SmoothNDCG": losses.SmoothNDCG,
    "Weighted": _weighted,
}

# The images and captions of each of two processes, as positions; caption c was written for image c % PICTURES.
BATCHES = {
    "square, of two sizes": (([0, 1, 2, 3], [0, 1, 2, 3]), ([4, 5, 6], [4, 5, 6])),
    "square, pictures twice": (([0, 1, 0, 2], [0, 1, 12, 2]), ([2, 1, 3], [14, 13, 3])),
    "rectangular": (([0, 1], [0, 12, 1, 24]), ([3, 4, 5], [3, 15, 4])),
    "rectangular, pairs across processes": (([0, 1], [0, 3, 1, 24]), ([3, 0, 5], [13, 15, 4])),
}


# How many pairs lose, where the batch is a negative set beyond them: on both processes, or on the first alone.
QUERIES = {"square, of two sizes": (None, 5, 3), "square, pictures twice": (None, 4)}


def cases():
    """Name, batch, how many of its pairs lose (None: all), and a loss with its options."""
    for (family, make), (batch, shares) in product(FAMILIES.items(), BATCHES.items()):
        extras = ("mask", "keep", "pair") if batch == "square, pictures twice" else ("mask",)
        for extra, reduction, queries in product(extras, ("sum", "mean"), QUERIES.get(batch, (None,))):
            torch.manual_seed(0)
            loss: Loss = make(extra_positives=extra, reduction=reduction).double()
            yield f"{family}; {batch}; {extra}; {reduction}; {queries}", shares, queries, loss


def some_cases():
    """Few of them: every loss on four or five batches, every batch with several losses."""
    return islice(cases(), 0, None, 5)


class Source:
    """Degrees and positives of 36 captions of 12 pictures."""

    def __init__(self) -> None:
        self.degrees = np.random.default_rng(3).random((PICTURES, 3 * PICTURES), np.float32)
        self.asked: list[tuple[int, int]] = []

    def block(self, images, captions):
        self.asked.append((len(images), len(captions)))
        return self.degrees[np.ix_(images, captions)]

    def dense(self):
        return self.degrees

    def positives(self, images, captions):
        # Caption 4 describes three pictures, of which the first two share nothing else.
        return (images[:, None] == captions % PICTURES) | ((images[:, None] < 2) & (captions == 4))


class CaptionPairs:
    """Degrees of captions against captions; no picture has a position here."""

    def __init__(self) -> None:
        self.degrees = np.random.default_rng(4).random((3 * PICTURES, 3 * PICTURES), np.float32)

    def block(self, references, captions):
        return self.degrees[np.ix_(references, captions)]

    def dense(self):
        return self.degrees


def inner(a, b):
    return a @ b.T


def by_caption_pair():
    """A batch, and a loss whose relevance is that of the captions paired in it."""
    loss = losses.Ladder(reduction="mean").double()
    source = Source()
    return BATCHES["square, pictures twice"], GlobalNegatives(
        loss, relevance=CaptionPairs(), positives=source.positives
    )


def with_another_similarity_within():
    """A batch, and a loss whose similarities within a modality are not those across."""
    loss = losses.MultiModalNCE(reduction="mean").double()
    return BATCHES["square, of two sizes"], GlobalNegatives(loss, within=inner)


class Encoders(nn.Module):
    """An image side and a text side, fed with positions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.image_features = torch.randn(PICTURES, 5, dtype=torch.float64)
        self.text_features = torch.randn(3 * PICTURES, 5, dtype=torch.float64)
        self.image_side = nn.Linear(5, 4, dtype=torch.float64)
        self.text_side = nn.Linear(5, 4, dtype=torch.float64)
        self.dropout = nn.Dropout(0.0)

    def forward(self, images, captions):
        return (
            self.dropout(self.image_side(self.image_features[images])),
            self.dropout(self.text_side(self.text_features[captions])),
        )


def gradients(*modules):
    """All gradients in one vector."""
    return torch.cat([p.grad.flatten() for module in modules for p in module.parameters()])
