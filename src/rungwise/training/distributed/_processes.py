"""The processes of a run: one, or those that ``torchrun`` started."""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import choose_device
from rungwise.parts import named_modules
from rungwise.training._run_folder import is_begun
from rungwise.training.distributed._global_negatives import process_group
from rungwise.training.distributed._heartbeats import LOST_AFTER, heartbeats

LONGEST_WAIT = timedelta(hours=12)
"""Longest wait of a process while another one reads or validates."""


class Processes:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: Rank of this process, from 0.
        world: Number of processes.
    """

    def __init__(self, rank: int = 0, world: int = 1, device: torch.device | None = None) -> None:
        self.rank = rank
        self.world = world
        self._device = device

    @property
    def first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def own(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's part of a batch."""
        return np.array_split(chosen, self.world)[self.rank]

    def shares(self, items: int) -> list[int]:
        """Number of a batch's items for each process."""
        return [len(part) for part in np.array_split(np.arange(items), self.world)]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process; all processes must call this together."""
        if self.world == 1:
            return flag
        together = torch.tensor(int(flag), device=self._device)
        dist.all_reduce(together, op=dist.ReduceOp.MAX)
        return bool(together)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.world > 1:
            dist.barrier()

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """Context that the first process passes alone, then the others, which find its files."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()


def asked_for() -> int:
    """Number of processes that ``torchrun`` started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def joined(
    device: str | None,
    *,
    lost_after: float = LOST_AFTER,
    go_on: Callable[[], str] = lambda: "start all processes again",
) -> Iterator[tuple[Processes, torch.device]]:
    """Context that joins the processes of the run; yields them, and the device of this one.

    Args:
        device: Device such as ``"cpu"``; None takes ``cuda`` where there is one. With several processes each takes the
            GPU of its number on its machine.
        lost_after: Seconds without a sign of life after which another process counts as lost.
        go_on: Function that tells, in words, how a person resumes after a loss.

    Raises:
        UserError: If there is no such device.
        SystemExit: If another process is lost.
    """
    if not 0 < lost_after <= LONGEST_WAIT.total_seconds():
        raise UserError(f"lost_after must be above 0 and at most {LONGEST_WAIT.total_seconds():g} seconds")
    if asked_for() == 1:
        yield Processes(), torch.device(choose_device(device))
        return
    place = torch.device(choose_device(device))
    if place.type == "cuda" and place.index is None:
        place = torch.device(choose_device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}"))
        torch.cuda.set_device(place)
    if dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size(), place), place
        return
    with process_group("nccl" if place.type == "cuda" else "gloo", timeout=LONGEST_WAIT):
        processes = Processes(dist.get_rank(), dist.get_world_size(), place)

        def leave() -> None:
            gc.collect()
            processes.wait()

        with heartbeats(processes.rank, processes.world, leave, lost_after=lost_after, go_on=go_on):
            yield processes, place


def resuming(config: Path, out: Path, *more: str) -> str:
    """The command, in words, that resumes a run of several processes after a loss; ``more`` are further words of it."""
    if not is_begun(config.parent):
        return "no checkpoint was written yet; start all processes anew"
    said = os.environ
    words = ["torchrun"]
    if said.get("GROUP_WORLD_SIZE", "1") != "1":
        words += ["--nnodes", said["GROUP_WORLD_SIZE"], "--node_rank", "RANK"]
        words += ["--master_addr", said.get("MASTER_ADDR", "HOST"), "--master_port", said.get("MASTER_PORT", "PORT")]
    words += ["--nproc_per_node", said.get("LOCAL_WORLD_SIZE", "1"), "-m", "rungwise", "train"]
    modules = [word for one in named_modules() for word in ("--module", one)]  # a record of a run imports none
    command = shlex.join([*words, str(config), "--out", str(out), *more, *modules, "--resume"])
    return f"go on from the last checkpoint with: {command}"


def is_first() -> bool:
    """Whether this process is the only one or the first, before they have joined."""
    return int(os.environ.get("RANK", "0")) == 0
