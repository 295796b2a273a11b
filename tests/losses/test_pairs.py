import pytest
import torch

from rungwise.losses import SumOfHinges
from rungwise.losses._pairs import two_sides


def test_a_rectangular_block_needs_positives():
    with pytest.raises(ValueError, match="needs positives"):
        SumOfHinges()(torch.zeros(2, 3))


@pytest.mark.parametrize("shape", [(0, 0), (3,), (2, 2, 2)])
def test_a_block_is_two_dimensional_and_not_empty(shape):
    with pytest.raises(ValueError, match="images, captions"):
        two_sides(torch.zeros(shape))


@pytest.mark.parametrize("name", ["relevance", "positives"])
def test_shapes_must_agree(name):
    with pytest.raises(ValueError, match=rf"{name} is \(3, 2\) but similarity is \(3, 3\)"):
        SumOfHinges()(torch.zeros(3, 3), **{name: torch.zeros(3, 2)})


def test_mask_above_needs_relevance():
    with pytest.raises(ValueError, match="mask_above"):
        SumOfHinges(mask_above=0.5)(torch.zeros(3, 3))


@pytest.mark.parametrize(("name", "value"), [("reduction", "avg"), ("extra_positives", "ignore")])
def test_options_are_named_in_the_complaint(name, value):
    with pytest.raises(ValueError, match=f"{name} must be one of .* got '{value}'"):
        SumOfHinges(**{name: value})


def test_nothing_is_masked_by_relevance_unless_asked():
    i2t, _ = two_sides(torch.zeros(3, 3), torch.ones(3, 3))
    assert not i2t.masked.any()


def test_an_image_with_several_captions_loses_what_its_repeated_rows_lose():
    owner = torch.tensor([0, 0, 1, 2, 2, 2])
    s = torch.randn(3, 6, dtype=torch.float64)
    positives = torch.arange(3).unsqueeze(1) == owner
    i2t, _ = SumOfHinges(reduction="none")(s, positives=positives)
    repeated, _ = SumOfHinges(reduction="none")(s[owner], positives=positives[owner])
    torch.testing.assert_close(i2t, torch.zeros(3, dtype=torch.float64).index_add(0, owner, repeated))
