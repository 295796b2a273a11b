"""Ray on this machine, and addresses where there is none."""

import builtins
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rungwise.core import UserError
from rungwise.core.compute import cluster


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of Ray: notes what it is asked for, and starts nothing."""
    node = SimpleNamespace(Node=SimpleNamespace(start_api_server=None))
    ray = SimpleNamespace(connected=False, asked={}, _private=SimpleNamespace(node=node))
    ray.is_initialized = lambda: ray.connected
    ray.init = lambda **settings: ray.__dict__.update(connected=True, asked=settings)
    ray.shutdown = lambda: ray.__dict__.update(connected=False)
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    return ray


def test_it_is_connected_within_the_block(fake: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster(workers=3) as ray:
        assert ray is fake
        assert ray.connected
        assert "address" not in ray.asked
        assert ray.asked["num_cpus"] == 3
    assert not fake.connected
    answers = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(socket, "create_connection", lambda place, timeout: answers)
    with cluster("[::1]:6379"):
        assert fake.asked["address"] == "[::1]:6379"


def test_a_connection_that_was_there_before_stays(fake: SimpleNamespace) -> None:
    fake.connected = True
    with cluster(workers=3):
        assert fake.asked == {}
    assert fake.connected


def test_a_cluster_that_refuses_is_one_line(fake: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**settings: object) -> None:
        raise ConnectionError("another version\nof Ray")

    fake.init = refuse
    answers = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(socket, "create_connection", lambda place, timeout: answers)
    with pytest.raises(UserError, match=r"^Ray at head:6379: another version of Ray; check that `ray status` answers"):
        cluster("head:6379").__enter__()


@pytest.mark.slow
def test_tasks_run_in_other_processes(two_workers: None) -> None:
    with cluster() as ray:
        assert ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()
    assert ray.is_initialized(), "the connection was there before"


@pytest.mark.smoke
def test_workers_of_this_machine_end_with_the_block() -> None:
    program = (
        "from rungwise.core.compute import cluster\n"
        "from rungwise.core.compute import OnWorkers\n"
        "with cluster(workers=1) as ray:\n"
        "    print(list(OnWorkers(ray)(lambda common, part: common * part, 6, [7])))\n"
        "print(ray.is_initialized())\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["[(0, 42)]", "False"]
    assert said.stderr == ""


def test_nobody_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="nobody answers"):
        cluster("ray://127.0.0.1:99999").__enter__()

    def refused(*_: object, **__: object) -> None:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(UserError, match=r"Ray at 127.0.0.1:6379: nobody answers \(connection .*`ray start --head`"):
        cluster("127.0.0.1:6379").__enter__()


def test_what_needs_a_machine_of_the_cluster_says_so_before_it_asks_anybody() -> None:
    with pytest.raises(UserError, match=r"Ray Data does not run through ray://; give this command on a machine"):
        cluster("ray://127.0.0.1:10001", from_outside=False).__enter__()


def test_a_machine_that_is_too_busy_to_start_ray_is_one_line(fake: SimpleNamespace) -> None:
    def late(**settings: object) -> None:
        raise Exception("The current node timed out\nduring startup.")  # as Ray does

    fake.init = late
    with pytest.raises(UserError, match=r"not start on this machine: The current node timed out during .*; try again"):
        cluster().__enter__()


def test_without_ray_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def missing(name: str, *rest: object, **how: object) -> object:
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return there(name, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UserError, match=r"machines needs ray; run: pip install 'rungwise\[ray\]'"):
        cluster().__enter__()
