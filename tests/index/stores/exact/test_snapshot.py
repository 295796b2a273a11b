import numpy as np
import pytest

from rungwise.index.stores.exact._snapshot import ExactSnapshot, Segment


def snapshot() -> ExactSnapshot:
    first, second, third = np.arange(12, dtype=np.float32).reshape(6, 2)[:3], np.ones((1, 2)), np.zeros((2, 2))
    return ExactSnapshot(
        2,
        (
            Segment(4, ("a", "b", "c"), first, ({"n": 1}, {}, {"n": 3}), frozenset({1})),
            Segment(7, ("d",), second.astype(np.float32), ({"n": 4},), frozenset({0})),
            Segment(9, ("b", "e"), third.astype(np.float32), ({"n": 5}, {"n": 6})),
        ),
    )


def test_positions_count_deleted_rows_and_ids_stand_once() -> None:
    assert snapshot().positions == {"a": 0, "c": 2, "b": 4, "e": 5}
    assert (len(snapshot()), snapshot().shape) == (6, (6, 2))
    assert [one for one, _ in snapshot().records()] == ["a", "c", "b", "e"]
    kept = snapshot().kept(None)
    assert kept is not None
    assert np.flatnonzero(~kept).tolist() == [1, 3]
    part, row = snapshot().at(4)
    assert (part.ids[row], part.number) == ("b", 9)


@pytest.mark.parametrize(("start", "stop"), [(0, 6), (0, 2), (2, 5), (3, 4), (5, 9), (6, 9), (0, 99)])
def test_a_block_is_a_slice_of_all_rows(start: int, stop: int) -> None:
    whole = np.concatenate([part.vectors for part in snapshot().parts])
    np.testing.assert_array_equal(snapshot()[start:stop], whole[start:stop])


def test_blocks_within_a_part_are_not_copied() -> None:
    one = snapshot()
    assert np.shares_memory(one[0:2], one.parts[0].vectors)


def test_deleting_makes_another_snapshot() -> None:
    before = snapshot()
    after = before.without(["b", "nobody", "a"])
    assert list(after.positions) == ["c", "e"]
    assert list(before.positions) == ["a", "c", "b", "e"]
    assert [part.live for part in after.parts] == [1, 0, 1]
