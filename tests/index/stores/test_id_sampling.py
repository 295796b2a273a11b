from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.stores._id_sampling import DRAWS, sample_key, smallest_keys


@given(st.sets(st.text(), min_size=1, max_size=60), st.sets(st.text(), max_size=10), st.integers(1, 30))
def test_what_comes_and_goes_changes_what_is_drawn_by_no_more_than_itself(before: set, come: set, size: int) -> None:
    first, after = set(smallest_keys(sorted(before), size)), set(smallest_keys(sorted(before | come), size))
    assert len(first) == min(size, len(before))
    assert len(first - after) <= len(come - before)
    assert after - first <= come


def test_draws_are_spread_evenly() -> None:
    tenths = [10 * sample_key(f"picture-{number}") // DRAWS for number in range(10_000)]
    assert all(900 < tenths.count(tenth) < 1100 for tenth in range(10))
