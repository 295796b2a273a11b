"""Draws the figures of docs/explanation/losses: which pairs of a block each loss gives a gradient.

Run it after a change to a loss: python docs/figures/losses.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from rungwise import losses
from rungwise.losses import plot_miss_probability

FOLDER = Path(__file__).parent.parent / "explanation" / "losses"
PAIRS = 8
SAME = torch.arange(PAIRS).clone()
SAME[5] = 2  # pairs 2 and 5 show one picture
POSITIVES = SAME.unsqueeze(0) == SAME.unsqueeze(1)

Panel = tuple[str, Callable[[Tensor, Tensor], Tensor]]


def block() -> tuple[Tensor, Tensor]:
    """Similarities of a half-trained model, and relevance on four levels."""
    draws = torch.Generator().manual_seed(4)
    level = torch.randint(6, (PAIRS, PAIRS), generator=draws)
    relevance = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.6, 0.7])[level]
    relevance = torch.where(POSITIVES, 0.9, relevance)
    relevance.fill_diagonal_(1.0)
    noise = torch.randn(PAIRS, PAIRS, generator=draws)
    return 0.3 * relevance + 0.17 * noise, relevance


def plain(loss: losses.BlockLoss) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss that is given relevance and the positives of the block."""
    return lambda similarity, relevance: loss(similarity, relevance, POSITIVES)


def nce(similarity: Tensor, relevance: Tensor) -> Tensor:
    """MultiModalNCE, of which the figure shows the part across modalities."""
    within = torch.full((PAIRS, PAIRS), 0.15)
    return losses.MultiModalNCE()(similarity, relevance, POSITIVES, image_similarity=within, text_similarity=within)


FIGURES: dict[str, list[Panel]] = {
    "hinges": [
        ("SumOfHinges", plain(losses.SumOfHinges())),
        ("MaxOfHinges", plain(losses.MaxOfHinges())),
        ("MaxOfHinges, 3 drawn", plain(losses.MaxOfHinges(negative_set=3))),
    ],
    "ladder": [
        ("rung 1 alone", plain(losses.Ladder(weights=(1.0, 0.0)))),
        ("rung 2 alone, one pair", plain(losses.Ladder(weights=(0.0, 1.0)))),
        ("rung 2 alone, sum", plain(losses.Ladder(weights=(0.0, 1.0), sampling="sum"))),
    ],
    "semantic-adaptive-margin": [
        ("softest", plain(losses.SemanticAdaptiveMargin(1.0, negatives="softest"))),
        ("hardest", plain(losses.SemanticAdaptiveMargin(1.0, negatives="hardest"))),
        ("random", plain(losses.SemanticAdaptiveMargin(1.0, negatives="random"))),
    ],
    "adaptive-listwise": [
        ("all irrelevant (R = 0)", plain(losses.AdaptiveListwise())),
        ("all others", plain(losses.AdaptiveListwise(irrelevant="other_item"))),
        ("2 drawn", plain(losses.AdaptiveListwise(sampled=2, irrelevant="other_item"))),
    ],
    "contrastive": [
        ("ContrastiveSum, T = 0.1", plain(losses.ContrastiveSum(0.1))),
        ("ContrastiveSum, T = 0.02", plain(losses.ContrastiveSum(0.02))),
        ("ContrastiveMax", plain(losses.ContrastiveMax())),
    ],
    "multimodal-nce": [("ContrastiveSum", plain(losses.ContrastiveSum())), ("MultiModalNCE", nce)],
    "sigmoid": [
        ("Sigmoid, b = -10", plain(losses.Sigmoid())),
        ("Sigmoid, b = 0", plain(losses.Sigmoid(bias=0.0))),
    ],
    "soft-contrastive": [
        ("target T = 0.02", plain(losses.SoftContrastive(target_temperature=0.02))),
        ("target T = 0.1", plain(losses.SoftContrastive(target_temperature=0.1))),
        ("target T = 0.5", plain(losses.SoftContrastive(target_temperature=0.5))),
    ],
    "smooth-ndcg": [
        ("SmoothNDCG, T = 0.05", plain(losses.SmoothNDCG(0.05))),
        ("SmoothNDCG, T = 0.2", plain(losses.SmoothNDCG(0.2))),
    ],
    "same-picture": [
        (f'extra_positives="{extra}"', plain(losses.SumOfHinges(extra_positives=extra)))
        for extra in ("mask", "keep", "pair")
    ],
}


def draw_block(axes: Axes, values: Tensor, title: str, colours: str, span: tuple[float, float]) -> None:
    """One block of numbers, images down and captions across."""
    axes.imshow(values.numpy(), cmap=colours, vmin=span[0], vmax=span[1], interpolation="none")
    between = [place + 0.5 for place in range(PAIRS - 1)]
    axes.hlines(between, -0.5, PAIRS - 0.5, color="white", linewidth=0.8)
    axes.vlines(between, -0.5, PAIRS - 0.5, color="white", linewidth=0.8)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("captions", fontsize=8)
    for side in axes.spines.values():
        side.set_visible(False)


def draw(name: str, panels: list[Panel]) -> None:
    """Relevance beside the gradient of each loss: blue is pulled together, red pushed apart."""
    similarity, relevance = block()
    figure = Figure(figsize=(2.1 * (len(panels) + 1), 2.5), layout="constrained")
    first, *others = figure.subplots(1, len(panels) + 1)
    draw_block(first, relevance, "relevance R", "Greens", (0, 1.2))
    first.set_ylabel("images", fontsize=8)
    for axes, (title, loss) in zip(others, panels, strict=True):
        torch.manual_seed(0)
        s = similarity.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(s, relevance), s)
        largest = float(slope.abs().max())
        # The square root lets small gradients be seen.
        draw_block(axes, slope.sign() * (slope.abs() / largest).sqrt(), title, "RdBu_r", (-1, 1))
    save(figure, name)


def save(figure: Figure, name: str) -> None:
    """As SVG, equal from run to run."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None}, transparent=False)


def main() -> None:
    """Draw them all."""
    matplotlib.rcParams.update({"svg.hashsalt": "rungwise", "svg.fonttype": "none", "font.family": "sans-serif"})
    for name, panels in FIGURES.items():
        draw(name, panels)
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    plot_miss_probability(figure.subplots())
    save(figure, "sampling-analysis")


if __name__ == "__main__":
    main()
