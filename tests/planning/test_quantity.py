import pytest

from rungwise.planning import Quantity, Rate
from rungwise.planning._quantity import said

MEASURED = Rate("rows", 10.0, "rows/s", "a page", rows=1000, dimension=512)
FURTHER = Rate("searches", 5.0, "ms", "a page", rows=5000, dimension=512)
ASSUMED = Rate("even parts", 1.0, "", "nobody tried", machine="", assumed=True)


def test_beyond_what_was_measured_it_says_so_and_names_the_smallest() -> None:
    rates = (MEASURED, FURTHER)
    assert Quantity("x", 1.0, "ms", "{} {}", rates, rows=1000, dimension=512).doubts == ()
    assert Quantity("x", 1.0, "ms", "{} {}", rates, rows=1500, dimension=512).doubts == ()
    assert Quantity("x", 1.0, "ms", "{} {}", rates, rows=1501, dimension=512).doubts == ("extrapolated from 1 k rows",)
    assert Quantity("x", 1.0, "ms", "{}", (FURTHER,), rows=9000, dimension=64).doubts == (
        "extrapolated from 5 k rows",
        "measured with D = 512",
    )


def test_of_a_rate_with_several_sizes_the_largest_counts() -> None:
    sizes = tuple(Rate("words", 1.0, "ms", "a page", rows=rows) for rows in (1000, 100_000))
    assert Quantity("x", 1.0, "ms", "{} {}", sizes, rows=150_000).doubts == ()
    assert Quantity("x", 1.0, "ms", "{} {}", sizes, rows=150_001).doubts == ("extrapolated from 100 k rows",)


def test_where_the_dimension_does_not_matter_none_is_doubted() -> None:
    assert Quantity("x", 1.0, "ms", "{}", (MEASURED,), rows=1000).doubts == ()


def test_what_nobody_measured_is_said() -> None:
    assert Quantity("x", 2.0, "machines", "N", (ASSUMED,), rows=10**9).doubts == ("not measured, assumed: even parts",)
    assert Quantity("x", None, "hours", "N", remark="measure it").said == "not measured"
    assert Quantity("x", None, "hours", "N", remark="measure it").doubts == ("measure it",)


def test_a_formula_holds_its_rates_with_their_marks() -> None:
    found = Quantity("x", 1.0, "hours", "R / {} + {}", (MEASURED, FURTHER))
    assert found.explained(["[1]", "[2]"]) == "R / 10 rows/s [1] + 5 ms [2]"
    plain = found.plain()
    assert plain["formula"] == "R / 10 rows/s + 5 ms"
    assert [(one["value"], one["rows"], one["source"], one["measured"]) for one in plain["rates"]] == [
        (10.0, 1000, "a page", True),
        (5.0, 5000, "a page", True),
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.0, "bytes", "12 B"),
        (999.0, "bytes", "999 B"),
        (1e12, "bytes", "1 TB"),
        (38.4e12, "bytes", "38 TB"),
        (1 / 3600, "hours", "1 s"),
        (1.5, "hours", "90 min"),
        (47.0, "hours", "47 h"),
        (50.0, "hours", "2.1 days"),
        (20 * 8766, "hours", "20 years"),
        (10**6, "hours", "> 100 years"),
        (24e6, "ms", "6.7 h"),
        (2.5e6, "machines", "2.5 M"),
        (0.64, "ms", "0.64 ms"),
        (1000.0, "ms", "1 s"),
        (4367.0, "machines", "4,367"),
        (138.2, "a second", "138/s"),
    ],
)
def test_numbers_are_said_in_units_that_fit(value: float, unit: str, text: str) -> None:
    assert said(value, unit) == text
