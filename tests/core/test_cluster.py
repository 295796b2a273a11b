"""Ray on this machine, and addresses where there is none."""

import builtins
import os
import subprocess
import sys

import pytest

from rungwise.core.cluster import cluster
from rungwise.core.errors import UserError
from tests.ports import free_port


def test_tasks_run_in_other_processes(two_workers: None) -> None:
    with cluster() as ray:
        assert ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()
    assert ray.is_initialized(), "the connection was there before"


def test_workers_of_this_machine_end_with_the_block() -> None:
    program = (
        "from rungwise.core.cluster import cluster\n"
        "with cluster(workers=1) as ray:\n"
        "    print(ray.get(ray.remote(lambda: 6 * 7).remote()))\n"
        "print(ray.is_initialized())\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["42", "False"]
    assert said.stderr == ""


def test_nobody_there_is_one_line() -> None:
    port = free_port()
    with pytest.raises(UserError, match=rf"Ray at 127.0.0.1:{port}: nobody answers .*`ray start --head`"):
        cluster(f"127.0.0.1:{port}").__enter__()
    with pytest.raises(UserError, match="nobody answers"):
        cluster("ray://127.0.0.1:99999").__enter__()


def test_what_needs_a_machine_of_the_cluster_says_so_before_it_asks_anybody() -> None:
    with pytest.raises(UserError, match=r"Ray Data does not run through ray://; give this command on a machine"):
        cluster("ray://127.0.0.1:10001", from_outside=False).__enter__()


def test_a_machine_that_is_too_busy_to_start_ray_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")

    def late(**settings: object) -> None:
        raise Exception("The current node timed out\nduring startup.")  # as Ray does

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    with pytest.raises(UserError, match=r"not start on this machine: The current node timed out during .*; try again"):
        cluster().__enter__()


def test_without_ray_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def missing(name: str, *rest: object, **how: object) -> object:
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return there(name, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UserError, match=r"Ray is not installed .*pip install 'rungwise\[ray\]'"):
        cluster().__enter__()
