import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rungwise.calibration._rung_names import CLOSE, EXACT, names_from


def test_a_name_is_right_as_often_as_it_promises_and_begins_as_early_as_it_can():
    rng = np.random.default_rng(0)
    expected = rng.random(5000)
    true = np.clip(expected + rng.normal(0, 0.2, 5000), 0, 1)
    exactly, close = names_from(expected, true, 0.5, 1.0)
    assert 1 > exactly > close >= 0.25
    first, second = expected >= exactly, (expected >= close) & (expected < exactly)
    assert (true[first] >= 0.75).mean() >= EXACT
    assert (true[expected >= exactly - 0.02] >= 0.75).mean() < EXACT
    assert (true[second] >= 0.5).mean() >= CLOSE


@given(
    st.lists(st.tuples(st.sampled_from([0.3, 0.5, 0.6, 0.8, 1.0]), st.sampled_from([0.0, 0.5, 0.75, 1.0])), max_size=60)
)
def test_boundaries_are_those_of_loops(pairs):
    expected, true = (np.array([pair[at] for pair in pairs], float) for at in (0, 1))
    found = names_from(expected, true, 0.75, 1.0)

    def boundary(rows, least, share):
        best = None
        for level in sorted({e for e, _ in rows}, reverse=True):
            named = [t for e, t in rows if e >= level]
            if len(named) >= 10 and sum(t >= least for t in named) >= share * len(named):
                best = level
        return np.nextafter(1.0, np.inf) if best is None else best

    exactly = max(0.5, boundary(pairs, 0.875, EXACT))
    close = boundary([pair for pair in pairs if pair[0] < exactly], 0.75, CLOSE)
    assert found == (exactly, min(exactly, max(0.25, close)))


def test_a_name_that_is_never_right_or_seldom_given_is_not_given():
    assert min(names_from(np.full(30, 0.9), np.zeros(30), 0.5, 1.0)) > 1
    assert min(names_from(np.full(9, 0.9), np.ones(9), 0.5, 1.0)) > 1
    assert min(names_from(np.zeros(0), np.zeros(0), 0.5, 1.0)) > 1
