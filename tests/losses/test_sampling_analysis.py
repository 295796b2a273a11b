from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from rungwise.losses import plot_miss_probability
from rungwise.losses._sampling_analysis import miss_probability, smallest_batch


@pytest.mark.parametrize(
    ("share", "below", "size"), [("0.1", "0.01", 45), ("0.001", "0.01", 4604), ("0.001", "0.001", 6906)]
)
def test_exact_sizes(share: str, below: str, size: int) -> None:
    assert smallest_batch(share, below) == size
    assert miss_probability(share, size) < Fraction(below) <= miss_probability(share, size - 1)


@given(st.fractions(Fraction(1, 50), Fraction(49, 50)), st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
def test_smallest_is_smallest(share: Fraction, below: Fraction) -> None:
    expected = 1
    while (1 - share) ** (expected - 1) >= below:
        expected += 1
    assert smallest_batch(share, below) == expected


def test_a_bound_that_is_met_exactly_is_not_below() -> None:
    assert smallest_batch("0.5", "0.25") == 4


def test_plot_marks_the_sizes() -> None:
    axes = Figure().subplots()
    plot_miss_probability(axes, ["0.1", "0.001"], below="0.001")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "hardest 10 %: M = 67",
        "hardest 0.1 %: M = 6906",
    ]


def test_plot_draws_the_probabilities() -> None:
    axes = Figure().subplots()
    plot_miss_probability(axes, ["0.1"], largest=64)
    sizes, drawn = axes.get_lines()[0].get_data()
    assert list(drawn) == pytest.approx([float(miss_probability("0.1", int(size))) for size in sizes], rel=1e-9)


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "1.5"])
def test_nonsense_is_refused(share: str) -> None:
    with pytest.raises(ValueError, match="share must be"):
        miss_probability(share, 4)
    with pytest.raises(ValueError, match="below must be"):
        smallest_batch("0.1", share)
    with pytest.raises(ValueError, match="batch_size"):
        miss_probability("0.1", 0)
