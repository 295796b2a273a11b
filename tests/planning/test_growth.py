import pytest

from rungwise.planning._growth import growth
from rungwise.planning._rates import Rates, sized_name, sized_rate


def measured(*points: tuple[int, float]) -> Rates:
    return {sized_name("words", rows): sized_rate("words", rows, value) for rows, value in points}


def test_at_a_measured_size_it_is_what_was_measured() -> None:
    rates = measured((8000, 5.0), (100_000, 20.0), (10**6, 24.0))
    for rows, value in ((8000, 5.0), (100_000, 20.0), (10**6, 24.0)):
        found = growth(rates, "words", rows)
        assert (found.value, found.formula, found.rates) == (value, "{}", (rates[sized_name("words", rows)],))


def test_between_sizes_it_lies_on_the_line_through_the_two_nearest() -> None:
    rates = measured((1000, 5.0), (3000, 9.0), (13_000, 19.0))
    assert growth(rates, "words", 2000).value == pytest.approx(7.0)
    assert growth(rates, "words", 8000).value == pytest.approx(14.0)
    assert [rate.rows for rate in growth(rates, "words", 8000).rates] == [3000, 13_000]


def test_beyond_the_largest_size_the_last_line_goes_on_and_never_falls() -> None:
    assert growth(measured((1000, 5.0), (3000, 9.0)), "words", 10_000).value == pytest.approx(23.0)
    assert growth(measured((1000, 5.0), (3000, 4.0)), "words", 10_000).value == 4.0


def test_below_the_smallest_size_there_is_a_floor_and_no_less_than_nothing() -> None:
    assert growth(measured((1000, 5.0), (3000, 9.0)), "words", 1).value == pytest.approx(3.002)
    assert growth(measured((1000, 1.0), (2000, 9.0)), "words", 500).value == pytest.approx(0.5)


def test_one_size_alone_stands_for_less_and_grows_in_proportion() -> None:
    rates = measured((1000, 5.0))
    assert [growth(rates, "words", rows).value for rows in (1, 1000, 3000)] == [5.0, 5.0, 15.0]
