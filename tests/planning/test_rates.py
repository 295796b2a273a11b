"""The rates that come along: each names where it was printed, and stands there."""

import re
from pathlib import Path

import pytest

from rungwise.planning import STORED, Rate
from rungwise.planning._rates import FILES, MACHINE, OTHER_MACHINE, number

REPOSITORY = Path(__file__).parents[2]


def every() -> list[Rate]:
    return list(STORED.values())


@pytest.mark.parametrize("rate", every(), ids=lambda rate: rate.what)
def test_a_rate_is_a_number_with_a_source_or_says_that_it_is_assumed(rate: Rate) -> None:
    assert rate.value > 0
    if rate.assumed:
        assert not rate.source.startswith("docs/")
        return
    page, _, section = rate.source.partition(", ")
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert not section or f"\n## {section}\n" in text, f"{page} has no section {section!r}"
    assert rate.machine in (MACHINE, OTHER_MACHINE, FILES, "")


@pytest.mark.parametrize(
    "rate", [one for one in every() if not one.assumed and one.machine], ids=lambda rate: rate.what
)
def test_its_number_stands_where_it_says(rate: Rate) -> None:
    page, _, section = rate.source.partition(", ")
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    shown = {number(rate.value), f"{rate.value:g}", rate.said, rate.said.removesuffix(" MB")}
    cells = set(re.findall(r"[\d.,]*\d", part))
    assert shown & cells or rate.said in part, f"{rate.said} stands nowhere in {rate.source}"


def test_numbers_have_three_digits_or_all() -> None:
    assert [number(one) for one in (0.00123, 9.96, 99.4, 100.4, 12159.4)] == [
        "0.00123",
        "9.96",
        "99.4",
        "100",
        "12,159",
    ]
