"""What all tests share: the real data, a cache of their own, and no quiet skipping."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from tests.own_parts import forgotten
from tests.published import Published

pytest_plugins = ["tests.tiers"]

# How long an example takes says something of the machine, not of the program.
hypothesis.settings.register_profile("no clock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("no clock")

FOLDER = os.environ.get("RUNGWISE_DATA", "")
_skipped: list[str] = []


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that ``RUNGWISE_DATA`` names; skips where it is not set."""
    if not FOLDER:
        pytest.skip("RUNGWISE_DATA is not set: no real data here")
    assert Path(FOLDER).is_dir(), f"RUNGWISE_DATA names {FOLDER}, which is no folder"
    return Path(FOLDER)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["RUNGWISE_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """What a test draws without a generator of its own is the same in any order of tests."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - libraries draw from it
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _forgotten_parts() -> Iterator[None]:
    """A part that a test makes is not in the messages that the next one reads."""
    with forgotten():
        yield


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub does not answer in tests, unless they have one of their own on this machine."""
    import huggingface_hub
    from huggingface_hub.errors import OfflineModeIsEnabled

    answer = huggingface_hub.HfApi.repo_info

    def ask(self: Any, *asked: Any, **how: Any) -> Any:
        if "//127.0.0.1" in self.endpoint:
            return answer(self, *asked, **how)
        raise OfflineModeIsEnabled("no network in tests")

    monkeypatch.setattr(huggingface_hub.HfApi, "repo_info", ask)


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Milvus server on this machine, without the name of an index.

    It runs while a module needs it: with some dozen collections it takes a third of a core when nobody asks.
    """
    pytest.importorskip("milvus", reason="a server to try comes with: pip install milvus")
    pytest.importorskip("pymilvus")
    from tests.milvus_server import local_milvus

    with local_milvus(tmp_path_factory.mktemp("milvus")) as server:
        yield server.address


@pytest.fixture(scope="session")
def two_workers() -> Iterator[None]:
    """Ray with two workers on this machine, which whoever asks for Ray then uses."""
    pytest.importorskip("ray")
    from rungwise.core.compute import cluster

    with cluster(workers=2):
        yield


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Tiny models as their libraries publish them."""
    return Published(tmp_path_factory.mktemp("published"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note real-data tests that were skipped although the data are there; also those of other processes."""
    if FOLDER and report.skipped and "real_data" in report.keywords and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where real data are, a skipped real-data test is a failure."""
    if _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter) -> None:
    """Say so."""
    for test in _skipped:
        terminalreporter.write_line(f"FAILED {test}: skipped although RUNGWISE_DATA is set", red=True)
