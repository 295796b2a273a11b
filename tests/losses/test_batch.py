import pytest
import torch

from rungwise.losses import Reads, WholeBatch

SAME = torch.tensor([0, 1, 0, 2])
POSITIVES = SAME.unsqueeze(1) == SAME


def test_sides_have_what_is_read_and_no_more():
    block = torch.randn(4, 4)
    batch = WholeBatch(block, block, POSITIVES, block, block)
    for side in batch.sides(Reads()):
        assert side.within is side.same is side.image_degrees is None
    i2t, t2i = batch.sides(Reads(relevance=True, within=True, candidate_captions=True))
    assert i2t.within is t2i.within is block
    assert i2t.image_degrees is None
    assert t2i.image_degrees is block


@pytest.mark.parametrize(("extra", "expected"), [("mask", POSITIVES), ("pair", POSITIVES), ("keep", torch.eye(4) > 0)])
def test_items_that_share_a_positive_are_the_same_unless_positives_are_kept(extra, expected):
    block = torch.randn(4, 4)
    for side in WholeBatch(block, None, POSITIVES, block, block).sides(Reads(within=True), extra):
        assert (side.same == expected).all()


def test_captions_of_a_candidate_are_averaged_where_it_has_several():
    positives = torch.tensor([[True, True, False], [False, False, True]])
    degrees = torch.tensor([[1.0, 0.5, 0.2], [0.4, 0.0, 0.8]])
    _, t2i = WholeBatch(torch.zeros(2, 3), degrees, positives).sides(Reads(relevance=True, candidate_captions=True))
    # Pairs are listed by image: two captions of the first, one of the second.
    expected = torch.tensor([[0.75, 0.2], [0.75, 0.2], [0.2, 0.8]])
    torch.testing.assert_close(t2i.image_degrees, expected)


def test_pairs_are_counted_whatever_makes_them():
    assert WholeBatch(torch.zeros(4, 4), None, POSITIVES).pairs(
        WholeBatch(torch.zeros(4, 4), None, POSITIVES).sides(Reads(), "pair")[0]
    ) == int(POSITIVES.sum())


def test_what_is_read_and_missing_is_refused():
    for reads, complaint in (
        (Reads(within=True), "image_similarity must be .4, 4., got nothing"),
        (Reads(candidate_captions=True), "pass relevance"),
    ):
        with pytest.raises(ValueError, match=complaint):
            WholeBatch(torch.zeros(4, 4)).sides(reads)
