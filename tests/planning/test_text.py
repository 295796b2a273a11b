import re

import pytest

from rungwise.cli import main
from rungwise.planning import STORED, Need, plan, plan_text
from tests.pages import pages_below


@pytest.mark.parametrize("count", [1, 10_000, 200_000, 10**6, 10**8, 5 * 10**9, 10**12])
@pytest.mark.parametrize("captions", [0, 5])
def test_a_plan_fits_eighty_columns_and_every_mark_is_explained(count: int, captions: int) -> None:
    planned = plan(Need(count, captions=captions, queries=50, within=24, thumbnails=True, dimension=1152))
    text = plan_text(planned)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    explained = {line.split()[0] for line in lines if re.match(r"\[\d+\] ", line)}
    assert set(re.findall(r"\[\d+\]", text)) == explained
    assert explained == {f"[{one + 1}]" for one in range(len(explained))}
    assert not re.search(r"\{|\}|None|nan", text)
    for one in planned.quantities:
        assert one.name in text
        assert one.said in text


def test_every_rate_stands_with_its_machine_and_its_source() -> None:
    text = plan_text(plan(Need(10**6)))
    assert "measured on 2 x86-64 cores (AMD EPYC, AVX-512), 24 GiB:" in text
    assert "docs/reference/lookup/costs-search.md" in text
    assert "not measured" in text, "GPUs are not"


def test_what_is_extrapolated_or_speaks_against_a_store_is_marked() -> None:
    text = " ".join(plan_text(plan(Need(10**8, store="lance"))).split())
    assert "! extrapolated from 1 M rows" in text
    assert "but one search takes" in text
    assert "(no)" in text
    assert "extrapolated" not in plan_text(plan(Need(10_000)))


def test_the_recommended_store_is_pointed_at() -> None:
    lines = plan_text(plan(Need(10_000), STORED)).splitlines()
    assert next(line for line in lines if line.endswith("<-")).startswith("lance")


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^```text\n\$ rungwise (plan .+)\n((?:.*\n)*?)```$", pages_below("operate"), flags=re.MULTILINE)
    assert [line.split()[1] for line, _ in shown] == ["10k", "1M", "100M", "5B"]
    for line, printed in shown:
        assert main(line.split()) == 0
        assert capsys.readouterr().out.rstrip() == printed.rstrip()
