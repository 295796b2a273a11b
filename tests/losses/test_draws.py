import torch

from rungwise.losses import BlockSide
from rungwise.losses._draws import draw, pair_keys
from rungwise.losses._pairs import two_sides


def test_a_slice_of_a_batch_draws_what_the_whole_draws():
    whole, _ = two_sides(torch.zeros(8, 8))
    queries = torch.arange(3, 6)
    own = torch.arange(3)
    paired = queries.unsqueeze(1) == torch.arange(8)
    part = BlockSide(torch.zeros(3, 8), None, paired, ~paired & False, own, queries, True, query_ids=queries)
    keys = [pair_keys(side, torch.Generator().manual_seed(9)) for side in (whole, part)]
    assert (keys[0][3:6] == keys[1]).all()


def test_draws_are_even():
    side, _ = two_sides(torch.zeros(200, 200))
    generator = torch.Generator().manual_seed(0)
    drawn = sum(draw(~side.excluded, pair_keys(side, generator), 20).sum(dim=0) for _ in range(50))
    expected = 50 * 20
    assert (drawn - expected).abs().max() < 6 * expected**0.5


def test_the_next_draw_is_another():
    side, _ = two_sides(torch.zeros(50, 50))
    generator = torch.Generator().manual_seed(0)
    one, two = (pair_keys(side, generator) for _ in range(2))
    assert (one != two).float().mean() > 0.99


def test_a_query_draws_for_each_of_its_pairs():
    positives = torch.tensor([[True, True, False, False, False], [False, False, True, True, True]])
    side, _ = two_sides(torch.zeros(2, 5), positives=positives)
    keys = pair_keys(side, torch.Generator().manual_seed(0))
    assert keys.shape == (5, 5)
    assert len(keys.unique()) == 25
