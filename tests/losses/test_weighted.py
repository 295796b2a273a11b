import pytest
import torch

from rungwise.losses import ContrastiveSum, Ladder, MaxOfHinges, MultiModalNCE, SumOfHinges, Weighted


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_is_the_weighted_sum_of_its_losses(reduction):
    s, relevance = torch.randn(5, 5), torch.rand(5, 5)
    parts = [MaxOfHinges(reduction=reduction), Ladder(reduction=reduction)]
    together = Weighted(parts, [2.0, 0.5])(s, relevance)
    one, two = (part(s, relevance) for part in parts)
    if reduction == "none":
        for side in range(2):
            torch.testing.assert_close(together[side], 2 * one[side] + 0.5 * two[side])
    else:
        torch.testing.assert_close(together, 2 * one + 0.5 * two)


def test_similarities_within_a_modality_reach_the_loss_that_needs_them():
    s = torch.randn(5, 5)
    within = {"image_similarity": torch.randn(5, 5), "text_similarity": torch.randn(5, 5)}
    nested = Weighted([Weighted([MultiModalNCE()], [0.5]), SumOfHinges()], [2.0, 1.0])
    torch.testing.assert_close(nested(s, **within), MultiModalNCE()(s, **within) + SumOfHinges()(s))


def test_parameters_of_its_losses_are_its_own():
    assert len(list(Weighted([ContrastiveSum(learnable=True)], [1.0]).parameters())) == 1


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="1 losses and 2 weights"):
        Weighted([SumOfHinges()], [1.0, 2.0])
    with pytest.raises(ValueError, match="different reductions"):
        Weighted([SumOfHinges(), SumOfHinges(reduction="mean")], [1.0, 1.0])


def test_extra_positives_are_each_loss_own():
    s, same = torch.randn(4, 4), torch.ones(4, 4, dtype=torch.bool)
    parts = [SumOfHinges(extra_positives="mask"), SumOfHinges(extra_positives="keep")]
    assert Weighted(parts, [1.0, 1.0])(s, positives=same) == SumOfHinges()(s)
