"""Ray: processes on this machine, or on the machines of a cluster, that share one job."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from types import ModuleType
from typing import Any

from rungwise.core._errors import MissingExtraError, UserError
from rungwise.core.compute._threads import cores

LOCAL = "local"
"""Given in place of an address: workers on this machine, for as long as the job lasts."""
ADDRESS = re.compile(r"(?:ray://)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})")
"""Pattern of the address of a cluster's head."""
_OUTSIDE = "ray://"
_SECONDS_TO_ANSWER = 5.0
_whole: list[ModuleType] = []
"""Modules whose classes are sent to workers with their code."""
_SHARED_BYTES = 256 << 20
"""Memory in which the workers of one machine hand each other data; what does not fit goes to the disk."""


def send_whole(module: ModuleType) -> None:
    """Send the classes of a module to workers with their code: the module is a file, which workers cannot import."""
    _whole.append(module)


@contextmanager
def cluster(address: str = LOCAL, *, workers: int | None = None, from_outside: bool = True) -> Iterator[Any]:
    """The module ``ray``, connected for as long as the block lasts.

    Where this process is connected already, that connection is used, and stays.

    Args:
        address: ``"local"`` starts workers on this machine and ends them with the block. ``HOST:PORT`` is the head of a
            cluster that this machine is a part of; ``ray://HOST:PORT`` reaches a cluster from outside.
        workers: Number of tasks that may run at a time on this machine; None takes all of its cores.
        from_outside: Allow ``ray://``; False for Ray Data, which only runs on a machine of the cluster.

    Raises:
        UserError: If Ray is not installed or does not start, the address is malformed, or nobody answers there.
    """
    if address.startswith(_OUTSIDE) and not from_outside:
        raise UserError(
            f"Ray at {address}: Ray Data does not run through {_OUTSIDE}; give this command on a machine of the"
            " cluster, with HOST:PORT of its head (such as HEAD:6379)"
        )
    if address != LOCAL:
        _require_answer(address)
    # What Ray's own processes think goes to their files, not between the lines of a command.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Of its own helpers that die it would print whole tracebacks; what matters of it reaches who waits for an answer.
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    # A task that asks for no GPU would lose sight of those there are; a later Ray does so by itself.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "to work on several processes or machines") from error
    for module in _whole:
        ray.cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    if ray.is_initialized():
        yield ray
        return
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == LOCAL:
        settings |= {
            "num_cpus": workers or cores(),
            "include_dashboard": False,
            "object_store_memory": _SHARED_BYTES,
        }
    else:
        settings["address"] = address
    try:
        with _without_advice(), _without_web_server(ray):
            ray.init(**settings)
    except Exception as error:  # Ray raises no narrower one where a busy machine does not start it in time
        said = " ".join(str(error).split())[:200]
        if address == LOCAL:
            raise UserError(
                f"Ray does not start on this machine: {said}; try again when it is less busy, or do without Ray"
            ) from error
        raise UserError(f"Ray at {address}: {said}; check that `ray status` answers there") from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _without_advice() -> Iterator[None]:
    """Discard the standard error within the block, which Ray fills from Python and from below it."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with redirect_stderr(StringIO()):
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


@contextmanager
def _without_web_server(ray: Any) -> Iterator[None]:
    """Keep Ray from starting its web server within the block.

    Even without its pages, and with its reports switched off, that server asks the addresses of three clouds whether
    it runs there. No setting of Ray leaves it out.
    """
    node = ray._private.node.Node
    before = node.start_api_server
    node.start_api_server = lambda self, **_: setattr(self, "_webui_url", "")
    try:
        yield
    finally:
        node.start_api_server = before


def _require_answer(address: str) -> None:
    """Refuse a malformed address, and one where nobody answers: Ray itself would try for many minutes."""
    found = ADDRESS.fullmatch(address)
    if found is None:
        raise UserError(f"Ray: {address!r} is no address; give HOST:PORT or ray://HOST:PORT of its head, or local")
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"Ray at {address}: nobody answers ({error}); start it with `ray start --head`, or check the address"
        ) from error
