"""A share of every attack, which the whole tier plays; the whole of each family is marked `long`."""

import pytest

from tests.hostile.conftest import run_kit, with_shim
from tests.hostile.counting import Report

pytestmark = pytest.mark.slow

FAMILIES = ("files", "commands", "verify", "kills", "power", "full")
SHARE = "0.015"  # some minutes


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One run for all tests here, since most of its time goes into making what is attacked."""
    return run_kit(tmp_path_factory.mktemp("hostile"), *FAMILIES, "--share", SHARE, "--processes", "1")


@pytest.mark.parametrize(
    ("families", "least"),
    [
        pytest.param(("files",), 90, id="hostile files are refused or read right"),
        pytest.param(("commands",), 20, id="hostile files get one line of each command"),
        pytest.param(("verify",), 10, id="verify finds what commands would stumble over"),
        pytest.param(("kills",), 10, marks=with_shim, id="kills lose nothing"),
        pytest.param(("power",), 40, marks=with_shim, id="power cuts lose nothing"),
        pytest.param(("full", "memory"), 15, marks=with_shim, id="full disks and memories lose nothing"),
    ],
)
def test_a_share_of_attacks(played: Report, families: tuple[str, ...], least: int) -> None:
    assert sum(case.family in families for case in played.cases) > least
    assert not [bad for family in families for bad in played.bad(family)], played.faults()
