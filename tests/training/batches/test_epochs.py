import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rungwise.training.batches import epoch_batches, further_pairs


@given(st.lists(st.integers(1, 30), min_size=1, max_size=80), st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_every_caption_occurs_once(lengths: list[int], batch_size: int, pool: int, epoch: int) -> None:
    batches = epoch_batches(lengths, batch_size, seed=1, epoch=epoch, pool=pool)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert max(len(batch) for batch in batches) <= batch_size
    assert sum(len(batch) < batch_size for batch in batches) <= 1


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    lengths = np.arange(100) % 13
    same = [epoch_batches(lengths, 8, seed=3, epoch=2) for _ in range(2)]
    assert all(np.array_equal(a, b) for a, b in zip(*same, strict=True))
    other = epoch_batches(lengths, 8, seed=3, epoch=3)
    assert not all(np.array_equal(a, b) for a, b in zip(same[0], other, strict=True))


def test_pools_make_batches_of_similar_length() -> None:
    lengths = np.random.default_rng(0).integers(5, 40, 4000)

    def padding(pool: int) -> int:
        return sum(
            int((lengths[b].max() - lengths[b]).sum()) for b in epoch_batches(lengths, 50, seed=0, epoch=0, pool=pool)
        )

    assert padding(20) < 0.15 * padding(1)
    assert padding(2) < padding(1)


def test_further_pairs_are_any_but_those_of_the_batch() -> None:
    batch, seen = np.array([9, 0, 4, 5]), set()
    for seed in range(200):
        drawn = further_pairs(batch, 3, 10, seed)
        assert len(set(drawn.tolist()) - set(batch.tolist())) == 3
        seen.update(drawn.tolist())
    assert seen == {1, 2, 3, 6, 7, 8}
    assert sorted(further_pairs(batch, 6, 10, 0).tolist()) == [1, 2, 3, 6, 7, 8]
    assert further_pairs(batch, 0, 10, 0).tolist() == []
    assert np.array_equal(further_pairs(batch, 3, 10, 5), further_pairs(batch, 3, 10, 5))
